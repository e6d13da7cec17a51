package extract

import (
	"slices"
	"strings"
	"unicode"
)

// pattern is a sequence of words to be found at the start of a clause.
// lexicon.txt writes its elements so:
//
//	word    that word                @set    a word of the set
//	#       a word with a digit      A       a name: capitalised, no pronoun, no product
//	_       any word                 *       up to four words
//	x|y     one of them              !x|y    any word but these
//	x?      x or nothing             $       the end
//	~x      a word that ends in x
type pattern struct {
	mark  mark
	parts []part
}

type part struct {
	words               []string
	sets                []map[string]bool
	any, digit, capital bool
	negated, optional   bool
	few, end            bool // * and $
	suffixes            []string

	setNames []string
	mask     uint64   // of sets, in known.sets
	known    []*known // words
}

// bind resolves the words of the parts to their vocabulary entries.
func (p *pattern) bind(entry func(string) *known, book *wordBook) {
	for i := range p.parts {
		e := &p.parts[i]
		if e.mask != 0 || e.known != nil {
			continue // bound already: it is listed under several words
		}
		for _, name := range e.setNames {
			e.mask |= book.setBit[name]
		}
		if len(e.words) == 0 {
			continue
		}
		e.known = make([]*known, len(e.words))
		for i, w := range e.words {
			e.known[i] = entry(w)
		}
	}
}

func parsePattern(line string, sets map[string]map[string]bool) pattern {
	var p pattern
	for _, f := range strings.Fields(line) {
		var e part
		if len(f) > 1 && strings.HasSuffix(f, "?") {
			e.optional, f = true, strings.TrimSuffix(f, "?")
		}
		f, e.negated = strings.TrimPrefix(f, "!"), f[0] == '!'
		for _, alternative := range strings.Split(f, "|") {
			switch {
			case alternative == "_":
				e.any = true
			case alternative == "#":
				e.digit = true
			case alternative == "A":
				e.capital = true
			case alternative == "*":
				e.few = true
			case alternative == "$":
				e.end = true
			case strings.HasPrefix(alternative, "~"):
				e.suffixes = append(e.suffixes, alternative[1:])
			case strings.HasPrefix(alternative, "@"):
				set := sets[alternative[1:]]
				if set == nil {
					panic("lexicon: unknown set in " + line)
				}
				e.sets, e.setNames = append(e.sets, set), append(e.setNames, alternative[1:])
			default:
				e.words = append(e.words, alternative)
			}
		}
		p.parts = append(p.parts, e)
	}
	return p
}

// named reports whether a word may be a person's name: not a product, and with
// one capital, except for "McCoy", "Anne-Marie" and "JP".
func named(w *word) bool {
	if !capital(w.raw) || w.in(inBare|inPassing|inAnybody|inProduct) || strings.ContainsAny(w.raw, "0123456789") {
		return false
	}
	capitals := 0
	for _, r := range w.raw {
		if unicode.IsUpper(r) {
			capitals++
		}
	}
	return capitals == 1 || len(w.raw) == 2 || strings.ContainsAny(w.raw, "-'’") || strings.HasPrefix(w.raw, "Mc") || strings.HasPrefix(w.raw, "Mac") || strings.HasPrefix(w.raw, "De")
}

func (e *part) takes(w *word) bool {
	in := e.any || w.known.sets&e.mask != 0 || e.digit && hasDigit(w.folded) || e.capital && named(w) ||
		slices.Contains(e.known, w.known) || slices.ContainsFunc(e.suffixes, func(end string) bool { return strings.HasSuffix(w.folded, end) })
	return in != e.negated
}

// match returns how many words at the start of ws the parts match, or -1.
func match(parts []part, ws []word) int {
	if len(parts) == 0 {
		return 0
	}
	e := &parts[0]
	switch {
	case e.end && len(ws) == 0:
		return 0
	case e.few:
		for n := 0; n <= 4 && n <= len(ws); n++ {
			if m := match(parts[1:], ws[n:]); m >= 0 {
				return n + m
			}
		}
		return -1
	}
	if len(ws) > 0 && e.takes(&ws[0]) {
		if m := match(parts[1:], ws[1:]); m >= 0 {
			return m + 1
		}
	}
	if e.optional {
		return match(parts[1:], ws)
	}
	return -1
}

// firsts returns the words that a match can begin with; nil means any.
func (p *pattern) firsts() []string {
	var out []string
	for i := range p.parts {
		e := &p.parts[i]
		if e.any || e.digit || e.capital || e.negated || e.few || e.end || e.suffixes != nil {
			return nil
		}
		out = append(out, e.words...)
		for _, set := range e.sets {
			for w := range set {
				out = append(out, w)
			}
		}
		if !e.optional {
			break
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
