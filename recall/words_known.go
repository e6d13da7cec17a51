package recall

import "sync"

// spelling is what is known of an English word as it is spelled, in lower case: one look where there are six lists.
type spelling struct {
	traits traits
	stop   bool
	base   string // of an irregular form, else ""
}

var spellings = func() map[string]spelling {
	m := map[string]spelling{}
	with := func(words map[string]bool, note func(s *spelling)) {
		for w := range words {
			s := m[w]
			note(&s)
			m[w] = s
		}
	}
	with(stopWords, func(s *spelling) { s.stop = true })
	with(firstPersonWords, func(s *spelling) { s.traits |= firstPerson })
	with(timeWords, func(s *spelling) { s.traits |= hasTime })
	with(numberWords, func(s *spelling) { s.traits |= hasNumber })
	with(wishWords, func(s *spelling) { s.traits |= wishes })
	with(orderWords, func(s *spelling) { s.traits |= orders })
	for w, base := range irregular {
		s := m[w]
		s.base = base
		m[w] = s
	}
	return m
}()

// standing is what a query makes of a stem.
type standing uint8

const (
	ofRequest  standing = 1 << iota // in requestWords
	isLight                         // in lightWords
	isSocial                        // in socialWords
	hasRelated                      // related knows it
	unsure                          // nobody has looked
)

// standings say it of all stems that they say anything of.
var standings = sync.OnceValue(func() map[string]standing {
	m := map[string]standing{}
	for w := range requestWords {
		m[w] |= ofRequest
	}
	for w := range lightWords {
		m[w] |= isLight
	}
	for w := range socialWords {
		m[w] |= isSocial
	}
	for w := range related() {
		m[w] |= hasRelated
	}
	return m
})
