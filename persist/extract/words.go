package extract

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// word is one word of a text.
type word struct {
	raw, folded string // as written, and as fold returns it
	start, end  int    // bytes of the text
	known       *known // entry of folded in the vocabulary; never nil
	clause      bool   // opens a clause: begins the text, or follows punctuation or a conjunction
}

// maxWord is the longest word that is read, in bytes; longer ones are data.
const maxWord = 48

// words returns the words of a text: see eachWord.
func words(text string) []word {
	return appendWords(make([]word, 0, 1+len(text)/5), text)
}

// appendWords appends the words of a text to out.
func appendWords(out []word, text string) []word {
	for w := range eachWord(text) {
		out = append(out, w)
	}
	return out
}

// stackWords is the room, in words, that readers of a sentence have on the
// stack. Few sentences have more.
const stackWords = 48

// passageWords is the same for readers of a passage: 16 KiB of stack.
const passageWords = 256

// eachWord iterates over the words of a text. Contractions are expanded ("I'm"
// is "i am", "j'ai" is "je ai"), so that patterns need one form only; both
// parts have the same position. It allocates only for words with a capital or
// an accent that are not in the vocabulary.
func eachWord(text string) iter.Seq[word] {
	return func(yield func(word) bool) { readWords(text, yield) }
}

func readWords(text string, yield func(word) bool) {
	clause, book := true, vocab()
	for i := 0; i < len(text); {
		if letterKinds[text[i]]&(kindSmall|kindCapital|kindDigit) == 0 && text[i] < utf8.RuneSelf {
			switch text[i] {
			case ',', ';', ':', '!', '?', '(', ')', '"', '\n':
				clause = true
			case '.':
				clause = clause || !ordinal(text, i)
			case '-':
				clause = clause || i+1 < len(text) && text[i+1] == ' '
			}
			i++
			continue
		}
		// An ASCII word. If another character turns up, readWord reads it
		// again.
		j, kinds := i, uint8(0)
		for ; j < len(text); j++ {
			c := text[j]
			kind := letterKinds[c]
			if kind&(kindJoint|kindOther) != 0 && (kind == kindOther || !joins(text, j, rune(c), 1)) {
				break
			}
			kinds |= kind
		}
		if j < len(text) && text[j] >= utf8.RuneSelf {
			var more bool
			if i, clause, more = readWord(text, i, clause, yield); !more {
				return
			}
			continue
		}
		if j-i > maxWord {
			i = j
			continue
		}
		w := word{raw: text[i:j], start: i, end: j, clause: clause}
		if kinds&kindCapital == 0 {
			w.folded = w.raw
			w.known = find(book, w.raw)
		} else {
			var space [maxWord]byte
			small := space[:j-i]
			for k := range small {
				c := w.raw[k]
				if c >= 'A' && c <= 'Z' {
					c |= 0x20
				}
				small[k] = c
			}
			if w.known = find(book, small); w.known != unknownWord {
				w.folded = w.known.word
			} else {
				w.folded = string(small)
			}
		}
		i = j
		if kinds&kindJoint == 0 && w.known.more.parts == nil { // usually
			if !yield(w) {
				return
			}
			clause = w.in(inConjunctions)
			continue
		}
		last, more := w.expand(yield)
		if !more {
			return
		}
		clause = last.sets&inConjunctions != 0
	}
}

// Kinds of bytes, for readers of words.
const (
	kindSmall uint8 = 1 << iota
	kindCapital
	kindDigit
	kindJoint // may hold a word together
	kindOther // non-ASCII included
)

var letterKinds = func() (kinds [256]uint8) {
	for c := range kinds {
		kinds[c] = kindOther
	}
	for c := 'a'; c <= 'z'; c++ {
		kinds[c], kinds[c-'a'+'A'] = kindSmall, kindCapital
	}
	for c := '0'; c <= '9'; c++ {
		kinds[c] = kindDigit
	}
	for _, c := range "'-._," {
		kinds[c] = kindJoint
	}
	return kinds
}()

