package facts

import (
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
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
