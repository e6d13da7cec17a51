package recall

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// randomScope returns an engine with a random index: conversations of one turn
// to many, facts, texts of both sides, replaced and removed turns. The seed
// alone determines its content.
func randomScope(t testing.TB, r *rand.Rand, turns int) (*Engine, *index, func() string) {
	words := make([]string, 60+r.IntN(turns))
	for i := range words {
		words[i] = fmt.Sprintf("%c%cb%c%cn", 'b'+i%7, 'a'+i%5, 'c'+i/7%9, 'a'+i/63%20)
	}
	zipf := rand.NewZipf(r, 1.2, 3, uint64(len(words)-1))
	sentence := func() string {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(words[zipf.Uint64()] + " ")
		}
		return []string{"", "I ", "yesterday ", "two ", "always ", "I prefer "}[r.IntN(6)] + b.String() + []string{".", "?", "!"}[r.IntN(3)]
	}
	var ms []storage.Memory
	conv, left := 0, 0
	for i := range turns {
		if left--; left <= 0 {
			conv, left = conv+1, []int{1, 1, 2, 9, 80}[r.IntN(5)]
		}
		for seq := range 1 + r.IntN(3) {
			m := storage.Memory{Kind: storage.KindEpisode, Trust: 1, Text: sentence(), Conversation: fmt.Sprint("c", conv), EventTime: storage.Time(i) * 1e6}
			m.Provenance = storage.Provenance{Turn: fmt.Sprint("t", i), Chain: chainOf(i), Seq: seq, Speaker: []string{"", "Zoe", "Quin"}[r.IntN(3)], Role: storage.RoleUser}
			if seq > 0 && r.IntN(4) > 0 {
				m.Provenance.Role, m.Provenance.Speaker = storage.RoleAssistant, ""
			}
			if m.ID = storage.TurnMemoryID(m.Provenance.Turn, seq); seq == 2 && r.IntN(2) == 0 {
				m.Kind, m.ID = storage.KindFact, fmt.Sprint("f", i)
			}
			for r.IntN(20) == 0 { // beyond the lengths that are exact in a turnHeader
				m.Text += strings.Repeat(sentence(), 12)
			}
			ms = append(ms, m)
		}
	}
	cfg := patient()
	cfg.Weights.Phrase = 0
	e, _ := newEngine(t, cfg, ms)
	recallIDs(t, e, Request{Newest: "hello"})
	for range turns / 8 {
		m := ms[r.IntN(len(ms))]
		if e.Forget(alice, m.ID); r.IntN(3) == 0 {
			m.Text = sentence()
			e.Add(alice, m.Provenance.Turn, []storage.Memory{m})
		}
	}
	ix := resting(t, e).ix
	ask := func() string {
		return []string{"", "", "Zoe ", "when ", "how many ", "did you say ", "what should I do? "}[r.IntN(7)] + sentence() + []string{"", sentence()}[r.IntN(2)]
	}
	return e, ix, ask
}

// chainOf returns the chain of a turn of randomScope.
func chainOf(turn int) string { return fmt.Sprintf("%032x", turn+1) }

// ranked returns the hits of the index, and those of scoring every turn with
// all fields by explain.
func ranked(t testing.TB, e *Engine, ix *index, question string, k int) (hits, all []hit) {
	w := &e.cfg.Weights
	q := e.searcher.readQuery(question, nil, storage.Time(1e9).Std(), text.English)
	resolver{ix}.resolve(q, e.cfg.MaxTerms, w)
	s := new(scratch)
	f := &q.passes
	e.searcher.filter(ix, &Request{}, f)
	ranker{ix}.rank(q, w, s, k, f)
	for _, c := range s.cells {
		of := ix.turns[c.turn]
		for i := of.mem; i < of.mem+int32(of.count); i++ {
			if q.coverage(ix.head(i).packed) > 0 && c.holds.user|c.holds.kin|c.holds.assistant == 0 {
				t.Errorf("%q: no word of passage %d was recorded", question, i)
			}
		}
		if got, ok := q.userCoverage(c.holds); ok && of.flags&turnSpoken != 0 {
			if want := q.coverage(ix.head(of.mem).packed); !nearly(got, want) {
				t.Errorf("%q: recorded coverage of passage %d: got %v, want %v", question, of.mem, got, want)
			}
		}
	}
	hits = slices.Clone(ranker{ix}.best(q, w, s, k, f))
	ranker{ix}.sort(hits)
	for n := range ix.turns {
		if ix.turns[n].flags&turnDead != 0 {
			continue
		}
		score, factor := 0.0, 1.0
		for _, p := range (ranker{ix}).explain(hit{turn: int32(n)}, q, w) {
			if p.Term != "" {
				score += p.Value
			} else {
				factor *= p.Value
			}
		}
		if score > 0 {
			all = append(all, hit{turn: int32(n), score: score * factor})
		}
	}
	ranker{ix}.sort(all)
	for i, v := range s.sums {
		if v != 0 {
			t.Fatalf("%q: the sum of turn %d was not cleared", question, i)
		}
	}
	return hits, all
}

func nearly(a, b float64) bool { return math.Abs(a-b) <= 1e-4*max(a, b) }

// FuzzRanking compares the ranking, which scores few turns, with that of all
// turns. In a small index the best turns are the same. In a larger one each
// turn that is found has its full score, and few of the best are missed. The
// number of turns is limited because the fuzzer takes an input of more than ten
// seconds for a deadlock.
func FuzzRanking(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, uint16(20+seed*12))
		f.Add(seed, uint16(500))
	}
	f.Fuzz(func(t *testing.T, seed uint64, turns uint16) {
		r := rand.New(rand.NewPCG(seed, 1))
		e, ix, ask := randomScope(t, r, int(turns%512)+1)
		const k = 32
		missed, asked := 0, 0
		for range 12 {
			question := ask()
			hits, all := ranked(t, e, ix, question, k)
			full, found := map[int32]float64{}, map[int32]bool{}
			for _, h := range all {
				full[h.turn] = h.score
			}
			for _, h := range hits {
				found[h.turn] = true
				if want := full[h.turn]; !nearly(h.score, want) {
					t.Errorf("%q: turn %d scores %v, want %v", question, h.turn, h.score, want)
				}
			}
			if !slices.IsSortedFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) }) {
				t.Errorf("%q: not in order", question)
			}
			for i, want := range all[:min(len(all), k/4)] {
				asked++
				if !found[want.turn] && (len(hits) < k || !nearly(hits[k-1].score, want.score)) { // each that is missed shifts the places after it
					missed++
				}
				if len(all) <= k*seedsPerTurn && (i >= len(hits) || !nearly(hits[i].score, want.score)) {
					t.Errorf("%q: at place %d: want turn %d with score %v", question, i, want.turn, want.score)
				}
			}
		}
		if asked > 40 && missed > asked/10 {
			t.Errorf("%d of the best %d missed", missed, asked)
		}
	})
}
