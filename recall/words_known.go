package recall

import (
	"strings"
	"sync"
)

// spelling is what is known of an English word as it is spelled, in lower case, and of the stem that is spelled so: one look
// where there are ten lists.
type spelling struct {
	traits   traits
	standing standing // of the stem
	stop     bool     // an English one
	base     string   // of an irregular form, else ""
}

// standing is what a query makes of a stem.
type standing uint8

const (
	ofRequest  standing = 1 << iota // in requestWords
	isLight                         // in lightWords
	isSocial                        // in socialWords
	hasRelated                      // related knows it
	ofArea                          // a request with it is about an area of heed.txt
	unsure                          // nobody has looked
)

// spellings are all of which anything is known. As related, New has it read.
var spellings = sync.OnceValue(func() map[string]spelling {
	m := map[string]spelling{}
	with := func(w string, note func(s *spelling)) {
		s := m[w]
		note(&s)
		m[w] = s
	}
	list := func(words map[string]bool, t traits, st standing) {
		for w := range words {
			with(w, func(s *spelling) { s.traits, s.standing = s.traits|t, s.standing|st })
		}
	}
	list(firstPersonWords, firstPerson, 0)
	list(timeWords, hasTime, 0)
	list(numberWords, hasNumber, 0)
	list(wishWords, wishes, 0)
	list(orderWords, orders, 0)
	list(requestWords, 0, ofRequest)
	list(lightWords, 0, isLight)
	list(socialWords, 0, isSocial)
	for l, words := range socialElsewhere {
		for w := range strings.FieldsSeq(words) {
			for _, l := range [...]language{language(l), langEnglish} { // of a word alone nothing tells the language
				with(stemIn(l, w), func(s *spelling) { s.standing |= isSocial })
			}
		}
	}
	for w := range related() {
		with(w, func(s *spelling) { s.standing |= hasRelated })
	}
	for w := range heeds().asks {
		with(w, func(s *spelling) { s.standing |= ofArea })
	}
	for w := range stopWords {
		with(w, func(s *spelling) { s.stop = true })
	}
	for w, base := range irregular {
		with(w, func(s *spelling) { s.base = base })
	}
	return m
})
