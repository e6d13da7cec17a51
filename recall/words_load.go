package recall

import (
	"math/bits"
	"slices"
	"unicode/utf8"
)

// reading is what an analyzer has that reads for an index: where another makes terms of words it makes numbers, and needs no look
// anywhere else for a word that has come before.
type reading struct {
	ix *index
	// terms are those of the known words that have more than one: how many, then their numbers. Behind kept stand those of a word
	// that is not remembered.
	terms []uint32
	kept  int
	// islands are the parts of a text that are read one character after the other.
	islands []span32
	space   []uint32 // of keep
	finding
}

// mostTerms bounds reading.kept; words of several terms that come later are read each time.
const mostTerms = 1 << 16

// meaning is what an index makes of a word or a sign.
type meaning struct {
	number uint32 // of the one term + 1, 0 = none; of several terms, where they stand in reading.terms
	traits traits
	kind   wordKind
}

// wordKind is 0 of what is not known.
type wordKind uint8

const (
	isKnown wordKind = 1 << iota
	hasMore          // terms than one
	saysPlease
	isSign    // its number is that of a mark
	opensNext // a capital letter behind it says nothing
	saysEnglish
)

// meaning finds out what a word or a sign is, and remembers it. It is good until the next call.
func (a *analyzer) meaning(l language, w string) meaning {
	r, hash := a.of, a.hash(l, w)
	m := r.meaningOf(hash)
	if m.kind != 0 {
		return m
	}
	remember := true
	if lower := w[0] | 0x20; lower != w[0] && isPlain(w) { // but for its capital, another
		var letters [maxWord]byte
		copy(letters[:], w)
		letters[0] = lower
		m = a.meaning(l, string(letters[:len(w)]))
	} else {
		m, remember = r.read(l, w)
	}
	if remember {
		r.note(hash, m)
	}
	return m
}

// read is meaning for what is not known.
func (r *reading) read(l language, w string) (m meaning, remember bool) {
	switch c := w[0]; {
	case c >= utf8.RuneSelf || asciiKinds[c] <= kindJoiner || c == '.' && len(w) > 1: // with marks behind it
	case c == '?':
		return meaning{number: markQuestion + 1, traits: asks, kind: isKnown | isSign | opensNext}, true
	case c == ',', c == ':':
		return meaning{kind: isKnown | isSign | opensNext}, true
	case len(w) > 1: // CR LF
		return meaning{number: markStatement + 1, kind: isKnown | isSign}, true
	default:
		return meaning{number: markStatement + 1, kind: isKnown | isSign | opensNext}, true
	}
	if isLower(w) {
		return r.readLower(l, w), true
	}
	e := readWord(l, w)
	m = meaning{traits: e.traits, kind: isKnown}
	switch len(e.terms) {
	case 0:
		return m, true
	case 1:
		m.number = r.ix.term(e.terms[0]) + 1
		return m, true
	}
	m.kind |= hasMore
	m.number = uint32(r.kept)
	r.terms = append(r.terms[:r.kept], uint32(len(e.terms)))
	for _, t := range e.terms {
		r.terms = append(r.terms, r.ix.term(t))
	}
	if len(r.terms) > mostTerms {
		return m, false
	}
	r.kept = len(r.terms)
	return m, true
}

// readLower is read for lower-case letters: as readWord, with less ado.
func (r *reading) readLower(l language, w string) (m meaning) {
	known := spellings()[w]
	m = meaning{traits: known.traits, kind: isKnown}
	if w == "please" {
		m.kind |= saysPlease
	}
	if len(w) <= 8 && onlyEnglish.has(few(w)|blanks) {
		m.kind |= saysEnglish
	}
	if l <= langEnglish && !known.stop || l > langEnglish && !isStop(l, w) {
		m.number = r.ix.term(stemKnown(l, w, known.base)) + 1
	}
	return m
}

// appendTerms appends the numbers of a word's terms.
func (r *reading) appendTerms(numbers []uint32, m meaning) []uint32 {
	switch {
	case m.kind&hasMore != 0:
		more := r.terms[m.number:]
		return append(numbers, more[1:1+more[0]]...)
	case m.number > 0:
		return append(numbers, m.number-1)
	}
	return numbers
}

