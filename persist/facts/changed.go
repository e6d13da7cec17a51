package facts

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
	"github.com/remora-proxy/remora/text/updates"
)

const (
	// maxChanged bounds the facts that a statement is compared with: those that
	// share most of its content words.
	maxChanged = 8
	// maxSharing bounds the facts that have a content word; with more it tells
	// nothing.
	maxSharing = 256
	// maxChangedWords bounds the content words of a fact that a statement in
	// other words may supersede. A longer one says more than what has changed;
	// recall tags it instead.
	maxChangedWords = 8
	// unseenFacts is the number of facts that are assumed in addition when
	// words are weighed, so that two statements of few have rare words in
	// common.
	unseenFacts = 200
)

// analyzer reads facts. It is shared, as its cache takes some memory.
var analyzer = sync.OnceValue(func() *text.Analyzer { return text.NewAnalyzer(1 << 10) })

// outdatedBy returns current facts that a statement changes in other words: "I
// left Google", "the standup moved to ten". Those in known are not among them.
func (c *Changes) outdatedBy(ctx context.Context, f *fact, by *storage.Memory, quote string, known []*fact) (out []*fact, err error) {
	var n, o updates.Statement
	n.Read(analyzer(), quote, text.English)
	if !n.Changing() {
		return nil, nil
	}
	for _, old := range c.sharing(f, n.Class() != 0) {
		if slices.Contains(known, old) {
			continue
		}
		m, err := c.current(ctx, old)
		if err != nil {
			return nil, err
		}
		if m == nil || m.Provenance.Speaker != by.Provenance.Speaker {
			continue
		}
		o.Read(analyzer(), m.Text, text.English)
		if o.Sole() && n.Updates(&o, c.set.weigh) {
			out = append(out, old)
		}
	}
	return out, nil
}

// sharing returns the short facts said before f that share most content words
// with it; with classed also the newest of a class, which need to share none.
func (c *Changes) sharing(f *fact, classed bool) (found []*fact) {
	shared := map[*fact]int{}
	for _, w := range f.Content {
		if len(c.set.byContent[w]) > maxSharing {
			continue
		}
		for _, old := range c.set.byContent[w] {
			if old.id != f.id && len(old.Content) <= maxChangedWords && !old.after(f) {
				if shared[old]++; shared[old] == 1 {
					found = append(found, old)
				}
			}
		}
	}
	order := func(a, b *fact) int {
		return cmp.Or(cmp.Compare(shared[b], shared[a]), cmp.Compare(b.said, a.said), cmp.Compare(a.id, b.id))
	}
	slices.SortFunc(found, order)
	found = found[:min(len(found), maxChanged)]
	if !classed {
		return found
	}
	best := make([]*fact, 0, maxChanged+1) // of a class, in order
	for _, old := range c.set.byID {
		if old.class == 0 || old.superseded != "" || old.id == f.id || len(best) == maxChanged && order(old, best[maxChanged-1]) > 0 {
			continue
		}
		if old.after(f) || slices.Contains(found, old) {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, old, order)
		best = slices.Insert(best, at, old)
		best = best[:min(len(best), maxChanged)]
	}
	return append(found, best...)
}

// weigh returns how much a word tells among the facts.
func (s *Set) weigh(word string) float64 {
	n, df := float64(len(s.byID)+unseenFacts), float64(max(len(s.byContent[word]), 1))
	return math.Log(1 + (n-df+0.5)/(df+0.5))
}
