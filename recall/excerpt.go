package recall

import (
	"bytes"
	"math/bits"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// If memories together exceed the budget, long ones are shown in part: the part
// that has the words of the query, in whole sentences if these fit. So a few
// long passages don't crowd out all others.

const (
	bytesPerToken = 2 // at least, on running text
	// shareOfLeft is the share that a memory may take of the budget that better
	// ones left. minExcerpt is the minimum part of a text that is worth a line,
	// in bytes. docs/recall-figures.md has the measurements.
	shareOfLeft = 0.4
	minExcerpt  = 150
	// maxMatches limits the words of the query that are considered in one text,
	// and maxStems the different ones.
	maxMatches = 256
	maxStems   = 32
	maxEnding  = 16 // bytes of a word after its stem
	omission   = " ..."
)

// fit shortens texts until the memories together fit the budget. The best may
// take its share of everything, the next the same share of the rest, and so on,
// but none less than minExcerpt. What then does not fit is left out. What
// remains at the end is distributed again in the same order.
func (s *selection) fit() {
	room, whole := s.budget, 0
	for i := range s.taken {
		whole += overhead(&s.res.Memories[i].Memory) + s.taken[i].own.text.length()
	}
	if whole <= room { // the usual case
		return
	}
	for i := 0; i < len(s.taken); {
		t := &s.taken[i]
		t.limit = min(t.own.text.length(), max(int(float64(room)*shareOfLeft), minExcerpt))
		if cost := overhead(&s.res.Memories[i].Memory) + t.limit; cost <= room {
			room -= cost
			i++
			continue
		}
		s.leaveOut(i)
		if i < len(s.taken) && s.taken[i].answers { // which says nothing without it
			s.leaveOut(i)
		}
	}
	for i := range s.taken {
		t := &s.taken[i]
		more := min(t.own.text.length()-t.limit, room)
		room -= more
		s.shorten(t, t.limit+more)
	}
}

// leaveOut removes memory i from the result.
func (s *selection) leaveOut(i int) {
	if s.explain {
		s.cut(s.taken[i].mem, s.hits[i], CutBudget)
	}
	n := len(s.taken) - 1
	copy(s.taken[i:], s.taken[i+1:])
	copy(s.hits[i:], s.hits[i+1:])
	copy(s.res.Memories[i:], s.res.Memories[i+1:])
	s.taken[n], s.res.Memories[n] = taken{}, Scored{}
	s.taken, s.hits, s.res.Memories = s.taken[:n], s.hits[:n], s.res.Memories[:n]
}

// shorten cuts a text that is longer than limit bytes, in place.
func (s *selection) shorten(t *taken, limit int) {
	if t.own.text.length() <= limit {
		return
	}
	if s.screened(&t.own); t.own.text.length() <= limit {
		return
	}
	text := s.scratch.text[t.own.text.from:t.own.text.to]
	from, to := excerpt(text, s.matches(t.packed, text), s.q, limit-2*len(omission))
	n := 0
	if from > 0 {
		n = len(omission)
	}
	more := to < len(text)
	n += copy(text[n:], text[from:to])
	if from > 0 {
		copy(text, omission[1:]+" ")
	}
	for n > 0 && blank(text[n-1]) {
		n--
	}
	if more {
		n += copy(text[n:], omission)
	}
	t.own.text.to = t.own.text.from + int32(n)
}

// screened applies the request's screen to a text of which a part is taken.
func (s *selection) screened(own *ownStrings) {
	if s.screen == nil {
		return
	}
	text := string(s.scratch.text[own.text.from:own.text.to])
	if out := s.screen(text); out != text {
		own.text.from = int32(len(s.scratch.text)) // after all others
		s.scratch.text = append(s.scratch.text, out...)
		own.text.to = int32(len(s.scratch.text))
	}
}

// excerpt returns the part of a text, at most room bytes long, that has most of
// the query by weight, extended by as many of the following and then of the
// preceding sentences as fit.
func excerpt(text []byte, seen []match, q *resolvedQuery, room int) (from, to int) {
	best := -1.0
	for i := range seen {
		var held [4]uint64 // concepts; Config.MaxTerms is at most 256
		weight := 0.0
		for j := i; j < len(seen) && int(seen[j].to-seen[i].from) <= room; j++ {
			k := seen[j].concept
			if held[k>>6]&(1<<(k&63)) != 0 {
				continue
			}
			held[k>>6] |= 1 << (k & 63)
			weight += q.terms[k].sure * q.terms[k].Weight
			if f, t := int(seen[i].from), int(seen[j].to); weight > best || weight == best && t-f < to-from {
				best, from, to = weight, f, t
			}
		}
	}
	if begin := sentenceBegin(text, from); to-begin <= room {
		from = begin
	} else { // of a long sentence, about as much as of what follows
		from = wordBegin(text, max(begin, from-(room-(to-from))/2), from)
	}
	to = lastEnd(text, from, room, max(to, from+room/2))
	for from > 0 {
		begin := sentenceBegin(text, from-1)
		if to-begin > room {
			break
		}
		from = begin
	}
	return from, to
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// afterEnd returns where the next sentence begins if one ends at i, or -1.
func afterEnd(all []byte, i int) int {
	next := i + 1
	switch c := all[i]; {
	case c == '\n':
	case c == '.' || c == '!' || c == '?':
		for next < len(all) && next-i <= maxClosing && closes(all[next]) {
			next++
		}
		if next < len(all) && !blank(all[next]) || c == '.' && (opensItem(all[:i]) || text.EndsInAbbreviation(all[:i])) {
			return -1
		}
	case c >= utf8.RuneSelf:
		r, size := utf8.DecodeRune(all[i:])
		if r != '。' && r != '！' && r != '？' {
			return -1
		}
		next = i + size
	default:
		return -1
	}
	for next < len(all) && blank(all[next]) {
		next++
	}
	return next
}

// maxClosing is the maximum number of quotes, brackets and Markdown marks that
// close with a sentence.
const maxClosing = 4

func closes(c byte) bool {
	return c == '"' || c == '\'' || c == ')' || c == ']' || c == '*' || c == '_' || c == '`'
}

// opensItem reports whether a text ends with the number of a list item at the
// beginning of a line.
func opensItem(text []byte) bool {
	n := len(text)
	for n > 0 && len(text)-n <= 2 && query.IsDigit(text[n-1]) {
		n--
	}
	if digits := len(text) - n; digits == 0 || digits > 2 {
		return false
	}
	for n > 0 && text[n-1] == ' ' {
		n--
	}
	return n == 0 || text[n-1] == '\n'
}

// sentenceBegin returns the start of the sentence that has byte i. A blank
// belongs to the sentence before it.
func sentenceBegin(text []byte, i int) int {
	for i > 0 && blank(text[i]) { // none of these ends a sentence, so skip them once
		i--
	}
	for at := i - 1; at >= 0; at-- {
		if c := text[at]; c > '?' && c < utf8.RuneSelf { // the usual case: no sentence ends with it
			continue
		}
		if next := afterEnd(text, at); next >= 0 && next <= i {
			return next
		}
	}
	return 0
}

// lastEnd returns the end of the last sentence that fits into room bytes from a
// position, or, if that is before floor, the end of the last word.
func lastEnd(said []byte, from, room, floor int) int {
	if len(said)-from <= room {
		return len(said)
	}
	sentence, word := 0, 0
	for at := from; at < from+room; at++ {
		if c := said[at]; c > '?' && c < utf8.RuneSelf { // the usual case: nothing ends with it
			continue
		}
		if next := afterEnd(said, at); next >= 0 {
			sentence = min(next, from+room)
			at = next - 1 // skip the blanks
		} else if blank(said[at]) {
			word = at
		}
	}
	switch {
	case sentence >= floor:
		return sentence
	case word >= floor:
		return word
	}
	return text.ClusterStart(said, from+room, floor)
}

// wordBegin returns where the next word begins, or end.
func wordBegin(said []byte, from, end int) int {
	for at := from; at < end; at++ {
		if blank(said[at]) {
			return at + 1
		}
	}
	return text.ClusterEnd(said, from, end)
}

const (
	// lineOverhead is the size of a line of a block without text and speaker,
	// in bytes: dash, day, colon, line end.
	lineOverhead = 22
	// outdatedOverhead is the size of the note for storage.OutdatedTag: "(in
	// part outdated) ".
	outdatedOverhead = 19
)

// overhead returns how many bytes a memory's line has besides its text.
func overhead(m *storage.Memory) int {
	who := len(m.Provenance.Speaker)
	if who == 0 {
		who = len(m.Provenance.Role)
	}
	if slices.Contains(m.Tags, storage.OutdatedTag) {
		who += outdatedOverhead
	}
	return who + lineOverhead
}

// match is a word of the query in a text.
type match struct {
	from, to int32
	concept  uint8
}

// matches returns the words of the query in a text whose terms are packed:
// words that begin with a stem that both have. Irregular forms are not found.
func (s *selection) matches(packed, said []byte) []match {
	var stems [maxStems][]byte
	var concepts [maxStems]uint8
	var by [256]uint32 // stems by their first character
	opens := wide      // the bytes with which such a character may begin
	n := 0
	for at := 0; at < len(packed) && n < maxStems; {
		var id uint32
		if id, at = nextTerm(packed, at); !s.q.may(id) {
			continue
		}
		k := s.q.conceptOf(id)
		if k < 0 {
			continue
		}
		stem := s.ix.terms.raw(id)
		if len(stem) == 0 {
			continue
		}
		if c := stem[len(stem)-1]; len(stem) > 3 && (c == 'i' || c == 'e') { // "stori" of "story", "use" of "using"
			stem = stem[:len(stem)-1]
		}
		known := false
		for _, before := range stems[:n] {
			known = known || bytes.Equal(before, stem)
		}
		if !known {
			stems[n], concepts[n] = stem, uint8(k)
			r, _ := text.FoldRune(stem)
			by[byte(r)] |= 1 << n
			if r < utf8.RuneSelf {
				opens[r], opens[upper(byte(r))] = 1, 1
			}
			n++
		}
	}
	seen := s.scratch.matches[:0]
	for at := 0; at < len(said) && len(seen) < maxMatches; at++ {
		if opens[said[at]] == 0 {
			continue
		}
		r, size := text.FoldRune(said[at:])
		if !beginsWord(said, at, r) {
			continue
		}
		for left := by[byte(r)]; left != 0; left &= left - 1 {
			i := bits.TrailingZeros32(left)
			n := text.StemPrefix(said[at:], stems[i])
			if n < 0 {
				continue
			}
			next, end := at+size, at+n
			if !text.Spaceless(r) { // their words need no blank between them
				next = wordEnd(said, next)
			}
			if next <= end+maxEnding {
				end = max(next, end)
			}
			seen = append(seen, match{int32(at), int32(end), concepts[i]})
			break
		}
	}
	s.scratch.matches = seen
	return seen
}

// conceptOf returns the term of the query for which a word counts, or -1.
func (q *resolvedQuery) conceptOf(id uint32) int {
	for k := range q.terms {
		for _, w := range q.terms[k].words {
			if w.id == id {
				return k
			}
		}
	}
	return -1
}

// wordBytes maps ASCII bytes of words to lower case, and others to 0.
var wordBytes = func() (all [256]byte) {
	for i := range utf8.RuneSelf {
		if c := byte(i); isLetter(c) || query.IsDigit(c) {
			all[i] = lower(c)
		}
	}
	return all
}()

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c |= 0x20
	}
	return c
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		c &^= 0x20
	}
	return c
}

