package extract

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed lexicon.txt
var lexiconText string

// mark is what a pattern says of a clause that it begins.
type mark uint8

const (
	markName mark = iota
	markPreference
	markStanding // a wish that goes for every answer to come
	markDecision
	markGoal
	markFact
	markMatter // a property of a project, an event, ... in nobody's person
	markTransient
	markQuestion
	markRemember
	markForget
	markNeverMind
	markCommand
	markSmallTalk
	markOrder // of text that is not the user's: see orders
	markCount
)

var markNames = [markCount]string{
	"name", "preference", "standing", "decision", "goal", "fact", "matter", "transient", "question", "remember", "forget",
	"nevermind", "command", "smalltalk", "order",
}

// marks is a set of them.
type marks uint16

func (m marks) has(k mark) bool { return m&(1<<k) != 0 }

// saying are the marks of what may be worth keeping.
const saying = 1<<markName | 1<<markPreference | 1<<markStanding | 1<<markDecision | 1<<markGoal | 1<<markFact | 1<<markMatter

// lexicon is read when it is first asked for, which a process that has nothing to persist never does, and never changed.
var lexicon = sync.OnceValue(func() *wordBook { return parseLexicon(lexiconText, 0) })

type wordBook struct {
	sets                                       map[string]map[string]bool
	setBit                                     map[string]uint64 // of a set, in known.sets
	negation, stop, months, weekdays, relative map[string]bool
	contractions                               map[string][]string
	elisions                                   map[string]string
	byFirst                                    map[string][]*pattern
	anywhere                                   []*pattern // those that may begin with any word
}

// firstOrderBit is where the bits of the sets of standingOrders begin: behind those of the lexicon.
const firstOrderBit = 48

// parseLexicon reads a book. Its sets get bits from first on, those of bitNames theirs.
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

// marksAt returns what the patterns say of the clause that begins with ws[at].
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
