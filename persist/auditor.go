package persist

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remora-proxy/remora/background"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

const (
	roundAudits = 128 // audits between two commits
	roundTime   = 50 * time.Millisecond
	maxRest     = 10 * time.Second // a round that waited an hour for the store did not work for an hour
	busyTurns   = 512              // in the queue; from there on the auditor takes a smaller share of the processor
	panicRest   = time.Second      // after a round that panicked
)

// auditor takes in every stored turn and audits conversations when they are
// due. It rests three times as long as it works, so it takes at most a quarter
// of a processor. It rests longer while turns queue up, and less while somebody
// waits for it.
type auditor struct {
	*shared
	distiller Distiller
	wake      chan struct{}

	mu            sync.Mutex // guards what follows
	incoming      []auditTurn
	incomingBytes int64
	marked        map[conversationKey]string // keys of the marks of conversations that have one
	marking       map[conversationKey]bool   // whose marks are being written
	swept         time.Time                  // when marks were last swept
	resumed       []dueMark                  // of an earlier run
	answers       []answer
	settling      []chan struct{} // Settle calls that wait
	ended         bool            // run has returned
	// unread counts the turns that conversations hold and no audit has read,
	// those included that a round has just taken from incoming.
	unread map[storage.Scope]int

	// The rest belongs to the auditor while it is inside the gate, and to an
	// erasure while the gate is closed.
	conversations     map[conversationKey]*conversation
	conversationBytes int64
	scopes            map[storage.Scope]*scopeFacts
	uncertain         map[storage.Scope][]string // memories whose write or deletion may have happened
	asking            int                        // calls of the distiller under way
	lastCall          int                        // number of the last one
	calls             sync.WaitGroup             // of those under way
	pace              background.Work            // of the round
	paused            time.Duration              // in this round
	stored            time.Duration              // spent on its commit
	panics            int                        // rounds in a row that ended so
	byIdleness        []idle                     // buffer of shrink
	templates         templates
}

// scopeFacts is what the auditor holds of a scope, to merge facts and keep its
// limits. It is read when the first of the scope's conversations is audited.
type scopeFacts struct {
	*facts.Set
	scope        storage.Scope
	episodeBytes int64
	records      keptRecords
	used         time.Time
}

func newAuditor(s *shared) *auditor {
	return &auditor{
		shared: s, wake: make(chan struct{}, 1), marked: map[conversationKey]string{}, marking: map[conversationKey]bool{}, unread: map[storage.Scope]int{},
		conversations: map[conversationKey]*conversation{}, scopes: map[storage.Scope]*scopeFacts{},
		templates: newTemplates(),
	}
}

// run audits until ending is closed or work ends.
func (a *auditor) run(ctx, work context.Context, ending <-chan struct{}) {
	asking, stop := context.WithCancel(work)
	defer a.stop(work, stop)
	for {
		if !a.gate.enter(work) {
			return
		}
		begun := time.Now()
		more := a.guardedRound(ctx, work, asking)
		var next time.Time
		if !more { // it looks at all conversations
			next = a.nextDue()
		}
		a.mu.Lock()
		a.countUnread()
		a.mu.Unlock()
		a.gate.leave()
		// Rest in proportion to the work, then until something is due or comes
		// in.
		rest := a.stored + restAfter(time.Since(begun)-a.paused-a.stored, a.paused, a.restFactor())
		if !pause(min(rest, maxRest), nil, ending, work.Done()) {
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

// stop wakes those who wait, cancels calls of the distiller and deletes marks
// that nothing needs. What is left is due at the next start.
func (a *auditor) stop(work context.Context, cancel func()) {
	a.mu.Lock()
	a.ended = true
	for _, done := range a.settling {
		close(done)
	}
	a.settling = nil
	a.mu.Unlock()
	cancel()
	a.calls.Wait()
	if a.gate.enter(work) {
		marks, _ := a.sweepMarks(time.Now(), true)
		_ = guard(func() error { return a.deleteRecords(work, marks) })
		a.gate.leave()
	}
}

// restAfter returns factor times the work, less the rests taken during it.
func restAfter(worked, paused time.Duration, factor int) time.Duration {
	return max(time.Duration(factor)*worked-paused, 0)
}

// restFactor is how many times as long as it worked the auditor rests. If it
// lags, up to maxIncoming turns wait for it; those beyond are counted.
func (a *auditor) restFactor() int {
	a.mu.Lock()
	waited := len(a.settling) > 0
	a.mu.Unlock()
	turns, _, _ := a.queue.state()
	switch {
	case waited:
		return 1
	case turns > busyTurns:
		return 9
	}
	return 3
}

// settle returns a channel that is closed when all that has come in is audited;
// ok is false after run has returned.
func (a *auditor) settle() (done chan struct{}, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil, false
	}
	done = make(chan struct{})
	a.settling = append(a.settling, done)
	wake(a.wake)
	return done, true
}

// waiting counts waiting turns, and conversations with unread messages.
func (a *auditor) waiting() (turns, conversations int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.incoming), len(a.marked)
}

func (a *auditor) nextIncoming() (auditTurn, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.incoming) == 0 {
		a.incoming = nil
		return auditTurn{}, false
	}
	t := a.incoming[0]
	a.incoming = a.incoming[1:]
	a.incomingBytes -= t.size()
	a.unread[t.scope]++
	return t, true
}

