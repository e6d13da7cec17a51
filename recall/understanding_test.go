package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

func TestReadIntent(t *testing.T) {
	for text, want := range map[string]intent{
		"when did i move?":                                    wantsTime,
		"what year was it?":                                   wantsTime,
		"how long did it take?":                               wantsTime | wantsNumber,
		"how many cats?":                                      wantsNumber,
		"who is my boss?":                                     wantsName,
		"what did you recommend for dinner?":                  wantsAssistant,
		"remind me of the plan":                               wantsAssistant,
		"in our last conversation":                            wantsAssistant,
		"we discussed the shed":                               wantsAssistant,
		"how can i fix the tap?":                              wantsAdvice,
		"what should i cook?":                                 wantsAdvice,
		"should i sell the car?":                              wantsAdvice,
		"could you show me a plan?":                           wantsAdvice,
		"can you suggest a film?":                             wantsAdvice | wantsAssistant,
		"help me pack":                                        wantsAdvice,
		"any tips for rome?":                                  wantsAdvice,
		"which tips are there?":                               wantsName,
		"in order to fly, what should i pack?":                wantsAdvice,
		"can you list the order in which i met them?":         wantsName | wantsAssistant,
		"can you walk through our plans across our chats?":    0,
		"can you give me a summary?":                          wantsAssistant,
		"how did you help me pack?":                           0,
		"do you like soup":                                    0,
		"the movie is about a dog":                            0,
		"you and the very long way to the sea of suggestions": 0,
	} {
		if got := readIntent([]byte(text)); got != want {
			t.Errorf("%q: got %b, want %b", text, got, want)
		}
	}
}

// A fact and the passage that it was taken from say the same: one of them is enough. A fact stands by itself where its
// turn says something else, and where the turn is gone.
func TestFactsDoNotRepeatTheirTurns(t *testing.T) {
	ms := texts(
		"we talked for hours about the garden and the weather, and then it turned out that Ines is allergic to peanuts and so is her brother",
		"the invoice service is deployed by Marguerite",
	)
	fact := func(id, turn, text string) storage.Memory {
		m := said(9, text)
		m.ID, m.Kind, m.Provenance.Turn = id, storage.KindFact, turn
		return m
	}
	own := fact("f1", ms[0].Provenance.Turn, "user: \"Ines is allergic to peanuts\"")
	orphan := fact("f2", "00000077", "user: \"Ines is allergic to cats\"")
	e, _ := newEngine(t, patient(), append(ms, own, orphan))
	got := recallIDs(t, e, Request{Newest: "what is Ines allergic to?", NoGate: true})
	shown := 0
	for _, id := range got {
		if id == own.ID || id == ms[0].ID {
			shown++
		}
	}
	if shown != 1 || !slices.Contains(got, orphan.ID) {
		t.Errorf("got %v, want one of %s and %s, and %s", got, own.ID, ms[0].ID, orphan.ID)
	}
}

// What was said about the project that a request is about ranks before the same said elsewhere, which is still found.
// It holds for an index that was rebuilt, too.
func TestProjectsRankAndHideNothing(t *testing.T) {
	ms := texts("we deploy with the heron script", "we deploy with the egret script")
	for i := range ms {
		ms[i].Conversation = fmt.Sprint("c", i)
		ms[i].Tags = []string{storage.ProjectTag + fmt.Sprint("p", i)}
	}
	ix := newIndex(1, text.NewAnalyzer(cachedWords))
	e, _ := newEngine(t, patient(), ms)
	for i := range ms {
		got := recallIDs(t, e, Request{Newest: "which script do we deploy with?", Project: fmt.Sprint("p", i), NoGate: true})
		if len(got) != 2 || got[0] != ms[i].ID {
			t.Errorf("project %d: got %v", i, got)
		}
	}
	for i := range ms {
		ix.put([]passage{{memory: &ms[i], terms: []string{"deploy"}}})
	}
	again := ix.rebuilt(10, nil)
	for c, conv := range ix.convs.list {
		if conv.project == 0 || again.convs.list[c].project != conv.project {
			t.Errorf("conversation %d: project %d after a rebuild, want %d", c, again.convs.list[c].project, conv.project)
		}
	}
}

func TestHumanWordsHoldNoRecalledBlock(t *testing.T) {
	if got := HumanWords("<remora-memory-4f1c0a9be77d>\n- x\n</remora-memory-4f1c0a9be77d>\n<file>x</file>hello"); strings.TrimSpace(got) != "hello" {
		t.Errorf("got %q, want hello", got)
	}
}

func FuzzAppendLower(f *testing.F) {
	f.Add("@[`{AZaz")
	f.Add("Café ÀÉ the QUICK brown Fox")
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := string(appendLower([]byte("A"), s, text.IsASCII(s))), "A"+strings.ToLower(s); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	})
}
