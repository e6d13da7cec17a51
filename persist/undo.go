package persist

import "slices"

// undoLog is what a round has taken in, so that it can be rolled back. An
// erasure does not wait for a full disk, and must find all that it has to
// forget. What the round has written by then is written once more.
type undoLog struct {
	conversations map[conversationKey]*conversation // as they were; nil = there was none
	turns         []auditTurn
	marks         []dueMark
	answers       []answer
}

// begin notes a conversation that the round begins.
func (u *undoLog) begin(key conversationKey) {
	if _, ok := u.conversations[key]; !ok {
		u.note(key, nil)
	}
}

func (u *undoLog) note(key conversationKey, was *conversation) {
	if u.conversations == nil {
		u.conversations = map[conversationKey]*conversation{}
	}
	u.conversations[key] = was
}

// touch notes a conversation before the round changes it for the first time.
func (r *round) touch(c *conversation) {
	if _, ok := r.undo.conversations[c.conversationKey]; !ok {
		r.undo.note(c.conversationKey, c.clone())
	}
}

// rollBack restores what the auditor held before the round. The answer to a
// call that the round has begun is ignored. The auditor is inside the gate.
func (r *round) rollBack() {
	a, u := r.auditor, &r.undo
	for key, was := range u.conversations {
		if was == nil {
			delete(a.conversations, key)
		} else {
			a.conversations[key] = was
		}
	}
	a.countBytes()
	clear(a.scopes) // ahead of the store: to be read again
	a.asking += len(u.answers)
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range u.turns {
		a.incomingBytes += u.turns[i].size()
	}
	a.incoming = append(u.turns, a.incoming...)
	a.resumed = append(u.marks, a.resumed...)
	a.answers = append(u.answers, a.answers...)
	r.undo = undoLog{}
}

// accepted is what a round has taken and not yet put back or processed.
type accepted struct {
	marks    []dueMark
	answers  []answer
	settling []chan struct{}
	asking   int // as it was
}

// accept empties the auditor's lists.
func (r *round) accept() {
	a := r.auditor
	a.mu.Lock()
	defer a.mu.Unlock()
	r.accepted = accepted{a.resumed, a.answers, a.settling, a.asking}
	for i := range a.resumed { // counted as unread until the round ends
		a.unread[a.resumed[i].scope]++
	}
	a.resumed, a.answers, a.settling = nil, nil, nil
}

// panicked rolls back a round. After the third panic in a row it gives up what
// the round took in, or every round would end so. The turns stay stored, and
// stay context of audits.
func (r *round) panicked() {
	a, u := r.auditor, &r.undo
	if r.accepted.marks != nil || r.accepted.answers != nil { // the undo log has only some of them
		u.marks, u.answers = r.accepted.marks, r.accepted.answers
		a.asking = r.accepted.asking - len(u.answers)
	}
	if a.panics++; a.panics < maxTries {
		r.rollBack()
	} else {
		a.panics = 0
		for i := range u.answers {
			if c := a.conversations[u.answers[i].conversationKey]; c != nil {
				c.call = 0
			}
		}
		for key := range u.conversations {
			if c := a.conversations[key]; c != nil {
				c.call = 0
				c.audited()
			}
		}
		clear(a.scopes)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settling = slices.Concat(r.accepted.settling, a.settling)
}
