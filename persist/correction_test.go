package persist

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// dialog tells statements with what the assistant says after each, and returns what holds.
func dialog(t *testing.T, lines ...string) (got []string) {
	t.Helper()
	audited(t, func(cfg *Config) { cfg.Audit.PerAudit = 20 }, func(t *testing.T, p running, store *faulty, _ *indexed) {
		for i := 0; i < len(lines); i += 2 {
			reply := "I see. Tell me more about the couscous dinner, the mint tea and the guests on Saturday."
			if i+1 < len(lines) {
				reply = lines[i+1]
			}
			p.tell(t, turnOf(testScope, "t"+lines[i], lines[i], reply))
			time.Sleep(time.Minute)
		}
		got = current(factsOf(t, store, testScope))
	})
	slices.Sort(got)
	return got
}

// TestNoAsAnAnswer: a "no" takes back what was said before only if nothing else was asked, and of what one may have many of nothing
// that it does not name.
func TestNoAsAnAnswer(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"an allergy, to another question", []string{"I'm allergic to peanuts.", "Noted. Do you eat meat?", "No, I'm allergic to eggs."},
			[]string{`"I'm allergic to eggs."`, `"I'm allergic to peanuts."`}},
		{"an allergy, to no question", []string{"I'm allergic to peanuts.", "I see. Tell me more about the couscous dinner, the mint tea and the guests.", "No, I'm allergic to eggs."},
			[]string{`"I'm allergic to eggs."`, `"I'm allergic to peanuts."`}},
		{"an allergy, named", []string{"I'm allergic to peanuts.", "I see. Tell me more about the couscous dinner, the mint tea and the guests.", "No, I'm allergic to eggs, not to peanuts."},
			[]string{`"I'm allergic to eggs, not to peanuts."`}},
		{"to another question", []string{"We deploy the shop from the main branch.", "Good. Is the wiki deployed by hand?", "No, we deploy the wiki from the laptop branch."},
			[]string{`"We deploy the shop from the main branch."`, `"we deploy the wiki from the laptop branch."`}},
		{"to a question about it", []string{"We deploy the shop from the main branch.", "From main, is that right?", "No, we deploy the shop from release branches."},
			[]string{`"we deploy the shop from release branches."`}},
		{"to no question", []string{"We deploy the shop from the main branch.", "From main, then.", "No, we deploy the shop from release branches."},
			[]string{`"we deploy the shop from release branches."`}},
		{"more than a no, to another question", []string{"We deploy the shop from the main branch.", "Shall I write a script?", "No wait, I meant we deploy the shop from release branches."},
			[]string{`"we deploy the shop from release branches."`}},
		{"of its own message", []string{"Where is it from?", "Where do you deploy from?", "We deploy the shop from the main branch. No, we deploy the shop from release branches."},
			[]string{`"we deploy the shop from release branches."`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, dialog(t, c.lines...)); diff != "" {
				t.Errorf("holds (-want +got):\n%s", diff)
			}
		})
	}
}
