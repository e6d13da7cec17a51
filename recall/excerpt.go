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

// Where memories cost more together than the budget, long ones are shown in part: what of them holds the words of the query, in whole
// sentences where these fit. So a few long passages don't keep all others out of a block.

const (
	bytesPerToken = 2 // at least, on running text
	// shareOfLeft is what a memory may take of the budget that better ones left. minExcerpt is the least part of a text that is
	// worth a line, in bytes. Both measured: see docs/recall-figures.md.
	shareOfLeft = 0.4
	minExcerpt  = 150
	// maxSights is how many words of the query are looked at in one text, maxStems how many different ones.
	maxSights = 256
	maxStems  = 32
	maxEnding = 16 // of a word behind its stem, in bytes
	omission  = " ..."
)

// fit shortens texts until the memories cost no more than the budget together: the best may take its share of all, the next the same of
// what is left, and so on, but none less than minExcerpt; what then does not fit is left out. What is left over at the end is theirs again,
// in the same order.
func (s *selection) fit() {
	room, whole := s.budget, 0
	for i := range s.taken {
		whole += overhead(&s.res.Memories[i].Memory) + s.taken[i].own.text.length()
	}
	if whole <= room { // mostly
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
		if i < len(s.taken) && s.taken[i].answers { // which tells nothing by itself
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

// leaveOut takes memory i out of the result.
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

// shorten cuts a text that is longer than limit bytes, in its place.
func (s *selection) shorten(t *taken, limit int) {
	if t.own.text.length() <= limit {
		return
	}
	if s.screened(&t.own); t.own.text.length() <= limit {
		return
	}
	text := s.scratch.text[t.own.text.from:t.own.text.to]
	from, to := excerpt(text, s.sights(t.packed, text), s.q, limit-2*len(omission))
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
		own.text.from = int32(len(s.scratch.text)) // behind all others
		s.scratch.text = append(s.scratch.text, out...)
		own.text.to = int32(len(s.scratch.text))
	}
}

// excerpt is the part of a text, room bytes long at most, that holds most of the query by weight, with as much as fits of the sentences
// that follow, and then of those before.
func excerpt(text []byte, seen []sight, q *resolvedQuery, room int) (from, to int) {
	best := -1.0
	for i := range seen {
		var held [4]uint64 // concepts: Config.MaxTerms is at most 256
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
	} else { // of a long one about as much as of what follows
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

// afterEnd is where the sentence after one that ends at i begins, -1 if none ends there.
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

// maxClosing is how many quotes, brackets and marks of Markdown may close with a sentence.
const maxClosing = 4

func closes(c byte) bool {
	return c == '"' || c == '\'' || c == ')' || c == ']' || c == '*' || c == '_' || c == '`'
}

// opensItem reports whether a text ends with the number of an item of a list, at the begin of a line.
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

// sentenceBegin is where the sentence begins that byte i stands in; a blank is of the sentence before it.
func sentenceBegin(text []byte, i int) int {
	for i > 0 && blank(text[i]) { // and nothing in it ends: each would look at all of it again
		i--
	}
	for at := i - 1; at >= 0; at-- {
		if c := text[at]; c > '?' && c < utf8.RuneSelf { // mostly: no sentence ends with it
			continue
		}
		if next := afterEnd(text, at); next >= 0 && next <= i {
			return next
		}
	}
	return 0
}

// lastEnd is where the last sentence ends that fits into room bytes from a place on, or if that is before least the last word.
func lastEnd(said []byte, from, room, least int) int {
	if len(said)-from <= room {
		return len(said)
	}
	sentence, word := 0, 0
	for at := from; at < from+room; at++ {
		if c := said[at]; c > '?' && c < utf8.RuneSelf { // mostly: nothing ends with it
			continue
		}
		if next := afterEnd(said, at); next >= 0 {
			sentence = min(next, from+room)
			at = next - 1 // blanks are looked at once
		} else if blank(said[at]) {
			word = at
		}
	}
	switch {
	case sentence >= least:
		return sentence
	case word >= least:
		return word
	}
	return text.ClusterStart(said, from+room, least)
}

// wordBegin is where a word begins from a place on, end if none does before.
func wordBegin(said []byte, from, end int) int {
	for at := from; at < end; at++ {
		if blank(said[at]) {
			return at + 1
		}
	}
	return text.ClusterEnd(said, from, end)
}

const (
	// lineOverhead is what a line of a block holds beside the text and the speaker, in bytes: dash, day, colon, line end.
	lineOverhead = 22
	// outdatedOverhead is what says there that storage.OutdatedTag is one of a memory's: "(in part outdated) ".
	outdatedOverhead = 19
)

// overhead is how many bytes a memory's line has beside its text.
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

// sight is where a word of the query stands in a text.
type sight struct {
	from, to int32
	concept  uint8
}

// sights returns where words of the query stand in a text, whose terms are packed: words that begin like a stem which both have. Not
// found are irregular forms.
func (s *selection) sights(packed, said []byte) []sight {
	var stems [maxStems][]byte
	var concepts [maxStems]uint8
	var by [256]uint32 // stems by their first character
	opens := wide      // the bytes that such a character may begin with
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
	seen := s.scratch.sights[:0]
	for at := 0; at < len(said) && len(seen) < maxSights; at++ {
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
			if !text.Spaceless(r) { // words of these need no blank between them
				next = wordEnd(said, next)
			}
			if next <= end+maxEnding {
				end = max(next, end)
			}
			seen = append(seen, sight{int32(at), int32(end), concepts[i]})
			break
		}
	}
	s.scratch.sights = seen
	return seen
}

// conceptOf returns the term of the query that a word stands for, -1 if for none.
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

// wordBytes are the ASCII bytes of words in lower case, 0 for others.
var wordBytes = func() (all [256]byte) {
	for i := range utf8.RuneSelf {
		if c := byte(i); letter(c) || query.IsDigit(c) {
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

// wide are the bytes that characters outside ASCII begin with.
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
		if !wordly(r) {
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
	return !wordly(before) || text.Spaceless(before)
}

// wordly reports whether a character is of a word.
func wordly(r rune) bool {
	if r < utf8.RuneSelf {
		return wordBytes[r] != 0
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// wordEnd is where a word goes on to that byte i may be of.
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
		if !wordly(r) || text.Spaceless(r) {
			break
		}
		i += size
	}
	return i
}
