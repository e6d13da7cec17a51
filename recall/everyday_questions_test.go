package recall

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// everydayStore is a store of testdata/everyday.txt.
type everydayStore struct {
	name      string
	memories  []storage.Memory
	questions [][2]string // with what must be found
}

func readEveryday(t *testing.T) (stores []*everydayStore) {
	b, err := os.ReadFile("testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	var s *everydayStore
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		kind, rest, _ := strings.Cut(line, " ")
		turn := 0
		if s != nil {
			turn = len(s.memories) + 1
		}
		switch kind {
		case "", "#":
		case "=":
			s = &everydayStore{name: rest}
			stores = append(stores, s)
		case "?":
			question, want, ok := strings.Cut(rest, " =>")
			if !ok {
				t.Fatalf("%q has no =>", line)
			}
			s.questions = append(s.questions, [2]string{question, strings.TrimSpace(want)})
		case "!":
			fact := factOf(turn, `"`+rest+`"`)
			s.memories = append(s.memories, exchange("c"+rest, turn, rest, "OK.")...)
			fact.Provenance.Turn = s.memories[len(s.memories)-1].Provenance.Turn
			s.memories = append(s.memories, fact)
		default:
			s.memories = append(s.memories, exchange("c"+line, turn, line, "OK.")...)
		}
	}
	return stores
}

// People ask in other words than they told, with courtesies, in many languages,
// while their store has a few turns. They must find it, see little else, and
// nothing if they ask for what no memory knows.
func TestEverydayQuestions(t *testing.T) {
	var asked, found, quiet, silent, lines, helped float64
	for _, s := range readEveryday(t) {
		e, _ := newEngine(t, patient(), s.memories)
		for _, q := range s.questions {
			got := recallLines(t, e, Request{Newest: q[0]})
			if q[1] == "" {
				if quiet++; len(got) == 0 {
					silent++
				} else {
					t.Logf("%s: %q: got %q, want nothing", s.name, q[0], got)
				}
				continue
			}
			asked++
			wanted := strings.Split(q[1], ";")
			has := func(line, alternatives string) bool {
				return slices.ContainsFunc(strings.Split(alternatives, "/"), func(a string) bool { return strings.Contains(line, a) })
			}
			missing := slices.ContainsFunc(wanted, func(w string) bool {
				return !slices.ContainsFunc(got, func(line string) bool { return has(line, w) })
			})
			if !missing {
				found++
			} else {
				t.Logf("%s: %q: got %q, want %s", s.name, q[0], got, q[1])
			}
			for _, line := range got {
				if lines++; slices.ContainsFunc(wanted, func(w string) bool { return has(line, w) }) {
					helped++
				}
			}
		}
	}
	t.Logf("found %.0f of %.0f, silent %.0f of %.0f, %.0f of %.0f lines help", found, asked, silent, quiet, helped, lines)
	if found < 0.9*asked || silent < 0.95*quiet || helped < 0.6*lines {
		t.Error("want at least 0.9 found, 0.95 silent and 0.6 of the lines to help")
	}
}
