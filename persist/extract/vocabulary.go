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

// vocabulary holds all words of the lists, by their folded form.
type vocabulary map[string]*known

// vocab is built on first use and never changed.
var vocab = sync.OnceValue(func() vocabulary { return newVocabulary(lexicon(), standingOrders()) })

// newVocabulary indexes the words of both books and binds their patterns to
// them.
func newVocabulary(l, orders *wordBook) vocabulary {
	v := vocabulary{}
	note := func(w string) *known {
		k := v[w]
		if k == nil {
			k = &known{word: w, more: unknownWord.more}
			v[w] = k
		}
		return k
	}
	more := func(w string) *details {
		k := note(w)
		if k.more == unknownWord.more {
			k.more = &details{}
		}
		return k.more
	}
	for _, book := range []*wordBook{l, orders} {
		for name, set := range book.sets {
			for w := range set {
				note(w).sets |= book.setBit[name]
			}
		}
		for w, list := range book.byFirst {
			if book == l {
				more(w).patterns = list
			} else {
				more(w).orders = list
			}
			for _, p := range list {
				p.bind(note, book)
			}
		}
		for _, p := range book.anywhere {
			p.bind(note, book)
		}
	}
	for _, t := range tongues() {
		for _, p := range t.patterns {
			p.bind(note, l)
		}
	}
	for w := range dateWords {
		note(w).sets |= inDates
	}
	for w := range dropVerbs {
		more(w).drops = true
	}
	for w, parts := range l.contractions {
		d := more(w)
		for _, part := range parts {
			d.parts = append(d.parts, note(part))
		}
	}
	return v
}

// find returns the entry of a folded word, never nil.
func find[T string | []byte](v vocabulary, w T) *known {
	if k := v[string(w)]; k != nil {
		return k
	}
	return unknownWord
}

func lookUp(w string) *known { return find(vocab(), w) }

// in reports whether the word is in a set of the lexicon.
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
