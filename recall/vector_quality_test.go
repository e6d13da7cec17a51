package recall

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// hintedEmbedder replaces a good model: it turns the vectors of questions
// towards those of their evidence, some much and some not at all. Its figures
// show how fusion treats such vectors, nothing about any model.
type hintedEmbedder struct {
	*corpusEmbedder
	hint float64
	told map[string][]float32
}

func (h *hintedEmbedder) observe(q dsQ, c dsConv) {
	v := h.vector(q.Q)
	a := h.hint * seeded(q.Q).Float64() / math.Sqrt(float64(max(len(q.Ev), 1)))
	common := math.Sqrt(1 + h.shared*h.shared)
	for _, ev := range q.Ev {
		for i, x := range h.vector(c.Turns[ev].Text) {
			v[i] += float32(a * (float64(x) - h.shared*h.offset[i]/common))
		}
	}
	h.told[q.Q] = unit32(v)
}

func (h *hintedEmbedder) Query(ctx context.Context, text string) ([]float32, error) {
	if v, ok := h.told[text]; ok {
		return v, nil
	}
	return h.corpusEmbedder.Query(ctx, text)
}

// fusionFigures holds means over questions.
type fusionFigures struct{ n, frac, ndcg, mrr float64 }

func (f *fusionFigures) add(ranking []int, gold map[int]bool) {
	dcg, ideal, hits, first := 0.0, 0.0, 0, 0.0
	for i, u := range ranking {
		if !gold[u] {
			continue
		}
		if first == 0 {
			first = 1 / float64(i+1)
		}
		if i < 10 {
			hits++
			dcg += 1 / math.Log2(float64(i+2))
		}
	}
	for i := range min(10, len(gold)) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	f.n++
	f.frac += float64(hits) / float64(len(gold))
	f.ndcg += dcg / ideal
	f.mrr += first
}

func (f *fusionFigures) String() string {
	return fmt.Sprintf("frac@10 %.3f NDCG@10 %.3f MRR %.3f", f.frac/f.n, f.ndcg/f.n, f.mrr/f.n)
}

// fusion holds the figures of a set of questions: by words, by words and
// vectors, and by reciprocal rank fusion of both (k = 10, which is better than
// 60 here).
type fusion struct {
	words, fused         fusionFigures
	vectors, rrf         fusionFigures
	own, wrong           []float64 // relevance
	ownWords, wrongWords []float64
}

func measureFusion(t *testing.T, set dsSet, round bool, em Embedder) *fusion {
	var f fusion
	ask := func(e *Engine, c dsConv, q dsQ, scope storage.Scope, topK int) Result {
		now := parseDate(q.Date)
		if now.IsZero() {
			now = parseDate(c.Turns[len(c.Turns)-1].Date).Add(24 * time.Hour)
		}
		res, err := e.Recall(t.Context(), Request{Scope: scope, Newest: q.Q, Now: now, TopK: topK, BudgetTokens: 1 << 30, NoGate: true})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	units := func(res Result) (list []int) {
		for _, m := range res.Memories {
			var u int
			fmt.Sscanf(m.Memory.Provenance.Turn, "%x", &u)
			if !slices.Contains(list, u) {
				list = append(list, u)
			}
		}
		return list
	}
	for at, c := range set.Convs {
		ms, _, rounds := convMemories(c, round)
		scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: c.ID}
		src := newLocal(nil)
		src.ms[scope] = ms
		cfg := patient()
		cfg.Vectors.Embedder, cfg.Vectors.Redact = em, same
		fused := New(cfg, src, nil, nil)
		if _, err := fused.Recall(t.Context(), Request{Scope: scope, Newest: "anything"}); err != nil {
			t.Fatal(err)
		}
		settled(t, fused, scope)
		words := New(patient(), sliceSource(ms), nil, nil)
		for _, q := range c.Qs {
			gold := map[int]bool{}
			for _, ev := range q.Ev {
				gold[rounds[ev]] = true
			}
			if len(gold) == 0 {
				continue
			}
			w, r := ask(words, c, q, scope, 50), ask(fused, c, q, scope, 50)
			if r.Vectors != VectorsUsed {
				t.Fatalf("vectors %s", r.Vectors)
			}
			f.words.add(units(w), gold)
			f.fused.add(units(r), gold)
			f.own, f.ownWords = append(f.own, r.Relevance), append(f.ownWords, w.Relevance)
			rank := map[int]float64{}
			alone := byVectors(t, fused, scope, q.Q)
			f.vectors.add(alone, gold)
			for _, list := range [][]int{units(w), alone} {
				for i, u := range list {
					rank[u] += 1 / (10 + float64(i+1))
				}
			}
			var order []int
			for u := range rank {
				order = append(order, u)
			}
			slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(rank[b], rank[a]), a-b) })
			f.rrf.add(order, gold)
		}
		for other, d := range set.Convs {
			for i, q := range d.Qs {
				if other != at && i%4 == 0 {
					f.wrong = append(f.wrong, ask(fused, d, q, scope, 0).Relevance)
					f.wrongWords = append(f.wrongWords, ask(words, d, q, scope, 0).Relevance)
				}
			}
		}
		fused.Close()
		words.Close()
	}
	return &f
}

