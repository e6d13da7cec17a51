package recall

import (
	"fmt"
	"slices"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// recallMarked returns the texts of a result, with a mark before those with
// storage.OutdatedTag.
func recallMarked(t *testing.T, e *Engine, req Request) (texts []string) {
	t.Helper()
	req.Scope = alice
	res, err := e.Recall(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range res.Memories {
		s := m.Memory.Text
		if slices.Contains(m.Memory.Tags, storage.OutdatedTag) {
			s = "outdated: " + s
		}
		texts = append(texts, s)
	}
	return texts
}

// What changes an older statement goes before it, also if it has no word of the
// question, and the older is tagged.
func TestUpdates(t *testing.T) {
	for _, c := range []struct{ old, newer, question string }{
		{"The folding kayak goes on sale on 12 May, so we leave a week for customs", "The folding kayak goes on sale on 19 May, the date has moved", "When does the folding kayak go on sale?"},
		{"Our database is MariaDB", "We switched from MariaDB to FoundationDB", "Which database do we use?"},
		{"We leave ten days for customs because the folding rack goes on sale on 12 September 2027", "The folding rack goes on sale on 19 September 2027, the date has moved", "When does the folding rack go on sale?"},
		{"I work at Siemens as an electrician", "I'm at Bosch now", "Where do I work?"},
		{"I'm vegan", "I eat meat again", "Suggest a dinner for me"},
		{"Mon train pour Lyon est le 28 novembre", "Mon train pour Lyon est reporté au 5 décembre", "Quand part mon train pour Lyon ?"},
		{"我住在广州", "我上周搬到深圳了", "我住在哪里？"},
	} {
		ms := []storage.Memory{said(1, c.old), said(2, c.newer), factOf(3, "The piano is black."), factOf(4, "The lamp is green.")}
		e, _ := newEngine(t, patient(), ms)
		for _, lines := range []bool{false, true} {
			got := recallMarked(t, e, Request{Newest: c.question, Lines: lines})
			if want := []string{c.newer, "outdated: " + c.old}; !slices.Equal(got, want) {
				t.Errorf("%q: got %q, want %q", c.question, got, want)
			}
		}
		// Without the gate everything stays as it ranks.
		for _, s := range recallMarked(t, e, Request{Newest: c.question, NoGate: true}) {
			if s == "outdated: "+c.old {
				t.Errorf("%q: marked without the gate", c.question)
			}
		}
	}
}

// What others said, or what was said before, changes nothing.
func TestNoUpdates(t *testing.T) {
	old := "Our database is MariaDB"
	newer := said(2, "We switched from MariaDB to FoundationDB")
	ofAnother, before, resource, assistant := newer, newer, newer, newer
	ofAnother.Provenance.Speaker = "Pia"
	before.EventTime -= 5000
	resource.Kind = storage.KindResource
	assistant.Provenance.Role = storage.RoleAssistant
	for _, m := range []storage.Memory{ofAnother, before, resource, assistant} {
		e, _ := newEngine(t, patient(), []storage.Memory{said(1, old), m, said(3, "The piano is black.")})
		if got := recallMarked(t, e, Request{Newest: "Which database do we use?"}); !slices.Contains(got, old) {
			t.Errorf("%+v: got %q", m, got)
		}
	}
}

// If there is no room for the newer statement it takes that of the last memory.
func TestUpdateReplacesTheLast(t *testing.T) {
	var ms []storage.Memory
	for i := range 4 {
		ms = append(ms, said(i+1, fmt.Sprintf("The harbour database of town %d is MariaDB", i)))
	}
	newer := "We switched from MariaDB to FoundationDB"
	ms = append(ms, said(9, newer))
	for i := range ms { // so that none is found by its neighbours
		ms[i].Conversation = fmt.Sprint(i)
	}
	e, _ := newEngine(t, patient(), ms)
	for k := 1; k <= 4; k++ {
		got := recallMarked(t, e, Request{Newest: "Which harbour database is it?", TopK: k})
		if len(got) > k || k > 1 && got[0] != newer {
			t.Errorf("topK %d: got %q", k, got)
		}
	}
	res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "Which harbour database is it?", Explain: true})
	if err != nil || len(res.Memories) == 0 || len(res.Memories[0].Parts) != 1 || res.Memories[0].Parts[0].Name != PartUpdate {
		t.Errorf("explained: got %+v, %v", res.Memories, err)
	}
}

// What is quoted, played or made up changes nothing the user said.
func TestNoUpdatesByFiction(t *testing.T) {
	old := "I live in Munich"
	played, quoted, made := said(2, "I moved to Mordor last week"), said(2, "I moved to Mordor last week"), said(2, "Imagine I moved to Mordor last week")
	played.Tags, quoted.Tags = []string{storage.RolePlayTag}, []string{storage.QuotedTag}
	translated := said(2, "Translate: I moved to Mordor last week")
	for _, m := range []storage.Memory{played, quoted, made, translated} {
		e, _ := newEngine(t, patient(), []storage.Memory{said(1, old), m, said(3, "The piano is black.")})
		for _, q := range []string{"Where do I live?", "Munich weather tips where I live"} {
			if got := recallMarked(t, e, Request{Newest: q}); !slices.Contains(got, old) {
				t.Errorf("%q, %q: got %q", m.Text, q, got)
			}
		}
	}
}

// Without room for both the newer statement replaces the older; if it cannot be
// shown either, the older is not tagged.
func TestUpdateWithoutRoom(t *testing.T) {
	old, newer := "Our database is MariaDB", "We switched from MariaDB to FoundationDB"
	ms := []storage.Memory{said(1, old), said(2, newer), said(3, "The piano is black.")}
	ms[0].Conversation, ms[1].Conversation = "a", "b"
	e, _ := newEngine(t, patient(), ms)
	if got := recallMarked(t, e, Request{Newest: "Which database do we use?", TopK: 1}); !slices.Equal(got, []string{newer}) {
		t.Errorf("got %q", got)
	}
	for tokens := 1; tokens < 60; tokens++ {
		got := recallMarked(t, e, Request{Newest: "Which database do we use?", BudgetTokens: tokens})
		if slices.Contains(got, "outdated: "+old) && got[0] != newer {
			t.Errorf("%d tokens: got %q", tokens, got)
		}
	}
}
