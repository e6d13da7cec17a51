package recall

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// exchange returns the two passages of a turn of conversation c.
func exchange(c string, turn int, user, assistant string) []storage.Memory {
	u, a := said(turn, user), said(turn, assistant)
	u.ID, a.ID = storage.TurnMemoryID(u.Provenance.Turn, 0), storage.TurnMemoryID(u.Provenance.Turn, 1)
	u.Conversation, a.Conversation = c, c
	a.Provenance.Role, a.Provenance.Seq = storage.RoleAssistant, 1
	return []storage.Memory{u, a}
}

func together(turns ...[]storage.Memory) (all []storage.Memory) {
	for _, t := range turns {
		all = append(all, t...)
	}
	return all
}

// recallLines returns the lines of a block as "role: text".
func recallLines(t *testing.T, e *Engine, req Request) []string {
	t.Helper()
	req.Scope, req.Lines = alice, true
	res, err := e.Recall(context.WithoutCancel(t.Context()), req)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for _, m := range res.Memories {
		lines = append(lines, string(m.Memory.Provenance.Role)+": "+m.Memory.Text)
	}
	return lines
}

func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

var household = together(
	exchange("c1", 1, "what's a good book about Rome?", "SPQR by Mary Beard is excellent."),
	exchange("c1", 2, "how do I get red wine out of a carpet?", "Blot it, then use soda water and salt."),
	exchange("c1", 3, "how long should I boil eggs?", "Six minutes for a runny yolk."),
	exchange("c1", 4, "My sister Ada moved to Lisbon in March.", "Lovely city."),
	exchange("c1", 5, "thank you so much!", "You're welcome!"),
)

// A question is shown with its answer.
func TestQuestionsAreShownWithTheirAnswers(t *testing.T) {
	e, _ := newEngine(t, patient(), household)
	wantLines(t, "asked again", recallLines(t, e, Request{Newest: "How do I get wine stains out of the carpet again?"}),
		"user: how do I get red wine out of a carpet?", "assistant: Blot it, then use soda water and salt.")
	if got := recallLines(t, e, Request{Newest: "Where did my sister Ada move?"}); len(got) == 0 || strings.Contains(strings.Join(got, "\n"), "Lovely") {
		t.Errorf("a statement: got %q", got)
	}
	if got := recallLines(t, e, Request{Newest: "How do I get wine stains out of the carpet again?", TopK: 1}); len(got) != 1 {
		t.Errorf("topK 1: got %q", got)
	}
}

// If a question was answered in its turn, the next turn gains little.
func TestAnsweredQuestionsLendLittle(t *testing.T) {
	cfg := patient()
	e, _ := newEngine(t, cfg, household)
	ids := recallIDs(t, e, Request{Newest: "Which book about Rome did you recommend?", NoGate: true})
	if len(ids) == 0 || ids[0] != "00000001.0" {
		t.Errorf("got %v, want the turn that asks and answers first", ids)
	}
	cfg.Weights.Before1Answered = cfg.Weights.Before1Ask
	e, _ = newEngine(t, cfg, household)
	if ids := recallIDs(t, e, Request{Newest: "Which book about Rome did you recommend?", NoGate: true}); ids[0] == "00000001.0" {
		t.Error("the weight changes nothing")
	}
}

func TestLongAnswersAreCut(t *testing.T) {
	for _, answer := range []string{strings.Repeat("carpet cleaning needs patience ", 30), strings.Repeat("çatı ", 150), strings.Repeat("水", 300)} {
		e, _ := newEngine(t, patient(), exchange("c1", 1, "how do I clean a carpet?", answer))
		got := recallLines(t, e, Request{Newest: "how should I clean the carpet?"})
		if len(got) != 2 {
			t.Fatalf("%.20s: got %q", answer, got)
		}
		short, ok := strings.CutSuffix(strings.TrimPrefix(got[1], "assistant: "), omission)
		if !ok || len(short)+len(omission) > maxAnswer || len(short) < maxAnswer/2 || !strings.HasPrefix(answer, short) {
			t.Errorf("got %q", got[1])
		}
		res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "how should I clean the carpet?", BudgetTokens: 1e6})
		if err != nil || len(res.Memories) != 2 || res.Memories[1].Memory.Text != answer {
			t.Errorf("a memory is cut although Lines is not set: %+v, %v", res.Memories, err)
		}
	}
}

