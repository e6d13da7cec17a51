package extract

import (
	"math/bits"
	"slices"
	"strings"
)

// Statement is the form in which statements are compared.
type Statement struct {
	Words    string   // its words as [Normalize] returns them
	Content  []string // its distinct content words, stemmed and sorted; parts of Words
	Negative bool     // it has an odd number of negations
	// Subject is what the statement gives a value to, "" where it is nothing
	// that has one value at a time. Of two statements with one subject and
	// different values only one can hold.
	Subject, Value string
	// Denied are the content words of the first clause where that is negative
	// and another follows: "it isn't nuts, it's milk".
	Denied []string

	contentBits uint64 // of Content: equal sets have equal bits
}

// ParseStatement reads a statement. What it returns holds one string and
// nothing of quote: facts are many.
func ParseStatement(quote string) Statement {
	var space [stackWords]word
	ws := appendWords(space[:0], quote)
	s := Statement{Words: normalised(ws)}
	at := 0
	for i := range ws {
		n := len(ws[i].folded)
		ws[i].folded = s.Words[at : at+n]
		at += n + 1
	}
	s.Content, s.Negative = contentOf(ws)
	for _, w := range s.Content {
		s.contentBits |= 1 << (hashOf(w) % 64)
	}
	s.Subject, s.Value = subjectOf(ws)
	end := 1
	for end < len(ws) && !ws[end].clause {
		end++
	}
	if end < len(ws) {
		if denied, negative := contentOf(ws[:end]); negative && len(denied) > 1 {
			s.Denied = denied
		}
	}
	return s
}

// hashOf is FNV-1a.
func hashOf(w string) uint32 {
	h := uint32(2166136261)
	for i := range len(w) {
		h = (h ^ uint32(w[i])) * 16777619
	}
	return h
}

// Size estimates the bytes that the statement takes in memory.
func (s *Statement) Size() int64 {
	return int64(3*len(s.Words) + 32*(len(s.Content)+len(s.Denied)) + len(s.Subject) + len(s.Value))
}

// Near reports whether two statements say the same in other words: one holds
// all content words of the other, at least four fifths of all are shared, none
// of those that differ is a number or the name of a day or month, and the order
// of the words is the same. A word in place of another makes another statement.
func (s *Statement) Near(o *Statement) bool {
	if s.Negative != o.Negative || len(s.Content) == 0 || hasIdeographs(s.Words) || // one character may be "not"
		bits.OnesCount64(s.contentBits^o.contentBits) > 6 {
		return false
	}
	a, b := s.Content, o.Content
	same, onlyA, onlyB := 0, 0, 0
	for i, j := 0, 0; i < len(a) || j < len(b); {
		var odd string
		switch {
		case j == len(b) || i < len(a) && a[i] < b[j]:
			odd, i, onlyA = a[i], i+1, onlyA+1
		case i == len(a) || b[j] < a[i]:
			odd, j, onlyB = b[j], j+1, onlyB+1
		default:
			same, i, j = same+1, i+1, j+1
			continue
		}
		if distinctive(odd) || onlyA > 0 && onlyB > 0 {
			return false
		}
	}
	if union := len(a) + len(b) - same; same*5 < union*4 {
		return false
	}
	return similarSpelling(s.Words, o.Words) && sameOrder(s.Words, o.Words)
}

// Opposes reports whether s is what o denies, or each is the negation of the
// other.
func (s *Statement) Opposes(o *Statement) bool {
	return o.Negative != s.Negative && o.contentBits == s.contentBits && slices.Equal(o.Content, s.Content) ||
		!s.Negative && slices.Equal(o.Denied, s.Content)
}

// Shared counts the content words that two statements have in common.
func (s *Statement) Shared(o *Statement) int { return shared(s.Content, o.Content) }

func shared(words, sorted []string) (n int) {
	for _, w := range words {
		if _, ok := slices.BinarySearch(sorted, w); ok {
			n++
		}
	}
	return n
}

// FirstPerson reports whether the statement begins with the speaker.
func (s *Statement) FirstPerson() bool {
	w, _, _ := strings.Cut(s.Words, " ")
	return firstPerson[w]
}

// Correction is how a statement takes back what was said before. The zero value
// takes back nothing.
type Correction struct {
	Corrects bool     // it begins by taking something back
	Answer   bool     // by a bare "no" to a question, and so only what that was about
	Asked    []string // content words of that question, sorted
}

// TakesBack reports whether the correction that begins a may be about the older
// b. People can have many allergies or tastes at a time, so these still hold
// unless the correction names them ("..., not peanuts"); a "no" answers what
// was asked.
func (c *Correction) TakesBack(a, b *Statement) bool {
	own := slices.DeleteFunc(slices.Clone(b.Content), func(w string) bool {
		_, both := slices.BinarySearch(a.Content, w)
		return both
	})
	if len(own) > 0 && multiValued(a.Words) && multiValued(b.Words) {
		return false
	}
	if len(own) == 0 {
		own = b.Content
	}
	return !c.Answer || shared(own, c.Asked) > 0
}