// readWord reads one word or sign at text[i:] that may hold any character. It
// returns where that ends, whether the next word opens a clause, and whether to
// continue.
func readWord(text string, i int, clause bool, yield func(word) bool) (end int, opens, more bool) {
	r, n := utf8.DecodeRuneInString(text[i:])
	if !alphanumeric(r) {
		switch r {
		case '、', '。', '，', '！', '？', '；', '：', '—', '–', '„', '“', '”', '«', '»', '¡', '¿', '…', '،', '؛', '؟', '।', '۔':
			clause = true
		}
		return i + n, clause, true
	}
	j := i + n
	if alone := n == 3 && ideograph(r); alone { // each is a word
		return j, false, yield(word{raw: text[i:j], folded: text[i:j], start: i, end: j, clause: clause, known: lookUp(text[i:j])})
	}
	for j < len(text) {
		r, n := rune(text[j]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[j:])
		}
		if r >= utf8.RuneSelf && ideograph(r) || !alphanumeric(r) && !(r >= utf8.RuneSelf && unicode.IsMark(r)) && !joins(text, j, r, n) {
			break
		}
		j += n
	}
	if j-i > maxWord {
		return j, clause, true
	}
	w := word{raw: text[i:j], start: i, end: j, clause: clause}
	w.folded = fold(w.raw)
	w.known = lookUp(w.folded)
	last, more := w.expand(yield)
	return j, last.sets&inConjunctions != 0, more
}

// ordinal reports whether the dot at text[at] makes a number the day of a date,
// as in German ("am 14. September"). A number that begins a line numbers an
// item of a list.
func ordinal(text string, at int) bool {
	from := at
	for from > 0 && at-from < 3 && text[from-1] >= '0' && text[from-1] <= '9' {
		from--
	}
	return from < at && at-from < 3 && from > 0 && text[from-1] == ' ' && at+1 < len(text) && text[at+1] == ' '
}

func alphanumeric(r rune) bool {
	if r < utf8.RuneSelf {
		return r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// joins reports whether a sign holds a word together: don't, left-handed, 2.5,
// a_b.
func joins(text string, at int, r rune, n int) bool {
	if r != '\'' && r != '’' && r != '-' && r != '.' && r != '_' && r != ',' {
		return false
	}
	if at+n >= len(text) {
		return false
	}
	after, _ := utf8.DecodeRuneInString(text[at+n:])
	if r == '.' || r == ',' {
		before := text[at-1]
		return before >= '0' && before <= '9' && after >= '0' && after <= '9'
	}
	return unicode.IsLetter(after) || unicode.IsDigit(after)
}

// expand yields the parts of a word that may be a contraction. It returns the
// last of them, and whether to continue.
func (w word) expand(yield func(word) bool) (last *known, more bool) {
	if parts := w.known.more.parts; len(parts) > 0 {
		for _, part := range parts {
			w.folded, w.known = part.word, part
			if !yield(w) {
				return part, false
			}
			w.clause = false
		}
		return w.known, true
	}
	if at := strings.IndexByte(w.folded, '\''); at > 0 {
		if full, ok := lexicon().elisions[w.folded[:at]]; ok && at+1 < len(w.folded) {
			rest := w.folded[at+1:]
			if w.folded, w.known = full, lookUp(full); !yield(w) {
				return w.known, false
			}
			w.folded, w.known, w.clause = rest, lookUp(rest), false
		} else if strings.HasSuffix(w.folded, "'s") {
			w.folded = w.folded[:at]
			w.known = lookUp(w.folded)
		}
	}
	return w.known, yield(w)
}

// fold returns s in lower case without accents, which people leave out; ß
// becomes ss.
func fold(s string) string {
	ascii, capitals := true, false
	for i := range len(s) {
		c := s[i]
		ascii, capitals = ascii && c < utf8.RuneSelf, capitals || c >= 'A' && c <= 'Z'
	}
	if ascii && !capitals {
		return s
	}
	if len(s) > maxWord { // not a word
		b := make([]byte, 0, len(s))
		return string(text.AppendFolded(b, s))
	}
	var space [maxWord + 8]byte
	b := text.AppendFolded(space[:0], s)
	if k := find(vocab(), b); k != unknownWord {
		return k.word
	}
	return string(b)
}

// isContent reports whether the word is a content word: not a stop word, and
// not too short or common. Kana and the most frequent Chinese characters are
// not.
func (w *word) isContent() bool {
	f := w.folded
	if len(f) == 3 && f[0] >= 0xe3 && f[0] <= 0xe9 {
		if r, _ := utf8.DecodeRuneInString(f); ideograph(r) {
			return r >= 0x3400 && !strings.ContainsRune(commonIdeographs, r)
		}
	}
	return !w.in(inStop) && (len(f) > 2 || len(f) > 1 && f[0] >= utf8.RuneSelf) && (f[0] >= 'a' || strings.Trim(f, "0123456789.,-") != "")
}
