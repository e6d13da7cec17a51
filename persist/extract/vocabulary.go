package extract

import "sync"

// known is what the word lists hold about a word: one lookup instead of dozens.
type known struct {
	word string
	sets uint64 // one bit each: see wordBook.setBit
	more *details
}

// details are what few words have.
type details struct {
	parts    []*known   // of a contraction
	patterns []*pattern // of the lexicon that may begin with it
	orders   []*pattern // of standingOrders that may begin with it
	drops    bool       // it is in dropVerbs
}

// unknownWord is the entry of all words that are in no list.
var unknownWord = &known{more: &details{}}

// vocabulary finds words by a hash of their folded form. It is an
// open-addressing table that is never full and never changes, so a text can't
// make a lookup cost more than the longest run of occupied slots.
type vocabulary struct {
	slots []uint32 // 0, or the upper half of the hash over the index in list + 1
	list  []known
}

// vocabularySlots is a power of two, and more than twice the number of words.
const vocabularySlots = 1 << 13

// vocab is built on first use and never changed.
var vocab = sync.OnceValue(func() *vocabulary { return newVocabulary(lexicon(), standingOrders()) })

// FNV-1a, which readers of words compute letter by letter.
const (
	hashStart = 2166136261
	hashPrime = 16777619
)

func hashOf[T string | []byte](w T) uint32 {
	h := uint32(hashStart)
	for i := range len(w) {
		h = (h ^ uint32(w[i])) * hashPrime
	}
	return h
}

// newVocabulary indexes the words of both books and binds their patterns to
// them.
func newVocabulary(l, orders *wordBook) *vocabulary {
	const many = vocabularySlots / 2 // words, roughly
	places := make(map[string]int, many)
	v := &vocabulary{slots: make([]uint32, vocabularySlots), list: make([]known, 0, many)}
	note := func(w string) *known {
		at, ok := places[w]
		if !ok {
			at = len(v.list)
			places[w] = at
			v.list = append(v.list, known{word: w, more: unknownWord.more})
		}
		return &v.list[at]
	}
	for _, book := range []*wordBook{l, orders} { // first all words: the list moves as it grows
		for name, set := range book.sets {
			for w := range set {
				note(w).sets |= book.setBit[name]
			}
		}
		for _, list := range book.byFirst {
			for _, p := range list {
				for i := range p.parts {
					for _, w := range p.parts[i].words {
						note(w)
					}
				}
			}
		}
		for _, p := range book.anywhere {
			for i := range p.parts {
				for _, w := range p.parts[i].words {
					note(w)
				}
			}
		}
	}
	for w, parts := range l.contractions {
		note(w)
		for _, part := range parts {
			note(part)
		}
	}
	for w := range dateWords {
		note(w).sets |= inDates
	}
	for w := range dropVerbs {
		note(w)
	}
	more := func(w string) *details {
		k := note(w)
		if k.more == unknownWord.more {
			k.more = &details{}
		}
		return k.more
	}
	for w, list := range l.byFirst {
		more(w).patterns = list
	}
	for w, list := range orders.byFirst {
		more(w).orders = list
	}
	for w := range dropVerbs {
		more(w).drops = true
	}
	for w, parts := range l.contractions {
		h := more(w)
		for _, part := range parts {
			h.parts = append(h.parts, note(part))
		}
	}
	for i := range v.list {
		h := hashOf(v.list[i].word)
		at := h % vocabularySlots
		for v.slots[at] != 0 {
			at = (at + 1) % vocabularySlots
		}
		v.slots[at] = h&^0xffff | uint32(i+1)
	}
	for _, book := range []*wordBook{l, orders} {
		for _, list := range book.byFirst {
			for _, p := range list {
				p.bind(v, book)
			}
		}
		for _, p := range book.anywhere {
			p.bind(v, book)
		}
	}
	return v
}

// find returns the entry of a folded word with that hash, never nil.
func find[T string | []byte](v *vocabulary, w T, hash uint32) *known {
	for at := hash % vocabularySlots; ; at = (at + 1) % vocabularySlots {
		slot := v.slots[at]
		if slot == 0 {
			return unknownWord
		}
		if slot&^0xffff == hash&^0xffff {
			if k := &v.list[slot&0xffff-1]; k.word == string(w) {
				return k
			}
		}
	}
}

func lookUp(w string) *known { return find(vocab(), w, hashOf(w)) }

// in reports whether the word is in a set of the lexicon, given by its bit.
func (w *word) in(set uint64) bool { return w.known.sets&set != 0 }

// inDates is the bit of dateWords. It is the last one, which no book uses.
const inDates = 1 << 63

// Bits of the sets of the lexicon that are used most. bitNames has their names
// in the same order.
const (
	inStop uint64 = 1 << iota
	inConjunctions
	inLead
	inBare
	inPersonal
	inAsking
	inOpeners
	inCorrecting
	inAdverb
	inMental
	inSpanish
	inVague
	inThings
	inAnybody
	inProduct
	inConstraint
	inPassing
	inWeekdays
	inMonths
	inRelative
	inDue
)

var bitNames = [...]string{
	"stop", "conjunctions", "lead", "bare", "personal", "asking", "openers", "correcting", "adverb", "mental", "spanish",
	"vague", "things", "anybody", "product", "constraint", "passing", "weekdays", "months", "relative", "dueword",
}
