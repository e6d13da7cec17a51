package facts

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// A statement supersedes a short fact that it changes in other words, and
// nothing else.
func TestChangedInOtherWords(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for _, test := range []struct {
		old, newer string
		want       Outcome
	}{
		{"I work at Siemens.", "I left Siemens and started at Bosch.", Superseded},
		{"I'm single.", "I got married to Tom.", Superseded},
		{"I'm vegetarian.", "I eat meat again.", Superseded},
		{"I'm 41 years old.", "I turned 42.", Superseded},
		{"I take magnesium every evening.", "I no longer take magnesium.", Superseded},
		{"We use Mocha for the tests.", "We switched from Mocha to Vitest.", Superseded},
		{"Ich arbeite bei Bosch.", "Ich habe bei Bosch gekündigt.", Superseded},
		{"Mon vol pour Dakar est le 3 mars.", "Mon vol pour Dakar est reporté au 9 mars.", Superseded},
		{"Trabajo en Telefónica.", "He dejado Telefónica y ahora estoy en Orange.", Superseded},

		{"I work at Siemens.", "My brother left Siemens.", Added},
		{"I play the violin.", "I also play cello now.", Added},
		{"I live in Leeds.", "I used to live in Oslo.", Added},
		{"I work at Siemens.", "I might leave Siemens.", Added},
		{"The dentist appointment is on 4 May.", "The vet appointment moved to 9 May.", Added},
		{"I'm vegetarian.", "My husband eats meat again.", Added},
		// More than one value: only a part has changed, so recall tags it.
		{"The quince is 4.20, the plum 3.20 and the fig 3.90.", "The quince is now 4.60.", Added},
	} {
		s, store := NewSet(testScope), memoryStore{}
		cfg := Config{Max: 100, Retention: time.Hour, LongRetention: time.Hour, KeepLonger: 1, HalfLife: time.Hour}
		merge := func(said, turn string, at time.Time) (out Outcome) {
			c := NewChanges(s, store, cfg)
			from := &extract.Candidate{Quote: said, Time: at, Order: 1}
			out, err := c.Merge(t.Context(), from, Origin{Conversation: turn, Turn: turn})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range c.Written() {
				store[m.ID] = m
			}
			return out
		}
		merge(test.old, "t1", at)
		if got := merge(test.newer, "t2", at.Add(time.Hour)); got != test.want {
			t.Errorf("%q, then %q: got %v, want %v", test.old, test.newer, got, test.want)
		}
		if got := merge(test.newer, "t2", at.Add(time.Hour)); got != Known {
			t.Errorf("%q, then %q: again it is %v", test.old, test.newer, got)
		}
	}
}

// manyClassed returns a Set of n short facts of a class, each said later than
// the one before, and a statement after all of them that shares no word.
func manyClassed(n int) (*Changes, *fact) {
	s := NewSet(testScope)
	for i := range n {
		s.Load(&storage.Memory{
			ID: fmt.Sprintf("f%05d", i), Kind: storage.KindFact, Trust: 1, Text: fmt.Sprintf(`"I work at Siemens%d."`, i), EventTime: storage.Time(1000 + i),
		})
	}
	f := parse(&storage.Memory{ID: "newer", Text: `"I got a new job yesterday."`, Trust: 1, EventTime: storage.Time(2000 + n)})
	return NewChanges(s, memoryStore{}, Config{Max: n}), f
}

func TestNewestOfAClass(t *testing.T) {
	for n, want := range map[int][]string{
		3:   {"f00002", "f00001", "f00000"},
		100: {"f00099", "f00098", "f00097", "f00096", "f00095", "f00094", "f00093", "f00092"},
	} {
		c, f := manyClassed(n)
		var got []string
		for _, old := range c.sharing(f, true) {
			got = append(got, old.id)
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d: got %q, want %q", n, got, want)
		}
		if found := c.sharing(f, false); len(found) > 0 {
			t.Errorf("of %d: %d share a word", n, len(found))
		}
	}
}

func BenchmarkSharing(b *testing.B) {
	c, f := manyClassed(10_000)
	for b.Loop() {
		c.sharing(f, true)
	}
}
