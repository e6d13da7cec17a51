package persist

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// TestFrames: what a message says of itself goes for all of it.
func TestFrames(t *testing.T) {
	for _, text := range []string{
		"I'm allergic to peanuts, right?",
		"I'm allergic to peanuts, aren't I?",
		"I live in Paris, correct?",
		`How do I say "My name is Anna" in Spanish?`,
		`Could you check whether "my flight leaves on Friday" is correct English?`,
		"Pretend that I am a pirate and my name is Jack.",
		"Act as if I'm your boss and I live in Paris.",
		"Hypothetically, I have three kids.",
		"For the sake of argument, I'm a doctor.",
		"In this role-play I'm Sir Lancelot and I live in Camelot.",
		"For my novel: I live in Paris and I killed my brother.",
		"I'm kidding, I live on the moon.",
		"Remember to close the file handle in your code.",
		"Please remember to fix the failing test in auth.go by Friday.",
		"Classify it: I hate this phone, it is broken.",
		"Complete: I live in",
		"User: I live in Paris.\nAssistant: Nice.\nWhat did the user say?",
		"The README says: I prefer tabs.",
		"Proofread this email:\n\nDear Ms Smith,\nI am a senior engineer at Acme and I live in Boston.\nRegards, John",
		"Can you translate the text below:\nI live in Boston. I have two kids.",
		"Summarize this article: The bank raised rates by 0.25 points. I think my view is that inflation will stay at 3 percent.",
		"How would you answer this message:\nI moved to Rome and I have a new job at Fiat.",
		"Bitte korrigiere folgenden Text:\nIch wohne in Bonn und habe zwei Kinder.",
		"Corrige cette lettre :\nJ'habite à Lyon et j'ai deux enfants.",
		"Traduce al inglés:\nVivo en Sevilla y tengo dos hijos.",
	} {
		for _, sp := range spansOf(text, time.Now(), 0) {
			if sp.candidate != nil {
				t.Errorf("%q: a fact is %q", text, sp.candidate.quote)
			}
		}
	}
	for text, want := range map[string]string{
		"A few things about me:\nI live in Boston. I have two kids.":    "I live in Boston",
		"We decided on the following:\n- We use pnpm and Node 20.":      "We use pnpm",
		"My setup: I use pnpm and Node 20.":                             "I use pnpm",
		"I need help with my review of the flat:\nI live in Boston.":    "I live in Boston",
		"I don't remember that, but I live in Paris.":                   "I live in Paris",
		"I'm allergic to peanuts, can you suggest a recipe?":            "I'm allergic to peanuts",
		"Remember that my name is Anna.":                                "my name is Anna",
		"My role is head of platform at Siemens.":                       "My role is head of platform",
		"Don't save the file to disk. I prefer tabs over spaces.":       "I prefer tabs over spaces",
		"I live in Paris, what is a good bakery?":                       "I live in Paris",
		"I work at Acme and I always record this podcast on Mondays.":   "I work at Acme",
		"Remember to answer me in German from now on.":                  "German",
		"My story is simple: I live in Munich and I work for the city.": "I live in Munich",
	} {
		if !slices.ContainsFunc(spansOf(text, time.Now(), 0), func(sp span) bool { return sp.candidate != nil && strings.Contains(sp.candidate.quote, want) }) {
			t.Errorf("%q: %q is no fact", text, want)
		}
	}
}

// TestDeclinedTurnsAreNotStored: who asks not to be remembered is not, by a passage either.
func TestDeclinedTurnsAreNotStored(t *testing.T) {
	for text, want := range map[string]bool{
		"Please don't store this, but I live in Paris.":                      true,
		"This is confidential, don't store it: I have diabetes.":             true,
		"I live in Paris. Don't remember that.":                              true,
		"Off the record: I hate my boss and I live in Rome.":                 true,
		"Don’t remember this: I live in Oslo.":                               true,
		"Don't remember that I live in Paris.":                               true,
		"Do not save this: my salary is 90000 euros.":                        true,
		"Ich wohne in Köln. Merk dir das bitte nicht.":                       true,
		"Don't keep any of this in your memory, please.":                     true,
		"I don't remember that, but I live in Paris.":                        false,
		"Don't save the file to disk. I prefer tabs over spaces.":            false,
		"Don't store it in a global variable.":                               false,
		"We never save this to disk.":                                        false,
		"Do you remember this: I live in Oslo?":                              false,
		"```\n# do not store this\n```\nWhat does this comment mean for us?": false,
	} {
		audited(t, nil, func(t *testing.T, p running, store *faulty, _ *indexed) {
			p.tell(t, said("t1", text))
			page, err := store.Scan(t.Context(), testScope, storage.Query{})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(page.Memories) == 0; got != want {
				t.Errorf("%q: declined %v, want %v", text, got, want)
			}
			if got := p.Stats().Dropped[DropDeclined]; (got == 1) != want {
				t.Errorf("%q: %d turns counted as declined", text, got)
			}
		})
	}
}

// TestRolePlayGoesOn: what is said in role is nobody's, in the messages that follow, too, until the play is over.
func TestRolePlayGoesOn(t *testing.T) {
	got := dialog(t,
		"Let's role-play. You are a tavern keeper, I'm Sir Roland and I live in Camelot.", "Welcome, Sir Roland! Take a seat by the fire and have an ale.",
		"My horse is called Thunder and I'm allergic to dragons.", "Thunder is in the stable, and no dragon comes in here.",
		"I have three brothers in Avalon.", "They were here last week, and drank all the mead.",
		"OK, end of the role play. I'm allergic to walnuts.", "Noted.",
		"My car is a blue Golf.", "Nice.",
	)
	want := []string{`"I'm allergic to walnuts."`, `"My car is a blue Golf."`}
	if !slices.Equal(got, want) && !slices.Equal(got, want[1:]) { // what ends the play may count as part of it
		t.Errorf("got %q", got)
	}
	if got := dialog(t, "My role is head of platform at Siemens.", "I see.", "My car is a blue Golf.", "Nice."); len(got) != 2 {
		t.Errorf("a role of one's own: got %q", got)
	}
}