// Low scores, mere neighbours of matching turns, and small talk are left out.
func TestPostfilter(t *testing.T) {
	e, _ := newEngine(t, patient(), household)
	req := Request{Newest: "Where does my sister Ada live? Lisbon?"}
	wantLines(t, "gated", recallLines(t, e, req), "user: My sister Ada moved to Lisbon in March.")
	req.NoGate = true
	if got := recallLines(t, e, req); len(got) < 3 {
		t.Errorf("without gate: got %q, want its neighbours as well", got)
	}
	res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: req.Newest, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[Reason]bool{}
	for _, c := range res.Cut {
		reasons[c.Reason] = true
	}
	if len(res.Memories) != 1 || !reasons[CutFloor] {
		t.Errorf("explained: got %d memories and %v", len(res.Memories), res.Cut)
	}
	chat := together(exchange("c1", 1, "Book the hotel in Lisbon", "Three rooms are free, the hotel takes cards."), exchange("c1", 2, "yes", "Booked: hotel Avenida in Lisbon, 640 euros."))
	e, _ = newEngine(t, patient(), chat)
	for _, l := range recallLines(t, e, Request{Newest: "Which hotel in Lisbon is booked?"}) {
		if l == "user: yes" {
			t.Error("small talk is shown")
		}
	}
}

// A memory in a visible block is not shown again in another form.
func TestNothingTwiceInAConversation(t *testing.T) {
	turn := exchange("c1", 1, "I live in Berlin with my husband Jonas.", "Nice to meet you! How can I help?")
	fact := said(1, `"I live in Berlin with my husband Jonas."`)
	fact.ID, fact.Kind, fact.Conversation = "f1", storage.KindFact, "c1"
	other := said(2, "Berlin is where the fair is.")
	other.Conversation = "c2"
	e, _ := newEngine(t, patient(), append(turn, fact, other))
	req := Request{Newest: "Where in Berlin do I live with Jonas?"}
	if got := recallLines(t, e, req); len(got) == 0 || !strings.Contains(got[0], "husband") {
		t.Fatalf("got %q", got)
	}
	req.VisibleIDs = map[string]struct{}{turn[0].ID: {}}
	for _, l := range recallLines(t, e, req) {
		if strings.Contains(l, "husband") || strings.Contains(l, "Nice to meet") {
			t.Errorf("got %q though the passage is visible", l)
		}
	}
}

// "ok" and "go on" recall nothing: the earlier block is still visible.
func TestContinuationsRecallNothing(t *testing.T) {
	e, _ := newEngine(t, patient(), household)
	before := func() string { return "How do I get red wine out of a carpet?" }
	for _, m := range []string{"ok", "Yes!", "go on", "continue", "next", "thanks", "genau", "d'accord", "vale", "好的", "继续", "はい。", "ありがとうございます"} {
		if got := recallLines(t, e, Request{Newest: m, Previous: before}); len(got) > 0 {
			t.Errorf("%q: got %q", m, got)
		}
	}
	if got := recallLines(t, e, Request{Newest: "and out of wool?", Previous: before}); len(got) == 0 {
		t.Error("a question that needs the one before recalls nothing")
	}
}

// "I moved to" answers "where do I live?"
func TestWhereOneLivesIsWhereOneMoved(t *testing.T) {
	for question, turns := range map[string][2]string{
		"Where do I live?":         {"I live in Berlin with Jonas.", "We've settled in Hamburg now."},
		"Wo wohne ich?":            {"Ich wohne in Köln und bin 54.", "Ich bin nach Düsseldorf umgezogen."},
		"Où est-ce que j'habite ?": {"J'habite à Lyon avec mon fils.", "J'ai déménagé à Grenoble."},
		"¿Dónde vivo?":             {"Vivo en Sevilla con mi novio.", "Me he mudado a Cádiz."},
	} {
		e, _ := newEngine(t, patient(), together(exchange("c1", 1, turns[0], "Noted."), exchange("c2", 2, turns[1], "Noted.")))
		if got := recallLines(t, e, Request{Newest: question}); len(got) != 2 {
			t.Errorf("%s got %q", question, got)
		}
	}
}
