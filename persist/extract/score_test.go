package extract

import (
	"math"
	"strings"
	"testing"
	"time"
)

// TestScoreParts compares each part of the score with values computed by hand
// from the formula.
func TestScoreParts(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	all := []string{"peanut", "dinner", "couscous", "mint", "saturday", "tagine"}
	var keywords []Keyword
	for _, w := range all {
		keywords = append(keywords, Keyword{w, 1})
	}
	window := func(ws ...string) map[string]bool {
		m := map[string]bool{}
		for _, x := range ws {
			m[x] = true
		}
		return m
	}
	near("r of none", relevance(window("other"), keywords), 0)
	near("r of two", relevance(window("peanut", "mint", "other"), keywords), 0.4)
	near("r of six", relevance(window(all...), keywords), 1)

	near("c now", recency(0), 1)
	near("c after 36 h", recency(36*time.Hour), math.Exp(-1))
	near("c of the future", recency(-time.Hour), 1)

	say := func(user bool, text string) Message { return Message{User: user, Text: text} }
	long := "a sentence of far more than fifty characters, to be sure of it"
	near("h of one short", coherence([]Message{say(true, "hello")}), 0)
	near("h of two", coherence([]Message{say(true, "hello"), say(false, "hi")}), 0.3)
	near("h of one long", coherence([]Message{say(true, long)}), 0.3)
	near("h of an answer", coherence([]Message{say(true, "why?"), say(false, "so")}), 0.7)
	near("h of own answer", coherence([]Message{say(true, "why?"), say(true, "so")}), 0.3)
	near("h of all", coherence([]Message{say(true, "why?"), say(false, long)}), 1)

	for _, c := range []struct {
		text string
		want float64
	}{
		{"I'm allergic to peanuts.", .4},
		{"Always use tabs in this project.", .25 + .4},
		{"My goal is to run a marathon.", .4}, // "goal" is a fact of mine here: see below
		{"I want to learn Portuguese.", .25 + .4 + .1},
		{"I have three kids.", .4 + .1},
		{"My site is at https://example.org today.", .4 + .1 + .25},
		{"We use `make` for builds.", .4 + .15},
		{"I work at Northwind.", .4 + .1},
		{"The staging database runs on port 5433.", .1},
		{"The release is on Friday.", .25 + .1},
		{"Remember that the door code is 4711.", .25 + .1 + .4},
	} {
		sp := judge(c.text)
		if sp.candidate == nil {
			t.Errorf("%q is no candidate: %s", c.text, sp.reject)
			continue
		}
		sp.candidate.dates = datesIn(sp.candidate.words, time.Now())
		want := c.want
		if strings.HasPrefix(c.text, "My goal") {
			want += .25
		}
		near(c.text, importance(sp.candidate), want)
	}
	near("i is capped", importance(&Candidate{kind: markStanding, Requested: true, Quote: "Call `f_x` 3 times at https://e.org/A by Friday", words: words("Call f_x 3 times at Berlin by Friday exam")}), 1)
	q := Score{Relevance: .4, Importance: .5, Recency: .5, Coherence: .7}
	q.sum()
	near("Q", q.Total, .4*.4+.3*.5+.2*.5+.1*.7)
}

// TestStatementsOfOneselfAreRelevant checks that a plain statement is saved
// that is all a conversation holds, whatever the answer, and what is of the
// moment is not.
func TestStatementsOfOneselfAreRelevant(t *testing.T) {
	for text, want := range map[string]bool{
		"I'm 41": true, "I'm a vegan": true, "I can't eat lactose": true, "I live in Leeds": true, "My name is Ada": true, "Ich wohne in Graz": true, "Je suis gaucher": true, "Soy zurda": true,
		"Я вегетарианка": true, "我吃素": true, "I'm writing a speech for my boss": false,
	} {
		for _, answer := range []string{"Got it.", "OK", ""} {
			at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
			result, err := Read([]Message{{User: true, Text: text, Time: at, New: true}, {Text: answer, Time: at, New: true}}, &Summary{}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			saved := false
			for _, c := range result.Candidates {
				saved = saved || c.Score.Total >= DefaultThreshold
			}
			if saved != want {
				t.Errorf("%q, %q: saved %v, want %v", text, answer, saved, want)
			}
		}
	}
}
