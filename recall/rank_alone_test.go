package recall

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// Turns without neighbours are ranked and noted as those among neighbours are,
// to the bit.
func TestRankAloneLikeAmong(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("car vehicle drive doctor physician hospital job work salary music song guitar food dinner pizza trip travel hotel")
	var ms []storage.Memory
	for i := range 600 {
		var text strings.Builder
		for range 1 + r.IntN(6)*r.IntN(60) { // some are longer than a turnHeader tells
			text.WriteString(words[r.IntN(len(words))] + []string{" ", " ", "? ", ". "}[r.IntN(4)])
		}
		m := storage.Memory{Kind: storage.KindEpisode, Trust: 1, Text: text.String(), EventTime: storage.Time(1_700_000_000_000 + i/2), Conversation: fmt.Sprint("c", i/2)}
		m.Provenance = storage.Provenance{Turn: fmt.Sprintf("%032x", i/2), Seq: i % 2, Role: []storage.Role{storage.RoleUser, storage.RoleAssistant}[i%2]}
		m.ID = storage.TurnMemoryID(m.Provenance.Turn, m.Provenance.Seq)
		if i%5 == 0 {
			m.Kind, m.ID, m.Conversation = storage.KindFact, fmt.Sprint("f", i), ""
		}
		ms = append(ms, m)
	}
	e, _ := newEngine(t, patient(), ms)
	if _, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "load"}); err != nil {
		t.Fatal(err)
	}
	s, err := e.loader.acquire(t.Context(), alice)
	if err != nil {
		t.Fatal(err)
	}
	ix, w, kin := s.ix, &e.cfg.Weights, 0
	for range 200 {
		req := Request{Newest: words[r.IntN(len(words))] + " " + words[r.IntN(len(words))] + " " + words[r.IntN(len(words))]}
		q := e.searcher.readQuery(req.Words(), nil, req.Now, ix.usualLanguage())
		resolver{ix}.resolve(q, e.cfg.MaxTerms, w)
		f := &q.passes
		e.searcher.filter(ix, &req, f)
		s := new(scratch)
		s.grow(ix)
		s.factors.fill(ix, q, w)
		fw := ranker{ix}.fieldWeights(q, w)
		ranker{ix}.scoreOwnWords(q, w, &fw, s, 32)
		seeds := ranker{ix}.pickSeeds(q, w, s, 32, f)
		if !(ranker{ix}).markCandidates(seeds, s) {
			t.Fatal("a turn has neighbours")
		}
		cells := func(rank func(*resolvedQuery, *fieldWeights, *scratch)) string {
			s.makeCells(ranker{ix}, seeds, true, &fw)
			rank(q, &fw, s)
			if len(s.ranked) != len(s.cells) {
				t.Fatalf("%q: %d of %d have a score", req.Newest, len(s.ranked), len(s.cells))
			}
			return fmt.Sprintf("%+v", s.cells)
		}
		if got, want := cells(ranker{ix}.scoreAlone), cells(ranker{ix}.scoreWithNeighbours); got != want {
			t.Fatalf("%q:\n%s\nwant\n%s", req.Newest, got, want)
		}
		for _, c := range s.cells {
			if c.holds.kin != 0 {
				kin++
			}
		}
	}
	if kin == 0 {
		t.Error("no turn has a related word")
	}
}
