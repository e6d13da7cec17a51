package recall

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/remora-proxy/remora/text"
)

// TestCrowd: a query finds the same, to the bit, whether the turns of its common words are a crowd or are tallied.
func TestCrowd(t *testing.T) {
	crowds, pairs := 0, 0
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 4))
		e, ix, ask := randomScope(t, r, 2*wideFrom+int(seed)*200)
		word := func(common bool) string {
			for {
				if id := uint32(r.IntN(len(ix.posts))); (ix.posts[id].wide != 0) == common && !text.IsMark(id) {
					return string(ix.terms.raw(id))
				}
			}
		}
		var seen [][16]byte // what the request carries
		for i := range ix.turns {
			if i%5 > 0 {
				seen = append(seen, [16]byte{14: byte((i + 1) >> 8), 15: byte(i + 1)}) // of chainOf(i)
			}
		}
		for i := range 100 {
			req := Request{Newest: word(false), TopK: 1 + r.IntN(8)}
			if i%4 == 0 {
				req.Newest = ask()
			}
			for range 1 + r.IntN(2) {
				req.Newest += " " + word(true)
			}
			if r.IntN(3) == 0 {
				req.VisibleChains = seen
			}
			w := &e.cfg.Weights
			q := e.readQuery(req.words(), nil, req.Now, ix.usualLanguage())
			ix.resolve(q, e.cfg.MaxTerms, w)
			f := &q.passes
			e.filter(ix, &req, f)
			rank := func() (considered int, hits []hit, words int) {
				s := new(scratch)
				considered = ix.rank(q, w, s, req.TopK*candidatesPerMemory, f)
				for i, v := range s.sums {
					if v != 0 {
						t.Fatalf("%q: turn %d is not forgotten", req.Newest, i)
					}
				}
				words = cap(s.crowd.words)
				return considered, ix.best(q, w, s, req.TopK*candidatesPerMemory, f), words
			}
			considered, hits, words := rank()
			if words > 0 {
				crowds++
			}
			if words > 1 {
				pairs++
			}
			wide := make([]uint32, len(ix.posts))
			for i := range ix.posts {
				wide[i], ix.posts[i].wide = ix.posts[i].wide, 0
			}
			tallied, want, _ := rank()
			for i := range ix.posts {
				ix.posts[i].wide = wide[i]
			}
			what := fmt.Sprintf("seed %d, top %d, %q", seed, req.TopK, req.Newest)
			if considered != tallied {
				t.Errorf("%s: %d considered, tallied %d", what, considered, tallied)
			}
			if d := cmp.Diff(want, hits, cmp.AllowUnexported(hit{}), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s: tallied (-), of a crowd (+): %s", what, d)
			}
		}
	}
	if crowds < 30 || pairs < 5 {
		t.Errorf("%d crowds, %d of two words", crowds, pairs)
	}
}