// byVectors returns the turns ranked by their vectors alone.
func byVectors(t *testing.T, e *Engine, scope storage.Scope, question string) []int {
	v, err := e.cfg.Vectors.Embedder.Query(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	held, _ := e.cache.slots.Load(scope)
	s := held.(*slot)
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, err := e.vectors.likeness(s, &vectorQuery{vector: v})
	if err != nil {
		t.Fatal(err)
	}
	turns := slices.SortedFunc(maps.Keys(found.z), func(a, b int32) int { return cmp.Or(cmp.Compare(found.z[b], found.z[a]), int(a-b)) })
	var list []int
	for _, n := range turns {
		var u int
		m := s.ix.memory(s.ix.turns[n].mem, scope)
		fmt.Sscanf(m.Provenance.Turn, "%x", &u)
		list = append(list, u)
	}
	return list
}

func same(s string) string { return s }

func below(list []float64, gate float64) float64 {
	n := 0.0
	for _, r := range list {
		if r < gate {
			n++
		}
	}
	return n / float64(max(len(list), 1))
}

// Bad vectors must cost little, good ones must gain much, weighting must beat
// fusion by rank, and the gate must still reject questions about another store.
func TestVectorFusion(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	set := loadSet(t, "locomo_a")
	var texts []string
	for _, c := range set.Convs {
		for _, said := range c.Turns {
			texts = append(texts, said.Text)
		}
	}
	weak := trainEmbedder(384, 1, texts)
	hinted := &hintedEmbedder{corpusEmbedder: weak, hint: 0.3, told: map[string][]float32{}}
	for _, c := range set.Convs {
		for _, q := range c.Qs {
			hinted.observe(q, c)
		}
	}
	gate := DefaultConfig().Gate
	for _, c := range []struct {
		name  string
		em    Embedder
		least float64 // of fused to words, NDCG@10
	}{{"weak", weak, -0.035}, {"hinted", hinted, 0.02}} {
		f := measureFusion(t, set, false, c.em)
		t.Logf("%s: words %v; vectors %v; fused %v; by rank %v; kept %.3f (words %.3f), wrong store silenced %.3f (words %.3f)", c.name, &f.words, &f.vectors, &f.fused, &f.rrf,
			1-below(f.own, gate), 1-below(f.ownWords, gate), below(f.wrong, gate), below(f.wrongWords, gate))
		if got := (f.fused.ndcg - f.words.ndcg) / f.words.n; got < c.least {
			t.Errorf("%s: vectors change NDCG@10 by %.3f, want at least %.3f", c.name, got, c.least)
		}
		if f.fused.ndcg <= f.rrf.ndcg {
			t.Errorf("%s: fusion by rank is as good as weighting", c.name)
		}
		if got := below(f.wrong, gate); got < 0.6 {
			t.Errorf("%s: %.3f of the questions about another store are rejected, want at least 0.6", c.name, got)
		}
		if below(f.own, gate) > below(f.ownWords, gate) {
			t.Errorf("%s: vectors reject questions that words answer", c.name)
		}
	}
}
