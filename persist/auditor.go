package persist

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remora-proxy/remora/background"
	"github.com/remora-proxy/remora/storage"
)

// The auditor hears of every stored turn and audits conversations when they are due. It works beside the storer, one
// conversation at a time, and rests three times as long as it worked, pauses within its work counted in, so that it takes a quarter
// of a processor at most. It rests longer while turns queue up, and less while someone waits for it.

const (
	roundAudits   = 128 // audits between two commits
	roundTime     = 50 * time.Millisecond
	longestRest   = 10 * time.Second // a round that waited an hour for a store that was away is no work of an hour
	backlog       = 512              // turns on their way from which on the auditor takes a smaller share
	heardOverhead = 256
	panicRest     = time.Second // after a round that panicked
)

type auditor struct {
	p         *Pipeline
	distiller Distiller
	wake      chan struct{}

	mu         sync.Mutex // guards what follows
	heard      []heardTurn
	heardBytes int64
	marked     map[talkKey]string // keys of the marks of conversations that have one
	swept      time.Time          // when marks were last looked at
	noted      map[talkKey]bool   // whose marks are being written
	answers    []answer
	settling   []chan struct{} // Settle calls that wait
	ended      bool            // run has returned
	recovered  []dueMark

	// The rest is the auditor's own while it is inside the gate, and an erasure's while the gate is closed.
	talks      map[talkKey]*talk
	dossiers   map[storage.Scope]*dossier
	cached     int64
	held       int64                      // bytes of talks
	doubts     map[storage.Scope][]string // memories that the index may have to be told of
	asking     int                        // calls of the distiller under way
	calling    int                        // the number of the last one
	pace       background.Work            // of the round
	breathed   time.Duration              // in this round
	waited     time.Duration              // for the store, at its end
	reading    reading                    // of the audit at hand
	byIdleness []idle                     // room for shrink to sort them
	calls      sync.WaitGroup             // of those under way
	panics     int                        // rounds that ended so, one after another
}

func newAuditor(p *Pipeline) *auditor {
	return &auditor{
		p: p, wake: make(chan struct{}, 1), marked: map[talkKey]string{}, noted: map[talkKey]bool{}, talks: map[talkKey]*talk{}, dossiers: map[storage.Scope]*dossier{},
	}
}

// run audits until ending is closed or the work ends.
func (a *auditor) run(ctx, work context.Context, ending <-chan struct{}) {
	asking, stop := context.WithCancel(work)
	defer func() {
		a.mu.Lock()
		a.ended = true
		for _, done := range a.settling { // what is left is due at the next start
			close(done)
		}
		a.settling = nil
		a.mu.Unlock()
		stop()
		a.calls.Wait()
		if a.p.gate.enter(work) { // so that the next start has to look at what is left only
			marks, _ := a.unmark(time.Now(), true)
			for refs := range slices.Chunk(marks, storage.MaxRecords) {
				_ = guard(func() error { return a.p.local.DeleteRecords(work, refs) }) // else it looks
			}
			a.p.gate.leave()
		}
	}()
	for {
		if !a.p.gate.enter(work) {
			return
		}
		begun := time.Now()
		more := a.guardedRound(ctx, work, asking)
		var next time.Time
		if !more { // it looks at all conversations
			next = a.nextDue()
		}
		a.p.gate.leave()
		// Rest for some times as long as it worked, longer while turns queue up, then until something is due or heard.
		rest := a.waited + restAfter(time.Since(begun)-a.breathed-a.waited, a.breathed, a.patience())
		if !pause(min(rest, longestRest), nil, ending, work.Done()) {
			return
		}
		if more {
			continue
		}
		idle := time.Hour
		if !next.IsZero() {
			idle = max(time.Until(next), 0)
		}
		if !pause(idle, a.wake, ending, work.Done()) {
			return
		}
	}
}

// restAfter is what of patience times the work has not been rested between.
func restAfter(worked, breathed time.Duration, patience int) time.Duration {
	return max(time.Duration(patience)*worked-breathed, 0)
}

// pause waits for d or a wake-up; false means that one of the ends came first.
func pause(d time.Duration, wakeup, ending, work <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-wakeup:
		return true
	case <-ending:
	case <-work:
	}
	return false
}

// guardedRound is a round in which a panic is no end of the process: what it took in is for the next.
func (a *auditor) guardedRound(ctx, work, asking context.Context) (more bool) {
	r := &roundWork{auditor: a, ctx: ctx, work: work, mergings: map[storage.Scope]*merging{}}
	err := guard(func() error { more = a.round(r, asking); return nil })
	if err == nil {
		a.panics = 0
		return more
	}
	a.p.stats.auditsGivenUp.Add(1)
	a.p.log.Error("audits not made", "error", err)
	r.panicked()
	a.waited = panicRest
	return true
}