// readFor is analyze for a text that is read for an index, of which there are blocks.
func (a *analyzer) readFor(text string, ascii bool, otherwise language, out *analysis) {
	r := a.of
	r.islands = r.islands[:0]
	if !ascii {
		r.setAside(text)
	}
	// The words are looked up in the language that is likely the text's; what they are then tells it, mostly.
	l := max(otherwise, langEnglish)
	out.language = langEnglish
	r.start(text, uint64(l)*languageFactor)
	found := r.next()
	if l > langEnglish || !ascii || !r.tellsEnglish(found) {
		if is := out.tongue(text, ascii, otherwise); is != l {
			l = is
			r.start(text, uint64(l)*languageFactor)
			found = r.next()
		}
	}
	sentence := sentence{start: true, spoke: wishWithin + 1}
	for islands := r.islands; ; {
		for n := 0; len(islands) > 0; islands = islands[1:] {
			for n = 0; n < len(found) && int32(found[n].from) < islands[0].from; {
				n++
			}
			if n == len(found) && n > 0 { // others may stand before it
				break
			}
			a.take(text, l, found[:n], &sentence, out)
			a.read(text, islands[0], l, &sentence, out)
			found = found[n:]
		}
		if len(found) == 0 {
			return
		}
		a.take(text, l, found, &sentence, out)
		found = r.next()
	}
}

// tellsEnglish reports what plainlyEnglish does if one of the words that were found is known to tell it, and is among those that it looks
// at.
func (f *finding) tellsEnglish(found []foundWord) bool {
	seen, before, end := 0, uint64(0), 0 // runs of letters, and where more than enough of them stand
	for i := 0; i < len(f.blocks) && seen <= detectWords; i++ {
		letters := f.blocks[i].letters
		seen += bits.OnesCount64(letters &^ (letters<<1 | before))
		before = letters >> (blockSize - 1)
		end = i * blockSize
	}
	for i := range found {
		if found[i].kind&saysEnglish != 0 {
			return int(found[i].from) < end || seen <= detectWords
		}
	}
	return false
}

// take makes terms and traits of what was found.
func (a *analyzer) take(text string, l language, found []foundWord, at *sentence, out *analysis) {
	numbers := slices.Grow(out.numbers, len(found))
	traits, start, spoke, open := out.traits, at.start, at.spoke, number(atStart(out.numbers))
	for i := range found {
		w := &found[i]
		if w.kind == 0 {
			w.meaning = a.meaning(l, text[w.from:w.end])
		}
		// Which are signs and which words have a term can't be foretold, so there is no branch for it.
		traits |= w.traits &^ ofWords
		spoke += 1 - number(w.kind&isSign != 0)
		if w.traits&(firstPerson|ofWords) != 0 {
			if w.traits&firstPerson != 0 {
				spoke = 0
			}
			if w.traits&wishes != 0 && spoke <= wishWithin || w.traits&orders != 0 && start && open != 0 {
				traits |= wishes
			}
		}
		if traits&hasName == 0 && !start && w.end-w.from > 1 {
			if c := text[w.from]; c >= 'A' && c <= 'Z' && text[w.from+1] != '\'' {
				traits |= hasName
			}
		}
		start = (number(start)&number(w.kind&(isSign|saysPlease) != 0) | number(w.kind&opensNext != 0)) != 0
		if w.kind&hasMore != 0 {
			numbers = slices.Grow(a.of.appendTerms(numbers, w.meaning), len(found)-i)
			open = number(atStart(numbers))
			continue
		}
		n := len(numbers)
		numbers = numbers[:n+1]
		numbers[n] = w.number - 1
		mark := number(w.number-1 <= markQuestion)
		added := number(w.number != 0) &^ (mark & open) // no mark where a sentence opens
		open = open&^added | mark&added
		numbers = numbers[:n+added]
	}
	out.numbers, out.traits, at.start, at.spoke = numbers, traits, start, spoke
}

// keep copies the numbers of a text, beside those of others.
func (r *reading) keep(numbers []uint32) []uint32 {
	if cap(r.space)-len(r.space) < len(numbers) {
		r.space = make([]uint32, 0, max(keptNumbers, len(numbers)))
	}
	n := len(r.space)
	r.space = append(r.space, numbers...)
	return r.space[n:len(r.space):len(r.space)]
}

const keptNumbers = 1 << 13

// number is 1 for true.
func number(is bool) (n int) {
	if is {
		n = 1
	}
	return n
}
