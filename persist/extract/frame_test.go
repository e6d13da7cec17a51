package extract

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFrames checks that the frame of a message applies to all of it.
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
				t.Errorf("%q: %q is a fact", text, sp.candidate.Quote)
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
		if !slices.ContainsFunc(spansOf(text, time.Now(), 0), func(sp span) bool { return sp.candidate != nil && strings.Contains(sp.candidate.Quote, want) }) {
			t.Errorf("%q: %q is not a fact", text, want)
		}
	}
}