// round takes in what was heard and makes some of the audits that are due. It returns whether there is more to do now.
func (a *auditor) round(r *roundWork, asking context.Context) bool {
	begun, work := time.Now(), r.work
	a.pace, a.breathed, a.waited = background.Begin(), 0, 0
	marks, answers, settling := r.take()
	r.resolve()
	byScope := map[storage.Scope][]dueMark{}
	for _, m := range marks {
		byScope[m.scope] = append(byScope[m.scope], m)
	}
	full := func() bool { return r.full() || time.Since(begun) > roundTime }
	var later []dueMark
	for scope, due := range byScope { // each costs a scan, and erasures wait for the round
		if full() {
			later = append(later, due...)
			continue
		}
		a.recall(r, scope, due)
	}
	for len(answers) > 0 && !full() {
		a.answered(r, &answers[0])
		answers = answers[1:]
	}
	a.mu.Lock()
	a.recovered, a.answers = append(later, a.recovered...), append(answers, a.answers...)
	a.mu.Unlock()
	r.taken.marks, r.taken.answers = nil, nil // undoing has those that were taken up
	more := false
	for {
		if more = full() || a.over(overfull); more {
			break
		}
		h, ok := a.nextHeard()
		if !ok {
			break
		}
		again := h
		again.messages = slices.Clone(h.messages)
		r.undoing.heard = append(r.undoing.heard, again)
		a.hear(r, &h)
		a.breathed += a.pace.Pause(work)
	}
	if !more {
		for _, t := range a.due(time.Now(), len(settling) > 0) {
			if more = full() || !r.room(t.scope); more {
				break
			}
			if !a.ask(asking, t) {
				r.audit(t, nil)
			}
			a.breathed += a.pace.Pause(work)
		}
	}
	a.shrink(r)
	worked := time.Now()
	r.commit()
	a.waited = time.Since(worked)
	more = more || r.unswept
	if r.ended && work.Err() == nil {
		r.undo()
		more = true
	}
	a.evict(nil)
	r.taken.settling = nil
	if len(settling) > 0 {
		if more || a.asking > 0 {
			a.mu.Lock()
			a.settling = append(a.settling, settling...)
			a.mu.Unlock()
		} else {
			for _, done := range settling {
				close(done)
			}
		}
	}
	return more
}

func (a *auditor) nextHeard() (heardTurn, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.heard) == 0 {
		a.heard = nil
		return heardTurn{}, false
	}
	h := a.heard[0]
	a.heard = a.heard[1:]
	a.heardBytes -= h.size()
	return h, true
}

// hear takes a turn. A panic over its words costs that turn's audit, not the process.
func (a *auditor) hear(r *roundWork, h *heardTurn) {
	if err := guard(func() error { a.take(r, h); return nil }); err != nil {
		a.p.stats.auditsGivenUp.Add(1)
		a.p.log.Error("turn not audited", "turn", h.turn, "error", err)
	}
}

// take gives a turn to its conversation. What it would push out of the window unseen is audited first.
func (a *auditor) take(r *roundWork, h *heardTurn) {
	t := a.talks[h.talkKey]
	if t == nil {
		t = &talk{talkKey: h.talkKey}
		r.undoing.made(h.talkKey)
		a.talks[h.talkKey] = t
		a.held += t.size()
	}
	r.touch(t)
	before := t.size()
	defer func() { a.held += t.size() - before }()
	if d := a.dossiers[h.scope]; d != nil && !h.again {
		d.episodes += h.bytes
	}
	if t.full(len(h.messages), a.p.cfg.Audit.WindowMessages) {
		t.asked = 0 // no time to wait for the model
		r.audit(t, nil)
	}
	t.hear(h, time.Now(), a.p.cfg.Audit.WindowMessages)
}

// due lists the conversations whose audit is due, the longest due first; all that have anything to audit when settling.
func (a *auditor) due(now time.Time, settling bool) []*talk {
	var out []*talk
	for _, t := range a.talks {
		if at := t.dueAt(&a.p.cfg.Audit); !at.IsZero() && (settling || !at.After(now)) {
			out = append(out, t)
		}
	}
	a.pace.Yield()
	slices.SortFunc(out, func(x, y *talk) int {
		if c := x.dueAt(&a.p.cfg.Audit).Compare(y.dueAt(&a.p.cfg.Audit)); c != 0 {
			return c
		}
		return strings.Compare(x.conversation, y.conversation)
	})
	return out
}