// owed counts the stored turns that no audit has read, and adds to own those of
// each user in it. A conversation that is still to be read back counts as one.
func (a *auditor) owed(own map[storage.Scope]int) (all int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.cfg.Audit.Enabled {
		return 0
	}
	count := func(of storage.Scope, n int) {
		all += n
		if _, ok := own[of]; ok {
			own[of] += n
		}
	}
	for i := range a.incoming {
		count(a.incoming[i].scope, 1)
	}
	for i := range a.resumed {
		count(a.resumed[i].scope, 1)
	}
	for of, n := range a.unread {
		count(of, n)
	}
	return all
}

// countUnread counts anew what conversations hold. Needs mu.
func (a *auditor) countUnread() {
	clear(a.unread)
	for _, c := range a.conversations {
		if n := c.unreadTurns(); n > 0 {
			a.unread[c.scope] += n
		}
	}
}

// due returns the conversations that are due, longest first; when settling, all
// that have anything to audit.
func (a *auditor) due(now time.Time, settling bool) []*conversation {
	var out []*conversation
	for _, c := range a.conversations {
		if at := c.dueAt(&a.cfg.Audit); !at.IsZero() && (settling || !at.After(now)) {
			out = append(out, c)
		}
	}
	a.pace.Yield()
	slices.SortFunc(out, func(x, y *conversation) int {
		return cmp.Or(x.dueAt(&a.cfg.Audit).Compare(y.dueAt(&a.cfg.Audit)), strings.Compare(x.conversation, y.conversation))
	})
	return out
}

