package persist

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/persist/extract"
)

// factsOfDialog persists statements, each followed by the assistant's answer,
// and returns the facts that hold then.
func factsOfDialog(t *testing.T, lines ...string) (got []string) {
	t.Helper()
	withPipeline(t, func(cfg *Config) { cfg.Audit.PerAudit = 20 }, func(t *testing.T, p running, store *faulty, _ *indexed) {
		for i := 0; i < len(lines); i += 2 {
			reply := "I see. Tell me more about the couscous dinner, the mint tea and the guests on Saturday."
			if i+1 < len(lines) {
				reply = lines[i+1]
			}
			p.settle(t, turnOf(testScope, "t"+lines[i], lines[i], reply))
			time.Sleep(time.Minute)
		}
		got = current(factsOf(t, store, testScope))
	})
	slices.Sort(got)
	return got
}

// TestBareNo checks that a "no" takes back an earlier statement only if nothing
// else was asked, and that what one may have several of stays unless it is
// named.
func TestBareNo(t *testing.T) {
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
			if diff := cmp.Diff(c.want, factsOfDialog(t, c.lines...)); diff != "" {
				t.Errorf("holds (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFragmentCorrections checks that a fragment that corrects a value repeats
// the earlier statement with that value, if that is unambiguous.
func TestFragmentCorrections(t *testing.T) {
	const couscous = "I see. Tell me more about the couscous dinner, the mint tea and the guests."
	for _, c := range []struct{ before, after, want string }{
		{"My budget for the bathroom is 2,000 euros.", "No, I meant 3,000 euros for the bathroom.", "My budget for the bathroom is 3,000 euros."},
		{"My budget for the bathroom is 2,000 euros.", "sorry, 3,000 euros", "My budget for the bathroom is 3,000 euros."},
		{"My budget for the bathroom is $2,000.", "Wait, $3,000. Can you make a plan?", "My budget for the bathroom is $3,000."},
		{"Meine Miete beträgt 900 Euro.", "Nein, 950 Euro.", "Meine Miete beträgt 950 Euro."},
		{"Our demo in the big hall is on Friday.", "Sorry, I meant Monday.", "Our demo in the big hall is on Monday."},
		{"My thesis defence is on 3 March.", "oops, 5 March", "My thesis defence is on 5 March."},
		{"My sister's birthday is June 3rd.", "No wait, June 13th.", "My sister's birthday is June 13th."},
		{"Meine Prüfung ist am 3. Mai.", "Sorry, 13. Mai.", "Meine Prüfung ist am 13. Mai."},
		{"I have two cats in my flat.", "sorry, three cats. I forgot about Momo.", "I have three cats in my flat."},
		{"My interview is at 3pm on Tuesday.", "make that 4pm", "My interview is at 4pm on Tuesday."},
		// ambiguous
		{"I have two cats in my flat.", "sorry, three dogs", ""},
		{"My budget for the bathroom is 2,000 euros.", "make it 4 columns", ""},
		{"My budget for the bathroom is 2,000 euros.", "sorry, 3 tiles", ""},
		{"My budget for the bathroom is 2,000 euros.", "sorry, 3,000 euros for the kitchen", ""},
		{"My budget for the bathroom is 2,000 euros.", "sorry, 3,000 or 4,000 euros", ""},
		{"My budget for the bathroom is 2,000 euros.", "sorry, 3,000 euros?", ""},
		{"My budget for the bathroom is 2,000 euros. Can you find a bath for 900 euros?", "sorry, 800 euros", ""},
		{"My budget for the bathroom is 2,000 euros.", "3,000 euros for the bathroom would be better", ""},
		{"My budgets are 2,000 euros for the bathroom and 5,000 euros for the garden.", "sorry, 3,000 euros", ""},
		{"My budget for the bathroom is 2,000 euros. My rent is 900 euros.", "sorry, 3,000 euros", ""},
	} {
		want := []string{`"` + c.want + `"`}
		if c.want == "" {
			want = factsOfDialog(t, c.before, couscous)
		}
		got := factsOfDialog(t, c.before, couscous, c.after, couscous)
		for i := range got { // without dates
			q, _, _ := extract.Quotation(got[i])
			got[i] = `"` + q + `"`
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
			t.Errorf("%q, then %q (-want +got):\n%s", c.before, c.after, diff)
		}
	}
	tiles := "The tiles alone cost 1,500 euros, so there is not much left for the rest of the room."
	if got := factsOfDialog(t, "My budget for the bathroom is 2,000 euros.", tiles, "Sorry, 3,000 euros."); len(got) != 1 || got[0] != `"My budget for the bathroom is 2,000 euros."` {
		t.Errorf("another amount between: %v", got)
	}
	question := "Will the bathroom tiles cost 3,500 euros?"
	if got := factsOfDialog(t, "My budget for the bathroom is 2,000 euros.", question, "No, 3,000 euros."); len(got) != 1 || got[0] != `"My budget for the bathroom is 2,000 euros."` {
		t.Errorf("an answer: %v", got)
	}
}

// TestMoveChangesHome checks that the place somebody moved to is the home.
func TestMoveChangesHome(t *testing.T) {
	for _, c := range [][2]string{
		{"Ich wohne in Köln am Dom.", "Ich bin letzten Monat nach Düsseldorf umgezogen."},
		{"Vivo en Sevilla cerca del río.", "Me he mudado a Cádiz."},
		{"J'habite à Lyon depuis longtemps.", "J'ai déménagé à Grenoble."},
		{"We live in Berlin near the park.", "We've settled in Hamburg now."},
	} {
		if got := factsOfDialog(t, c[0], "Thank you, noted.", c[1], "Thank you, noted."); len(got) != 1 || !strings.HasPrefix(got[0], `"`+c[1][:8]) {
			t.Errorf("%q: holds %q", c, got)
		}
	}
}
