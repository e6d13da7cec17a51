package persist

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// quality is a score and its parts, each between 0 and 1: see [QualityWeights].
type quality struct{ r, i, c, h, total float64 }

// windowMessage is one message as an audit sees it.
type windowMessage struct {
	turn    string
	chain   string
	source  string
	model   string
	speaker string
	user    bool
	text    string
	at      time.Time
	fresh   bool // no audit has seen it
	held    bool // fresh, but not for the audit that is being made: see [talk.hold]
	shown   int  // number of the distiller's call that it was shown in, 0 = none
	place   int  // where it stood in that
}

// relevance is r: how many of the summary's keywords the window holds.
func (w *QualityWeights) relevance(window map[string]int, keywords []string) float64 {
	n := 0
	for _, k := range keywords {
		if window[k] > 0 {
			n++
		}
	}
	return min(float64(n)/float64(w.RelevanceMatches), 1)
}

// importance is i.
func (w *QualityWeights) importance(c *candidate) float64 {
	f := featuresOf(c)
	sum := 0.0
	for _, s := range [...]struct {
		holds  bool
		weight float64
	}{
		{f.directive, w.Directive}, {f.goal, w.Goal}, {f.number, w.Number}, {f.url, w.URL}, {f.code, w.Code}, {f.entity, w.Entity},
		{f.userMarked, w.UserMarked},
	} {
		if s.holds {
			sum += s.weight
		}
	}
	return min(sum, 1)
}

// recency is c.
func (w *QualityWeights) recency(age time.Duration) float64 {
	return math.Exp(-float64(max(age, 0)) / float64(w.RecencyAge))
}

// coherence is h.
func (w *QualityWeights) coherence(window []windowMessage) float64 {
	h, length, asked := 0.0, 0, ""
	answered := false
	for i := range window {
		m := &window[i]
		length += utf8.RuneCountInString(m.text)
		who := "a" + m.speaker
		if m.user {
			who = "u" + m.speaker
		}
		answered = answered || asked != "" && asked != who && strings.TrimSpace(m.text) != ""
		asked = ""
		if strings.IndexByte(m.text, '?') >= 0 || strings.Contains(m.text, "？") {
			asked = who
		}
	}
	if answered {
		h += w.Answered
	}
	if len(window) >= w.SeveralMessages {
		h += w.Several
	}
	if length > w.LongCharacters {
		h += w.Long
	}
	return min(h, 1)
}

// total is Q.
func (w *QualityWeights) total(q quality) float64 {
	return w.Relevance*q.r + w.Importance*q.i + w.Recency*q.c + w.Coherence*q.h
}

// features are what importance is made of.
type features struct{ directive, goal, number, url, code, entity, userMarked bool }

func featuresOf(c *candidate) features {
	f := features{
		directive: c.kind == markStanding || c.remembered, goal: c.kind == markGoal || due(c.words) || len(c.dates) > 0,
		url: links(c.quote), code: strings.Contains(c.quote, "`"), userMarked: c.remembered,
	}
	switch c.kind {
	case markName, markPreference, markStanding, markDecision, markGoal, markFact:
		f.userMarked = true
	}
	for i := range c.words {
		w := &c.words[i]
		f.userMarked = f.userMarked || w.in(inPersonal)
		f.number = f.number || strings.ContainsAny(w.folded, "0123456789") || smallNumber[w.folded] > 1
		f.code = f.code || strings.Contains(w.raw, "_") || camel(w.raw)
		f.entity = f.entity || i > 0 && capital(w.raw) && w.folded != "i" && w.raw != c.words[i-1].raw && utf8.RuneCountInString(w.raw) > 1
	}
	return f
}

// heeded says whether a statement is one that harms if an answer does not heed it: what somebody is allergic to, an illness.
func heeded(c *candidate) bool {
	for i := range c.words {
		if c.words[i].in(inHeeded) {
			return true
		}
	}
	return strings.Contains(c.quote, "过敏") || strings.Contains(c.quote, "過敏") || strings.Contains(c.quote, "アレルギー")
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