// nextDue returns when the next audit is due, zero for never.
func (a *auditor) nextDue() time.Time {
	var next time.Time
	for _, c := range a.conversations {
		if at := c.dueAt(&a.cfg.Audit); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// overLimit reports whether conversations exceed their limits, plus one
// share-th of them if share is not 0.
func (a *auditor) overLimit(share int64) bool {
	cfg := &a.cfg.Audit
	limit, bytes := int64(cfg.MaxConversations), cfg.MaxBytes
	if share > 0 {
		limit, bytes = limit+max(limit/share, 1), bytes+bytes/share
	}
	return int64(len(a.conversations)) > limit || a.conversationBytes > bytes && len(a.conversations) > 1
}

// overflowShare: until shrink is called, conversations may exceed their limits
// by an eighth, so that many are dropped at a time.
const overflowShare = 8

// countBytes adds up what conversations take.
func (a *auditor) countBytes() {
	a.conversationBytes = 0
	for _, c := range a.conversations {
		a.conversationBytes += c.size()
	}
	a.stats.conversationBytes.Store(a.conversationBytes)
}

// idle is a conversation with its rank for shrink.
type idle struct {
	rank int64
	*conversation
}

// shrink drops the conversations that were idle longest until the limits hold.
// Unread ones are audited first, scope by scope so that facts are read once.
// The next round continues with those that do not fit this one.
func (a *auditor) shrink(r *round) {
	defer func() { a.stats.conversationBytes.Store(a.conversationBytes) }()
	a.countBytes()
	a.pace.Yield()
	if !a.overLimit(0) {
		return
	}
	byIdleness := a.byIdleness[:0]
	for _, c := range a.conversations {
		byIdleness = append(byIdleness, idle{c.last.UnixNano(), c})
	}
	a.pace.Yield()
	slices.SortFunc(byIdleness, func(x, y idle) int { return cmp.Compare(x.rank, y.rank) })
	var dropped []idle
	n, bytes := len(a.conversations), a.conversationBytes
	for _, c := range byIdleness {
		if n <= a.cfg.Audit.MaxConversations && (bytes <= a.cfg.Audit.MaxBytes || n <= 1) {
			break
		}
		n, bytes = n-1, bytes-c.size()
		dropped = append(dropped, c)
	}
	clear(byIdleness)
	a.byIdleness = byIdleness
	a.pace.Yield()
	rank := map[storage.Scope]int{}
	for i, c := range dropped {
		if _, ok := rank[c.scope]; !ok {
			if rank[c.scope] = i; a.scopes[c.scope] != nil { // those whose facts are in memory first
				rank[c.scope] -= len(dropped)
			}
		}
		dropped[i].rank = int64(rank[c.scope])
	}
	slices.SortStableFunc(dropped, func(x, y idle) int { return cmp.Compare(x.rank, y.rank) })
	begun := time.Now()
	for _, of := range dropped {
		c := of.conversation
		if c.dirty() && (!r.hasRoom(c.scope) || time.Since(begun) > roundTime) {
			continue
		}
		a.conversationBytes -= c.size()
		if c.dirty() {
			r.audit(c, nil)
			a.paused += a.pace.Pause(r.work)
		}
		delete(a.conversations, c.conversationKey)
	}
}

// evictScopes drops the facts of idle scopes until the limits hold.
func (a *auditor) evictScopes(inUse map[storage.Scope]*scopeChanges) {
	bytes := int64(0)
	for _, f := range a.scopes {
		bytes += f.Size()
	}
	for len(a.scopes) > a.tuning.maxScopes || bytes > a.cfg.Facts.CacheBytes && len(a.scopes) > 1 {
		var idlest *scopeFacts
		for _, f := range a.scopes {
			if inUse[f.scope] == nil && (idlest == nil || f.used.Before(idlest.used)) {
				idlest = f
			}
		}
		if idlest == nil {
			break
		}
		bytes -= idlest.Size()
		delete(a.scopes, idlest.scope)
	}
	a.stats.factBytes.Store(bytes)
}

// loadScope reads a scope's facts and records, and counts its episodes.
func (a *auditor) loadScope(ctx context.Context, scope storage.Scope, rest func(time.Duration)) (*scopeFacts, error) {
	f := &scopeFacts{Set: facts.NewSet(scope), scope: scope, records: keptRecords{summaries: map[string]storage.Time{}}}
	err := a.eachMemoryResting(ctx, scope, storage.Query{}, func(m *storage.Memory) {
		switch m.Kind {
		case storage.KindFact:
			f.Load(m)
		case storage.KindEpisode:
			if f.episodeBytes += int64(len(m.Text)); isPrivate(m) {
				f.LoadPrivate(m.Provenance.Turn)
			}
		}
	}, rest)
	if err != nil {
		return nil, err
	}
	newest := storage.Time(0)
	for _, bucket := range [...]storage.Bucket{storage.BucketAudit, storage.BucketSummary} {
		err := a.eachRecord(ctx, bucket, scope, func(r storage.Record) {
			if r.Bucket == storage.BucketAudit && facts.IsTombstone(&r) {
				f.LoadTombstone(&r)
			} else {
				f.records.load(&r, &newest)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(f.records.pending, func(a, b pendingAge) int { return cmp.Compare(a.at, b.at) })
	return f, nil
}

// forget drops all that is held of matching conversations. The gate is closed.
func (a *auditor) forget(matches func(conversationKey) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.incoming = slices.DeleteFunc(a.incoming, func(t auditTurn) bool {
		gone := matches(t.conversationKey)
		if gone {
			a.incomingBytes -= t.size()
		}
		return gone
	})
	a.resumed = slices.DeleteFunc(a.resumed, func(m dueMark) bool { return matches(m.conversationKey) })
	a.answers = slices.DeleteFunc(a.answers, func(ans answer) bool {
		gone := matches(ans.conversationKey)
		if gone {
			a.asking--
		}
		return gone
	})
	for k := range a.marked {
		if matches(k) {
			delete(a.marked, k)
		}
	}
	for k := range a.conversations {
		if matches(k) { // the answer of a call under way finds no conversation
			delete(a.conversations, k)
			a.templates.forget(k.scope)
		}
	}
	for scope := range a.templates.scopes {
		if matches(conversationKey{scope: scope}) { // all of the user's
			a.templates.forget(scope)
		}
	}
	a.countUnread()
	clear(a.scopes) // to be read again
}

// forgetTurn removes a turn from what waits for an audit, or only its reply if
// the user's words stay. The gate is closed.
func (a *auditor) forgetTurn(scope storage.Scope, turn string, users bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.incoming {
		t := &a.incoming[i]
		if t.scope != scope || t.turn != turn {
			continue
		}
		a.incomingBytes -= t.size()
		t.messages = slices.DeleteFunc(t.messages, func(m windowMessage) bool { return users || !m.User })
		a.incomingBytes += t.size()
	}
	for _, c := range a.conversations {
		if c.scope == scope {
			c.forgetTurn(turn, users)
		}
	}
	a.countUnread()
}

// unaudited returns a conversation's unread turns. The gate is closed.
func (a *auditor) unaudited(key conversationKey) map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]bool{}
	for i := range a.incoming {
		if a.incoming[i].conversationKey == key {
			out[a.incoming[i].turn] = true
		}
	}
	if c := a.conversations[key]; c != nil {
		for i := range c.window {
			if c.window[i].New {
				out[c.window[i].turn] = true
			}
		}
	}
	return out
}
