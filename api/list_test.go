package api

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// countedScans counts what is read of a store.
type countedScans struct {
	*storagetest.Mem
	calls, memories int
}

func (c *countedScans) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error) {
	page, err := c.Mem.Scan(ctx, scope, q)
	c.calls, c.memories = c.calls+1, c.memories+len(page.Memories)
	return page, err
}

// TestPagesOfFilteredLists guards that the pages of a list are those of all
// memories with the others left out, however few match, and that little more is
// read for them than they need.
func TestPagesOfFilteredLists(t *testing.T) {
	s, mem := newCurated(t, nil)
	store := &countedScans{Mem: mem}
	s.Store = store
	who := Target{User: "ann"}
	scope, err := s.scope(curator, who)
	if err != nil {
		t.Fatal(err)
	}
	const all = 600
	one := storage.Write{Scope: scope}
	for i := range all {
		m := storage.Memory{ID: fmt.Sprintf("m%04d", i), Kind: storage.KindFact, Trust: 1, EventTime: storage.Time(i/3 + 1), Text: "It is plain."}
		for _, n := range []int{2, 3, 10, 90, 300} { // "every90" is also a part of "every900"
			if i%n == 0 {
				m.Text += fmt.Sprintf(" every%d", n)
			}
		}
		one.Memories = append(one.Memories, m)
	}
	if err := mem.Put(t.Context(), []storage.Write{one}); err != nil {
		t.Fatal(err)
	}
	for query, every := range map[string]int{"": 1, "every2": 2, "every3": 3, "every10": 10, "every90": 90, "every300": 300, "EVERY2 every3": 6, "never": 0} {
		var want []string
		for i := all - 1; i >= 0; i-- {
			if every > 0 && i%every == 0 {
				want = append(want, one.Memories[i].ID)
			}
		}
		for _, limit := range []int{7, 50, 500} {
			var got []string
			store.calls, store.memories = 0, 0
			pages, cursor := 0, ""
			for more := true; more; more = cursor != "" {
				page, err := s.List(t.Context(), curator, who, Filter{Query: query}, cursor, limit)
				if err != nil {
					t.Fatal(err)
				}
				if len(page.Memories) > limit || len(page.Memories) < limit && page.Next != "" {
					t.Errorf("%q, %d a page: a page of %d, next %q", query, limit, len(page.Memories), page.Next)
				}
				for _, m := range page.Memories {
					got = append(got, m.ID)
				}
				cursor = page.Next
				pages++
			}
			if !slices.Equal(got, want) && !sameTimes(got, want) {
				t.Errorf("%q, %d a page: %d memories, want %d", query, limit, len(got), len(want))
			}
			if most := 5 * all / 2; store.memories > most {
				t.Errorf("%q, %d a page: %d memories read in %d scans, want at most %d", query, limit, store.memories, store.calls, most)
			}
			if limit == 50 && store.calls > 8*pages {
				t.Errorf("%q, %d a page: %d scans for %d pages", query, limit, store.calls, pages)
			}
		}
	}
}

// sameTimes reports whether two lists have the same ids: memories of one time
// come in an order of the store's.
func sameTimes(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