// wide marks the first bytes of characters outside ASCII.
var wide = func() (all [256]byte) {
	for i := utf8.RuneSelf; i < len(all); i++ {
		if utf8.RuneStart(byte(i)) {
			all[i] = 1
		}
	}
	return all
}()

// beginsWord reports whether a word begins with the character r at byte i.
func beginsWord(said []byte, i int, r rune) bool {
	if r >= utf8.RuneSelf {
		if !isWordRune(r) {
			return false
		}
		if text.Spaceless(r) {
			return true
		}
	}
	if i == 0 {
		return true
	}
	if before := said[i-1]; before < utf8.RuneSelf {
		return wordBytes[before] == 0
	}
	before, _ := utf8.DecodeLastRune(said[:i])
	return !isWordRune(before) || text.Spaceless(before)
}

// isWordRune reports whether a character may be part of a word.
func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return wordBytes[r] != 0
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// wordEnd returns the end of the word that has byte i.
func wordEnd(said []byte, i int) int {
	for i < len(said) {
		if wordBytes[said[i]] != 0 {
			i++
			continue
		}
		if said[i] < utf8.RuneSelf {
			break
		}
		r, size := utf8.DecodeRune(said[i:])
		if !isWordRune(r) || text.Spaceless(r) {
			break
		}
		i += size
	}
	return i
}

// isLetter reports whether c is an ASCII letter or part of a character beyond
// ASCII.
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }
