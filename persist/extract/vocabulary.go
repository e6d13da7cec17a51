package extract

import "sync"

// known is what the lexicon and the lists beside it say of a word: one look where there are dozens of maps. It belongs to every
// [word] that a reader of words finds.
type known struct {
	word string
	sets uint64 // a bit for each, see setBit
	more *habits
}

// habits are what few words have.
type habits struct {
	parts    []*known   // of a contraction
	patterns []*pattern // of the lexicon, that it may begin
	orders   []*pattern // of standingOrders, the same
	drops    bool       // it is among dropVerbs
}

// unheard is the word that no list has.
var unheard = &known{more: &habits{}}

// vocabulary finds them by a hash of the folded word: open addressing over a table that is never full nor changes, so no text
// can make a look cost more than the longest row of its own words.
type vocabulary struct {
	slots []uint32 // 0, or the upper half of the hash above the place in list + 1
	list  []known
}

// vocabularySlots is a power of two, and more than twice as many as there are words.
const vocabularySlots = 1 << 13

// heard is built when it is first asked for, and never changed.
var heard = sync.OnceValue(func() *vocabulary { return newVocabulary(lexicon(), standingOrders()) })

// FNV-1a: readers of words work it out as they go, a letter at a time.
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

// newVocabulary takes in all words of both books, and has their patterns know them.
func newVocabulary(l, orders *wordBook) *vocabulary {
	const many = vocabularySlots / 2 // words, about
	places := make(map[string]int, many)
	v := &vocabulary{slots: make([]uint32, vocabularySlots), list: make([]known, 0, many)}
	note := func(w string) *known {
		at, ok := places[w]
		if !ok {
			at = len(v.list)
			places[w] = at
			v.list = append(v.list, known{word: w, more: unheard.more})
		}
		return &v.list[at]
	}
	for _, book := range []*wordBook{l, orders} { // first all, for the list moves as it grows
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
	more := func(w string) *habits {
		k := note(w)
		if k.more == unheard.more {
			k.more = &habits{}
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

// find returns what is known of a folded word with that hash, never nil.
func find[T string | []byte](v *vocabulary, w T, hash uint32) *known {
	for at := hash % vocabularySlots; ; at = (at + 1) % vocabularySlots {
		slot := v.slots[at]
		if slot == 0 {
			return unheard
		}
		if slot&^0xffff == hash&^0xffff {
			if k := &v.list[slot&0xffff-1]; k.word == string(w) {
				return k
			}
		}
	}
}

func knownAs(w string) *known { return find(heard(), w, hashOf(w)) }

// in says whether the word is in a set of the lexicon, by its bit.
func (w *word) in(set uint64) bool { return w.known.sets&set != 0 }

// inDates is the bit of dateWords: the last one, which no book has.
const inDates = 1 << 63

// The sets of the lexicon that words are looked for in most, by their bits. bitNames has their names, in the same order.
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
