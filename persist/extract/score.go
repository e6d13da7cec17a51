package extract

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The score of a candidate is
//
//	Q = 0.4 relevance + 0.3 importance + 0.2 recency + 0.1 coherence
//
// with each part between 0 and 1. These are all its constants. They were tuned
// together on the conversations in persist/testdata, so change none of them
// alone.
const (
	// DefaultThreshold is the Q from which on a candidate is saved,
	// DefaultKeepLonger that from which on it is kept longer. Both can be
	// configured.
	DefaultThreshold  = 0.65
	DefaultKeepLonger = 0.8

	weightRelevance  = 0.4
	weightImportance = 0.3
	weightRecency    = 0.2
	weightCoherence  = 0.1

	// Relevance is the share of so many keywords of the conversation's summary
	// that the window holds, at most 1.
	relevantKeywords = 5

	// Importance is the sum of what the statement has of these, at most 1.
	weightDirective  = 0.25 // a wish that goes for every answer, or asked to be remembered
	weightGoal       = 0.25 // a goal, a deadline or a date
	weightNumber     = 0.1
	weightURL        = 0.1
	weightCode       = 0.15 // a name, path or command of code
	weightEntity     = 0.1  // a name
	weightUserMarked = 0.4  // what users say about themselves

	// Recency is exp(-age / recencyAge); age counts to the window's newest
	// message.
	recencyAge = 36 * time.Hour

	// Coherence is the sum of what the window has of these.
	weightAnswered = 0.4 // a question with its answer
	weightSeveral  = 0.3 // at least severalMessages messages
	weightLong     = 0.3 // more than longCharacters characters

	severalMessages = 2
	longCharacters  = 50
)

// Score is Q and its parts, each between 0 and 1.
type Score struct{ Relevance, Importance, Recency, Coherence, Total float64 }

func (s *Score) sum() {
	s.Total = weightRelevance*s.Relevance + weightImportance*s.Importance + weightRecency*s.Recency + weightCoherence*s.Coherence
}

// relevanceOf returns how relevant a statement is: fully where its speaker says
// it of themselves, not of the moment, which people do to be known by it, and as far as the rest
// of the conversation is about the same otherwise. So what users state of
// themselves is kept even if it is all that a conversation holds.
func relevanceOf(c *Candidate, conversation float64) float64 {
	if marked(c) && !c.passing {
		return 1
	}
	return conversation
}

// relevance counts the keywords that the window holds.
func relevance(window map[string]bool, keywords []Keyword) float64 {
	n := 0
	for _, k := range keywords {
		if window[k.Word] {
			n++
		}
	}
	return min(float64(n)/relevantKeywords, 1)
}

func recency(age time.Duration) float64 {
	return math.Exp(-float64(max(age, 0)) / float64(recencyAge))
}

func coherence(window []Message) float64 {
	h, length := 0.0, 0
	spokenBySpeaker, answered := "", false
	for i := range window {
		m := &window[i]
		length += utf8.RuneCountInString(m.Text)
		who := "a" + m.Speaker
		if m.User {
			who = "u" + m.Speaker
		}
		answered = answered || spokenBySpeaker != "" && spokenBySpeaker != who && strings.TrimSpace(m.Text) != ""
		spokenBySpeaker = ""
		if strings.ContainsAny(m.Text, "?？") {
			spokenBySpeaker = who
		}
	}
	if answered {
		h += weightAnswered
	}
	if len(window) >= severalMessages {
		h += weightSeveral
	}
	if length > longCharacters {
		h += weightLong
	}
	return min(h, 1)
}

func importance(c *Candidate) float64 {
	directive := c.kind == markStanding || c.Requested
	goal := c.kind == markGoal || due(c.words) || len(c.dates) > 0
	code := strings.Contains(c.Quote, "`")
	number, entity := false, false
	for i := range c.words {
		w := &c.words[i]
		number = number || hasDigit(w.folded) || smallNumber[w.folded] > 1
		code = code || strings.Contains(w.raw, "_") || camel(w.raw)
		entity = entity || properName(c.words, i) && utf8.RuneCountInString(w.raw) > 1
	}
	sum := 0.0
	for _, s := range [...]struct {
		holds  bool
		weight float64
	}{
		{directive, weightDirective}, {goal, weightGoal}, {number, weightNumber}, {links(c.Quote), weightURL}, {code, weightCode},
		{entity, weightEntity}, {marked(c), weightUserMarked},
	} {
		if s.holds {
			sum += s.weight
		}
	}
	return min(sum, 1)
}

// marked reports whether the user states something of themselves, or asks to
// remember it.
func marked(c *Candidate) bool {
	switch c.kind {
	case markName, markPreference, markStanding, markDecision, markGoal, markFact:
		return true
	}
	return c.Requested || slices.ContainsFunc(c.words, func(w word) bool { return w.in(inPersonal) })
}

// constrains reports whether answers do harm if they ignore the statement: it
// is about an allergy or an illness.
func constrains(c *Candidate) bool {
	for i := range c.words {
		if c.words[i].in(inConstraint) {
			return true
		}
	}
	return strings.Contains(c.Quote, "过敏") || strings.Contains(c.Quote, "過敏") || strings.Contains(c.Quote, "アレルギー")
}

// camel recognises camelCase.
func camel(s string) bool {
	for i := 1; i < len(s); i++ {
		if s[i] >= 'A' && s[i] <= 'Z' && s[i-1] >= 'a' && s[i-1] <= 'z' {
			return true
		}
	}
	return false
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }
