package recall

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// No message makes a request fail.
func TestQueriesOfEveryKind(t *testing.T) {
	binary := make([]byte, 100_000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range binary {
		binary[i] = byte(r.Uint32())
	}
	long := strings.Repeat("Where did my sister Ada move, and when did she say so? ", 2000)
	ms := texts("My sister Ada moved to Lisbon in March.", "The bread was too dark.")
	e, _ := newEngine(t, patient(), ms)
	for name, q := range map[string]string{
		"empty": "", "blanks": " \n\t ", "100 kB": long, "binary": string(binary), "zeros": string(make([]byte, 1000)),
		"one word": strings.Repeat("a", 100_000), "cut character": "Where is Ada \xe2\x80", "marks": "???!!!...",
	} {
		for _, explain := range []bool{false, true} {
			res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: q, Previous: func() string { return string(binary) }, NoGate: true, Explain: explain})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if want := name == "100 kB" || name == "cut character"; want && len(res.Memories) == 0 {
				t.Errorf("%s: got nothing", name)
			}
		}
	}
}

// Memories may be in languages without a stemmer, of invalid bytes, and longer
// than every limit.
func TestStoresOfEveryKind(t *testing.T) {
	said := texts(
		"Sɛ wopɛ sɛ wohu a, kɔ Kumasi anadwo.", "Ngiyabonga kakhulu mngane wami eThekwini.", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎠᎩᏃᎮᏗ", "ชอบกินข้าวเหนียวมะม่วงที่เชียงใหม่",
		"내 여동생은 부산으로 이사했다", "\xff\xfe\x00\x01 broken bytes \xc3", strings.Repeat("x", 70_000), strings.Repeat("word and ", 20_000),
		"🙂🙂🙂", "...", "a\x00b",
	)
	for name, src := range map[string]Source{"records": &fakeSource{ms: map[storage.Scope][]storage.Memory{alice: said}}, "store": newDigesting(t, said)} {
		e := loadedEngine(t, src)
		for q, want := range map[string]int{
			"Where is Kumasi anadwo?": 0, "mngane wami eThekwini": 1, "ᎦᏬᏂᎯᏍᏗ": 2, "ข้าวเหนียวมะม่วง": 3, "여동생 부산": 4, "broken bytes": 5,
		} {
			if got := recallIDs(t, e, Request{Newest: q, NoGate: true}); len(got) == 0 || got[0] != said[want].ID {
				t.Errorf("%s: %q gives %v, want %s first", name, q, got, said[want].ID)
			}
		}
	}
}

// The choice of candidates loses next to nothing against an exact ranking of
// all turns.
func TestCandidatesAreTheBest(t *testing.T) {
	ms, questions := corpusOf(t, 10_000, "locomo_a")
	e, _ := newEngine(t, patient(), ms)
	same, all := 0, 0
	for i := 0; i < len(questions); i += 7 {
		few := recallIDs(t, e, Request{Newest: questions[i], NoGate: true, BudgetTokens: 1e6})
		many := recallIDs(t, e, Request{Newest: questions[i], NoGate: true, BudgetTokens: 1e6, TopK: MaxTopK})
		for _, id := range many[:min(len(many), len(few))] {
			all++
			if slices.Contains(few, id) {
				same++
			}
		}
	}
	if share := float64(same) / float64(all); share < 0.97 {
		t.Errorf("%.3f of the best eight stay when fewer are picked, want 0.97", share)
	}
}
