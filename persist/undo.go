package persist

import (
	"maps"
	"slices"
)

// undoing is what a round has taken in, so that it can be undone: an erasure does not wait for a store that takes no facts, as on a
// full disk, and must find all that it may have to forget where it looks for it. What the round has written by then stands, and is
// written once more.
type undoing struct {
	talks   map[talkKey]*talk // as they were; nil: there was none
	heard   []heardTurn
	marks   []dueMark
	answers []answer
}

// made notes a conversation that the round begins.
func (u *undoing) made(key talkKey) {
	if _, ok := u.talks[key]; !ok {
		u.note(key, nil)
	}
}

func (u *undoing) note(key talkKey, was *talk) {
	if u.talks == nil {
		u.talks = map[talkKey]*talk{}
	}
	u.talks[key] = was
}

// touch notes what a conversation is before the round changes it for the first time.
func (r *roundWork) touch(t *talk) {
	if _, ok := r.undoing.talks[t.talkKey]; ok {
		return
	}
	was := *t
	was.window, was.replaced = slices.Clone(t.window), maps.Clone(t.replaced)
	r.undoing.note(t.talkKey, &was)
}

// undo has the auditor hold what it held before the round. A call of the distiller that the round has begun for a conversation
// that it changed is in vain. The auditor is inside the gate.
func (r *roundWork) undo() {
	a, u := r.auditor, &r.undoing
	for key, was := range u.talks {
		if was == nil {
			delete(a.talks, key)
		} else {
			a.talks[key] = was
		}
	}
	a.held = 0
	for _, t := range a.talks {
		a.held += t.size()
	}
	a.p.stats.talkBytes.Store(a.held)
	clear(a.dossiers) // ahead of the store: to be read anew
	a.asking += len(u.answers)
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range u.heard {
		a.heardBytes += u.heard[i].size()
	}
	a.heard = append(u.heard, a.heard...)
	a.recovered = append(u.marks, a.recovered...)
	a.answers = append(u.answers, a.answers...)
	r.undoing = undoing{}
}

// taken is what a round has taken from the auditor's lists and not put back or taken up yet.
type taken struct {
	marks    []dueMark
	answers  []answer
	settling []chan struct{}
	asking   int // as it was
}

// take empties the auditor's lists.
func (r *roundWork) take() ([]dueMark, []answer, []chan struct{}) {
	a := r.auditor
	a.mu.Lock()
	defer a.mu.Unlock()
	r.taken = taken{a.recovered, slices.Clone(a.answers), a.settling, a.asking}
	answers := a.answers
	a.recovered, a.answers, a.settling = nil, nil, nil
	return r.taken.marks, answers, r.taken.settling
}

// panicked undoes a round that a panic ended, but the third in turn: what that one took in is given up, as a turn is that panics
// so often, or it would end every round. The turns are stored, and their words are context of audits still.
func (r *roundWork) panicked() {
	a, u := r.auditor, &r.undoing
	if r.taken.marks != nil || r.taken.answers != nil { // undoing has a part of them
		u.marks, u.answers = r.taken.marks, r.taken.answers
		a.asking = r.taken.asking - len(u.answers)
	}
	if a.panics++; a.panics < maxTries {
		r.undo()
	} else {
		a.panics = 0
		for i := range u.answers {
			if t := a.talks[u.answers[i].talkKey]; t != nil {
				t.asked = 0
			}
		}
		for key := range u.talks {
			if t := a.talks[key]; t != nil {
				t.asked = 0
				t.audited()
			}
		}
		clear(a.dossiers)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settling = append(r.taken.settling, a.settling...)
}
