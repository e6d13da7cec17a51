package persist

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// Text that comes back word for word in several conversations of a user is a
// template: a command of an agent's, the prompt of a sub-agent, a form. No
// person said it, so it makes no facts. templates finds it by a sketch for each
// user, as what one says must not decide what is remembered of another. A
// sketch holds hashes of runs of words, each with the conversations in which it
// was met. It holds no words, lives in memory, and starts empty with each run
// and when the user is erased.
//
// Bounds: a sketch has 256 KiB, which is about 30,000 words. Of four runs that
// fall in one place the one of the fewest conversations gives way to a fifth.
// There are sketches of at most 64 users, so 16 MiB; the one that was used
// longest ago gives way.
//
// A short text counts from its third conversation on, as people repeat
// themselves; one in which most sentences speak of the speaker never does.
type templates struct {
	seed   maphash.Seed
	scopes map[storage.Scope]*sketch
	clock  uint64 // of uses
}

const (
	maxSketches  = 64
	sketchPlaces = 1 << 13 // of four runs with 8 bytes each
	runWords     = 6
	maxRuns      = 512 // of a message

	shortTemplate = 12 // words from which on a text is looked at
	longTemplate  = 40 // words from which on two conversations are enough
)

type sketch struct {
	places [sketchPlaces][4]run
	used   uint64
}

// run is a run of words that was met.
type run struct {
	hash uint32    // of the words; its two lowest bits count the conversations, up to three; 0 = an empty place
	seen [2]uint16 // hashes of the first two conversations
}

const maxMet = 3 // conversations, beyond which a run does not count them

func (r *run) met() int { return int(r.hash & maxMet) }

func newTemplates() templates {
	return templates{seed: maphash.MakeSeed(), scopes: map[storage.Scope]*sketch{}}
}

func (t *templates) of(scope storage.Scope) *sketch {
	t.clock++
	s := t.scopes[scope]
	if s == nil {
		if len(t.scopes) >= maxSketches {
			idlest, found := storage.Scope{}, false
			for other, its := range t.scopes {
				if !found || its.used < t.scopes[idlest].used {
					idlest, found = other, true
				}
			}
			delete(t.scopes, idlest)
		}
		s = new(sketch)
		t.scopes[scope] = s
	}
	s.used = t.clock
	return s
}

// forget drops what was met of a user.
func (t *templates) forget(scope storage.Scope) { delete(t.scopes, scope) }

// meet notes that a run was met in a conversation, and returns in how many it
// was met, at most maxMet.
func (s *sketch) meet(hash uint64, conversation uint16) int {
	place := &s.places[hash%sketchPlaces]
	of := uint32(hash>>32) &^ maxMet
	least := &place[0]
	for i := range place {
		r := &place[i]
		n := r.met()
		if n > 0 && r.hash&^maxMet == of {
			if n < maxMet && !slices.Contains(r.seen[:n], conversation) {
				if n < len(r.seen) {
					r.seen[n] = conversation
				}
				r.hash++
				n++
			}
			return n
		}
		if n < least.met() {
			least = r
		}
	}
	*least = run{of | 1, [2]uint16{conversation}}
	return 1
}

// template is the part of a text that came back.
type template struct {
	words    string // normalized
	repeated []bool // by the first word of a run
}

// read notes a user's text, and returns the part of it that is a template, or
// nil.
func (t *templates) read(key conversationKey, text string) *template {
	words := extract.Normalize(text[:min(len(text), maxHeldUser)])
	n := strings.Count(words, " ") + 1
	if n < shortTemplate {
		return nil
	}
	s := t.of(key.scope)
	conversation := uint16(maphash.Comparable(t.seed, key) >> 16)
	few := 2
	if n < longTemplate {
		few = 3
	}
	starts := make([]int, 0, n+1)
	starts = append(starts, 0)
	for i := range len(words) {
		if words[i] == ' ' {
			starts = append(starts, i+1)
		}
	}
	starts = append(starts, len(words)+1)
	out := &template{words: words}
	count := 0
	for i := 0; i+runWords < len(starts) && i < maxRuns; i++ {
		again := s.meet(maphash.String(t.seed, words[starts[i]:starts[i+runWords]-1]), conversation) >= few
		out.repeated = append(out.repeated, again)
		if again {
			count++
		}
	}
	if count*10 < len(out.repeated)*6 || extract.SpeaksOfSelf(text) {
		return nil
	}
	return out
}

// holds reports whether a statement is part of what came back, not of what a
// person added to it.
func (t *template) holds(quote string) bool {
	statement := extract.Normalize(quote)
	at := strings.Index(" "+t.words+" ", " "+statement+" ")
	if at < 0 {
		return false
	}
	from := strings.Count(t.words[:at], " ")
	to := from + strings.Count(statement, " ") + 1
	inside, again := 0, 0
	for i := from; i+runWords <= to && i < len(t.repeated); i++ {
		if inside++; t.repeated[i] {
			again++
		}
	}
	if inside > 0 {
		return 2*again > inside
	}
	// It is shorter than a run, or beyond those that were read: it goes by the
	// runs that hold it.
	first, last := max(0, min(to, len(t.repeated))-runWords), min(from+1, len(t.repeated))
	for i := first; i < last; i++ {
		if inside++; t.repeated[i] {
			again++
		}
	}
	return inside == 0 && from >= len(t.repeated) || 2*again > inside
}