// nextDue is when there will be something to do, zero for never.
func (a *auditor) nextDue() time.Time {
	var next time.Time
	for _, t := range a.talks {
		if at := t.dueAt(&a.p.cfg.Audit); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// over says whether conversations are over their bounds by a share of them.
func (a *auditor) over(share int64) bool {
	cfg := &a.p.cfg.Audit
	most, bytes := int64(cfg.MaxConversations), cfg.MaxBytes
	if share > 0 {
		most, bytes = most+max(most/share, 1), bytes+bytes/share
	}
	return int64(len(a.talks)) > most || a.held > bytes && len(a.talks) > 1
}

// idle is a conversation by when it was last heard of.
type idle struct {
	since int64
	*talk
}

// overfull is the share, one in so many, by which conversations may pass their bounds until no more is heard: so those that go
// are found at a time.
const overfull = 8

// shrink lets go of the conversations that were idle longest until they keep their bounds. What is let go of unaudited is audited
// now, a scope's one after another, for the sake of its facts, and no more of it than fits the round, or takes as long: the next goes on.
func (a *auditor) shrink(r *roundWork) {
	defer func() { a.p.stats.talkBytes.Store(a.held) }()
	a.held = 0
	for _, t := range a.talks {
		a.held += t.size()
	}
	a.pace.Yield()
	if !a.over(0) {
		return
	}
	var going []idle // since is their scope's place from here on
	most, held := len(a.talks), a.held
	idlest := a.byIdleness[:0]
	for _, t := range a.talks {
		idlest = append(idlest, idle{t.last.UnixNano(), t})
	}
	a.pace.Yield()
	slices.SortFunc(idlest, func(x, y idle) int { return cmp.Compare(x.since, y.since) })
	for _, t := range idlest {
		if most-len(going) <= a.p.cfg.Audit.MaxConversations && (held <= a.p.cfg.Audit.MaxBytes || most-len(going) <= 1) {
			break
		}
		held -= t.size()
		going = append(going, t)
	}
	clear(idlest)
	a.byIdleness = idlest
	a.pace.Yield()
	place := map[storage.Scope]int{}
	for i, t := range going {
		at, ok := place[t.scope]
		if !ok {
			if at = i; a.dossiers[t.scope] != nil { // those whose facts are here go first
				at -= len(going)
			}
			place[t.scope] = at
		}
		going[i].since = int64(at)
	}
	slices.SortStableFunc(going, func(x, y idle) int { return cmp.Compare(x.since, y.since) })
	begun := time.Now()
	for _, of := range going {
		t := of.talk
		if t.dirty() && (!r.room(t.scope) || time.Since(begun) > roundTime) {
			continue
		}
		a.held -= t.size()
		if t.dirty() {
			r.audit(t, nil)
			a.breathed += a.pace.Pause(r.work)
		}
		delete(a.talks, t.talkKey)
	}
}

// evict lets go of facts beyond their bounds, those that were idle longest, but for those that are in use.
func (a *auditor) evict(inUse map[storage.Scope]*merging) {
	facts := &a.p.cfg.Facts
	a.cached = 0
	for _, d := range a.dossiers {
		a.cached += d.bytes
	}
	for len(a.dossiers) > facts.MaxScopes || a.cached > facts.CacheBytes && len(a.dossiers) > 1 {
		var idlest *dossier
		for _, d := range a.dossiers {
			if inUse[d.scope] == nil && (idlest == nil || d.used.Before(idlest.used)) {
				idlest = d
			}
		}
		if idlest == nil {
			break
		}
		a.cached -= idlest.bytes
		delete(a.dossiers, idlest.scope)
	}
	a.p.stats.factBytes.Store(a.cached)
}

// patience is how many times as long as it worked the auditor rests, unless someone waits for it: what it leaves, requests and
// the turns that queue up can have. It lags then, until it has heard of as many turns as it may hold, and counts those beyond.
func (a *auditor) patience() int {
	a.mu.Lock()
	waited := len(a.settling) > 0
	a.mu.Unlock()
	a.p.mu.Lock()
	turns := a.p.inFlight.turns
	a.p.mu.Unlock()
	switch {
	case waited:
		return 1
	case turns > backlog:
		return 9
	}
	return 3
}

// Settle audits all that was stored before the call, whatever its time, and waits for it. It needs Run to be running.
func (p *Pipeline) Settle(ctx context.Context) error {
	if err := p.Flush(ctx); err != nil {
		return err
	}
	done := make(chan struct{})
	p.auditor.mu.Lock()
	if p.auditor.ended {
		p.auditor.mu.Unlock()
		return ErrClosed
	}
	p.auditor.settling = append(p.auditor.settling, done)
	p.auditor.mu.Unlock()
	wake(p.auditor.wake)
	return p.await(ctx, done)
}
