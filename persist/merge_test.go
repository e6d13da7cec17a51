package persist

import (
	"slices"
	"testing"
	"time"
)

// TestDistinctStatements has pairs of statements that share words but not
// meaning, or are about somebody else. The second neither repeats nor
// supersedes the first.
func TestDistinctStatements(t *testing.T) {
	for _, c := range [][2]string{
		{"I have 2 cats and 3 dogs.", "I have 3 cats and 2 dogs."},
		{"I moved from Hamburg to Munich.", "I moved from Munich to Hamburg."},
		{"Tom is the brother of Anna in my family.", "Anna is the brother of Tom in my family."},
		{"I like sushi but not sashimi.", "I like sashimi but not sushi."},
		{"I'm allergic to peanuts but not to almonds.", "I'm allergic to almonds but not to peanuts."},
		{"I eat meat and I eat fish.", "I don't eat meat and I don't eat fish."},
		{"My train to Paris leaves at 8:15.", "My train from Paris leaves at 8:15."},
		{"My cholesterol went up by 20 points.", "My cholesterol went down by 20 points."},
		{"I live in Potsdam.", "I don't live in Berlin anymore."},
		{"I live in Berlin.", "I have two sisters living in Spain."},
		{"I work at Siemens.", "I have a friend working at Google."},
		{"I work at Siemens.", "I no longer work at Bosch."},
		{"I prefer spaces over tabs.", "My colleagues prefer tabs over spaces."},
		{"My name is Jonas.", "My kids call me Papa."},
		{"My name is Jonas.", "Clients call me at 8 in the morning."},
		{"My name is Jonas.", "My name is not Peter."},
		{"I weigh 80 kg.", "I weigh my food every morning."},
		{"I am 40 years old.", "I want to retire when I am 60."},
		{"I'm allergic to peanuts.", "my son is allergic to eggs."}, // said as "No, my son ..."
	} {
		t.Run(c[1], func(t *testing.T) {
			withPipeline(t, func(cfg *Config) { cfg.Audit.PerAudit = 20 }, func(t *testing.T, p running, store *faulty, _ *indexed) {
				second := c[1]
				if second[0] == 'm' {
					second = "No, " + second
				}
				p.settle(t, userTurn("t1", c[0]))
				time.Sleep(time.Hour)
				p.settle(t, userTurn("t2", second))
				got := current(factsOf(t, store, testScope))
				for _, want := range c {
					if !slices.Contains(got, `"`+want+`"`) {
						t.Errorf("%q, then %q: facts %v", c[0], second, got)
					}
				}
			})
		})
	}
}

// TestSupersedingStatements has pairs of statements that can't both hold.
func TestSupersedingStatements(t *testing.T) {
	for _, c := range [][2]string{
		{"I prefer tea over coffee.", "I prefer coffee over tea."},
		{"I am vegetarian.", "I am not vegetarian anymore."},
		{"I smoke ten cigarettes a day.", "I no longer smoke ten cigarettes a day."},
		{"Always use tabs.", "Never use tabs."},
		{"Ich wohne in Berlin.", "Ich wohne nicht mehr in Berlin."},
		{"Je mange de la viande.", "Je ne mange pas de viande."},
		{"J'aime le café.", "Je n'aime pas le café."},
		{"My wife and I live in Berlin.", "I just moved to Hamburg."},
		{"I work at Siemens.", "I have been working at Northwind since May."},
		{"Call me Jo.", "You can call me Moritz."},
		{"I am 40 years old.", "I am 41 years old."},
		{"I have three cats.", "I have two cats."}, // said as "No, I have ..."
	} {
		t.Run(c[1], func(t *testing.T) {
			withPipeline(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
				second := c[1]
				if second == "I have two cats." {
					second = "No, " + second
				}
				p.settle(t, userTurn("t1", c[0]))
				time.Sleep(time.Hour)
				p.settle(t, userTurn("t2", second))
				if got := current(factsOf(t, store, testScope)); !slices.Equal(got, []string{`"` + c[1] + `"`}) {
					t.Errorf("%q, then %q: facts %v", c[0], second, got)
				}
			})
		})
	}
}
