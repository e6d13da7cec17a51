package recall

import (
	"fmt"
	"slices"
	"testing"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// Of a fact and the passage that it was extracted from one is shown. A fact is
// shown alone if its turn says something else, or was deleted.
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

// Conversations about the request's project rank first, and others are still
// found, also after a rebuild.
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
	again := (compactor{ix}).rebuilt(10, nil)
	for c, conv := range ix.convs.list {
		if conv.project == 0 || again.convs.list[c].project != conv.project {
			t.Errorf("conversation %d: project %d after a rebuild, want %d", c, again.convs.list[c].project, conv.project)
		}
	}
}
