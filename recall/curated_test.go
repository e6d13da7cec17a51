package recall

import (
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// Files that an agent curates and keyed values are never returned, whether the
// index read them from the store or was told of them.
func TestCuratedIsNotRecalled(t *testing.T) {
	kinds := map[string]storage.Kind{"curated": storage.KindCurated, "entry": storage.KindEntry}
	fact := factOf(1, "The lighthouse of Norderney is red.")
	notes := func(what string) (ms []storage.Memory) {
		for name, kind := range kinds {
			m := factOf(2, "The lighthouse has a "+what+" in the "+name+" notes.")
			m.ID, m.Kind = what+name, kind
			ms = append(ms, m)
		}
		return ms
	}
	e, _ := newEngine(t, patient(), append(notes("stair"), fact))
	for _, later := range [][]storage.Memory{nil, notes("lamp")} {
		e.Add(alice, "", later)
		for _, gated := range []bool{false, true} {
			res, err := e.Recall(t.Context(), Request{
				Scope: alice, Newest: "Which lighthouse has a stair or a lamp?", NoGate: !gated, TopK: 10, Explain: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			var seen []string
			for i := range res.Memories {
				seen = append(seen, res.Memories[i].Memory.ID)
			}
			for _, cut := range res.Cut {
				seen = append(seen, cut.ID)
			}
			if len(seen) != 1 || seen[0] != fact.ID {
				t.Errorf("gated %t: found %q, not just the fact", gated, seen)
			}
		}
	}
}
