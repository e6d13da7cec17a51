package extract

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed lexicon.txt
var lexiconText string

// mark is what a pattern says about the clause that it matches.
type mark uint8

const (
	markName mark = iota
	markPreference
	markStanding // a wish that applies to every later answer
	markDecision
	markGoal
	markFact
	markMatter // a property of a project, an event, ... that is not in the first person
	markTransient
	markQuestion
	markRemember
	markForget
	markNeverMind
	markCommand
	markSmallTalk
	markOrder // in text that is not the user's: see orders
	markCount
)

var markNames = [markCount]string{
	"name", "preference", "standing", "decision", "goal", "fact", "matter", "transient", "question", "remember", "forget",
	"nevermind", "command", "smalltalk", "order",
}

// marks is a set of marks.
type marks uint16

func (m marks) has(k mark) bool { return m&(1<<k) != 0 }

// statementMarks are the marks of clauses that may be worth keeping.
const statementMarks = 1<<markName | 1<<markPreference | 1<<markStanding | 1<<markDecision | 1<<markGoal | 1<<markFact | 1<<markMatter

// lexicon is parsed on first use, so not at all in a process that persists
// nothing. It is never changed.
var lexicon = sync.OnceValue(func() *wordBook { return parseLexicon(lexiconText, 0) })

type wordBook struct {
	sets                                       map[string]map[string]bool
	setBit                                     map[string]uint64 // in known.sets
	negation, stop, months, weekdays, relative map[string]bool
	contractions                               map[string][]string
	elisions                                   map[string]string
	byFirst                                    map[string][]*pattern
	anywhere                                   []*pattern // those that may begin with any word
}

// firstOrderBit is the first bit of the sets of standingOrders, after those of
// the lexicon.
const firstOrderBit = 48

// parseLexicon parses a book. Sets in bitNames have their bits, the others get
// bits from first on.
func parseLexicon(text string, first int) *wordBook {
	l := &wordBook{
		sets: map[string]map[string]bool{}, setBit: map[string]uint64{}, contractions: map[string][]string{}, elisions: map[string]string{},
		byFirst: map[string][]*pattern{},
	}
	type line struct {
		mark mark
		text string
	}
	var patterns []line
	section, name := "", ""
	next := first
	if first == 0 {
		next = len(bitNames)
	}
	for raw := range strings.Lines(text) {
		raw = strings.TrimSpace(raw)
		if raw == "" || raw[0] == '#' && section != "pattern" {
			continue
		}
		if raw[0] == ':' {
			section, name, _ = strings.Cut(raw[1:], " ")
			if section == "set" && l.sets[name] == nil {
				l.sets[name] = map[string]bool{}
				bit := slices.Index(bitNames[:], name)
				if first > 0 || bit < 0 {
					bit = next
					next++
				}
				if bit >= 63 || first == 0 && bit >= firstOrderBit {
					panic("lexicon: too many sets")
				}
				l.setBit[name] = 1 << bit
			}
			continue
		}
		fields := strings.Fields(raw)
		switch section {
		case "set":
			for _, w := range fields {
				l.sets[name][w] = true
			}
		case "contractions":
			l.contractions[fields[0]] = fields[1:]
		case "elisions":
			l.elisions[fields[0]] = fields[1]
		case "pattern":
			patterns = append(patterns, line{markOf(name), raw})
		}
	}
	for _, p := range patterns {
		parsed := parsePattern(p.text, l.sets)
		parsed.mark = p.mark
		firsts := parsed.firsts()
		if firsts == nil {
			l.anywhere = append(l.anywhere, &parsed)
		}
		for _, w := range firsts {
			l.byFirst[w] = append(l.byFirst[w], &parsed)
		}
	}
	l.negation, l.stop = l.sets["negation"], l.sets["stop"]
	l.months, l.weekdays, l.relative = l.sets["months"], l.sets["weekdays"], l.sets["relative"]
	return l
}

func markOf(name string) mark {
	for i, n := range markNames {
		if n == name {
			return mark(i)
		}
	}
	panic("lexicon: unknown mark " + name)
}

// marksAt returns the marks of the patterns that match the clause that begins
// with ws[at].
func (l *wordBook) marksAt(ws []word, at int) marks {
	var out marks
	try := func(list []*pattern) {
		for _, p := range list {
			if !out.has(p.mark) && match(p.parts, ws[at:]) >= 0 {
				out |= 1 << p.mark
			}
		}
	}
	try(ws[at].known.more.patterns)
	try(l.anywhere)
	return out
}