// multiValuedWords are about what one may have many of at a time.
var multiValuedWords = setOf(`allergic allergy allergies intolerant intolerance like love enjoy hate dislike speak
	allergisch allergie allergien unvertraglichkeit mag liebe hasse spreche
	allergique allergies intolerante aime adore deteste
	alergico alergica alergia alergias gusta gustan encanta encantan odio hablo`)

func multiValued(words string) bool {
	for w := range strings.FieldsSeq(words) {
		if multiValuedWords[w] {
			return true
		}
	}
	return false
}

func normalised(ws []word) string {
	n := 0
	for i := range ws {
		n += 1 + len(ws[i].folded)
	}
	var b strings.Builder
	b.Grow(n)
	for i := range ws {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(ws[i].folded)
	}
	return b.String()
}

// contentOf returns the sorted distinct content words, stemmed, and whether the
// statement is negative.
func contentOf(ws []word) (content []string, negative bool) {
	for i := range ws {
		switch w := ws[i].folded; {
		case negates(w, func(k int) string { return folded(ws, i+k) }):
			negative = !negative
		case polar[w], w == "longer" && folded(ws, i-1) == "no":
		case !ws[i].in(inStop):
			content = append(content, stemmed(w))
		}
	}
	slices.Sort(content)
	return slices.Compact(content), negative
}

// negates reports whether a word turns a statement into its opposite. "ne" does
// so only where no "pas" follows: "ne ... pas" is one negation. next returns
// the words behind it.
func negates(w string, next func(int) string) bool {
	if w == "ne" {
		for k := 1; k <= 4; k++ {
			if n := next(k); n == "pas" || n == "jamais" {
				return false
			}
		}
	}
	return lexicon().negation[w] || dislike[w]
}

// polar words express liking, or go with yes and no ("always", "not anymore");
// they are no content. dislike is their opposite.
var (
	polar   = setOf("like love enjoy prefer adore really liebe mag aime adore gusta gustan encanta allowed always anymore immer mehr toujours siempre")
	dislike = setOf("hate dislike avoid detest hasse deteste odio stopped quit")
)

// stemmed removes the endings that make a word another form of the same,
// roughly.
func stemmed(w string) string {
	for _, end := range [...]string{"ies", "es", "s", "ed", "ing"} {
		if len(w) > len(end)+3 && strings.HasSuffix(w, end) {
			w = w[:len(w)-len(end)]
			break
		}
	}
	return strings.TrimSuffix(w, "e")
}

// distinctive words make another statement of one that is alike otherwise.
func distinctive(w string) bool {
	return hasDigit(w) || smallNumber[w] > 1 || lexicon().weekdays[w] || lexicon().months[w]
}

// similarSpelling compares shingles of three bytes: a Jaccard index of at least
// .6.
func similarSpelling(a, b string) bool {
	if len(a) < 3 || len(b) < 3 {
		return a == b
	}
	in := make(map[string]int8, len(a))
	for i := 0; i+3 <= len(a); i++ {
		in[a[i:i+3]] = 1
	}
	union, same := len(in), 0
	for i := 0; i+3 <= len(b); i++ {
		switch in[b[i:i+3]] {
		case 0:
			in[b[i:i+3]] = 2
			union++
		case 1:
			in[b[i:i+3]] = 3
			same++
		}
	}
	return same*5 >= union*3
}

// roleWords are no content, and yet change what a statement with the same
// content words means: who or what it is with, whether it is or was, how much
// of it.
var roleWords = setOf(`was were had did will would could should may might must
	all any some each few many more most only other another same
	from for with up down off out over
	war waren hatte wird wurde soll muss von mit fur aus nach nur bei
	etait pour par avec pendant
	era fue tenia para por con desde hasta`)

// sameOrder reports whether the content words of two statements that share most
// of them come in one order, with the same negations and role words among them:
// "from Hamburg to Munich" is not the way back, and "tea over coffee" is not
// the opposite. One may hold more content words than the other.
func sameOrder(a, b string) bool {
	x, y := orderedWords(a), orderedWords(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	for _, w := range y {
		switch {
		case len(x) > 0 && x[0] == w:
			x = x[1:]
		case w == "-" || roleWords[w]:
			return false
		}
	}
	return len(x) == 0
}

// orderedWords returns the words that sameOrder compares; "-" is any negation.
func orderedWords(norm string) []string {
	all := strings.Fields(norm)
	out := all[:0:0]
	for i, w := range all {
		next := func(k int) string {
			if i+k < len(all) {
				return all[i+k]
			}
			return ""
		}
		switch {
		case negates(w, next):
			out = append(out, "-")
		case polar[w], w == "longer" && i > 0 && all[i-1] == "no":
		case roleWords[w]:
			out = append(out, w)
		case !lexicon().stop[w]:
			out = append(out, stemmed(w))
		}
	}
	return out
}
