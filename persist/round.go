package persist

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/remora-proxy/remora/background"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// round is some audits and what they change, written in one go: the facts, the
// index, the records; then unneeded marks are deleted. Each step can be
// repeated, because ids of facts follow from their words. While the store is
// away or full the round waits inside the gate until an erasure wants it. Then
// it is rolled back, and made again.
type round struct {
	*auditor
	ctx, work context.Context
	changes   map[storage.Scope]*scopeChanges
	records   []storage.Record
	stale     []storage.RecordRef // records beyond their limits
	findings  []finding
	audits    int
	unswept   bool // marks that nothing needs are left
	ended     bool // work ended or an erasure came: what is not committed is due again
	accepted  accepted
	undo      undoLog
}

func (a *auditor) newRound(ctx, work context.Context) *round {
	return &round{auditor: a, ctx: ctx, work: work, changes: map[storage.Scope]*scopeChanges{}}
}

// guardedRound leaves what a round that panics took in to the next.
func (a *auditor) guardedRound(ctx, work, asking context.Context) (more bool) {
	r := a.newRound(ctx, work)
	err := guard(func() error { more = r.run(asking); return nil })
	if err == nil {
		a.panics = 0
		return more
	}
	a.stats.auditsGivenUp.Add(1)
	a.log.Error("audits not made", "error", err)
	r.panicked()
	a.stored = panicRest
	return true
}

// run takes in what waits and makes audits that are due. It reports whether
// there is more to do now.
func (r *round) run(asking context.Context) (more bool) {
	a, begun := r.auditor, time.Now()
	a.pace, a.paused, a.stored = background.Begin(), 0, 0
	r.accept()
	marks, answers, settling := r.accepted.marks, slices.Clone(r.accepted.answers), r.accepted.settling
	r.resolveUncertain()
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
		r.readBack(scope, due)
	}
	for len(answers) > 0 && !full() {
		r.answered(&answers[0])
		answers = answers[1:]
	}
	a.mu.Lock()
	a.resumed, a.answers = append(later, a.resumed...), append(answers, a.answers...)
	a.mu.Unlock()
	r.accepted.marks, r.accepted.answers = nil, nil // the undo log has those that were processed
	for {
		if more = full() || a.overLimit(overflowShare); more {
			break
		}
		t, ok := a.nextIncoming()
		if !ok {
			break
		}
		again := t
		again.messages = slices.Clone(t.messages)
		r.undo.turns = append(r.undo.turns, again)
		r.take(&t)
		a.paused += a.pace.Pause(r.work)
	}
	if !more {
		for _, c := range a.due(time.Now(), len(settling) > 0) {
			if more = full() || !r.hasRoom(c.scope); more {
				break
			}
			if !a.ask(asking, c) {
				r.audit(c, nil)
			}
			a.paused += a.pace.Pause(r.work)
		}
	}
	a.shrink(r)
	committing := time.Now()
	r.commit()
	a.stored = time.Since(committing)
	more = more || r.unswept
	if r.ended && r.work.Err() == nil {
		r.rollBack()
		more = true
	}
	a.evictScopes(nil)
	r.accepted.settling = nil
	if more || a.asking > 0 {
		a.mu.Lock()
		a.settling = append(a.settling, settling...)
		a.mu.Unlock()
		return more
	}
	for _, done := range settling {
		close(done)
	}
	return false
}

// take gives a turn to its conversation. Unread messages that it pushes out of
// the window are audited first. A panic costs the turn its audit.
func (r *round) take(t *auditTurn) {
	err := guard(func() error {
		a, limit := r.auditor, r.cfg.Audit.WindowMessages
		c := a.conversations[t.conversationKey]
		if c == nil {
			c = &conversation{conversationKey: t.conversationKey}
			r.undo.begin(t.conversationKey)
			a.conversations[t.conversationKey] = c
			a.conversationBytes += c.size()
		}
		r.touch(c)
		before := c.size()
		defer func() { a.conversationBytes += c.size() - before }()
		if f := a.scopes[t.scope]; f != nil && !t.recovered {
			if f.episodeBytes += t.bytes; t.private {
				f.LoadPrivate(t.turn)
			}
		}
		if c.overflows(len(t.messages), limit) {
			c.call = 0 // no time to wait for the model
			r.audit(c, nil)
		}
		c.add(t, time.Now(), limit)
		return nil
	})
	if err != nil {
		r.stats.auditsGivenUp.Add(1)
		r.log.Error("turn not audited", "turn", t.turn, "error", err)
	}
}

// retry is shared.retry for steps that yield to an erasure.
func (r *round) retry(what string, try func() error) error {
	return r.shared.retry(r.ctx, r.work, what, r.gate.yielding(try))
}

// try is retry for a step that may fail, and reports whether it succeeded.
func (r *round) try(what string, step func() error) bool {
	err := r.retry(what, step)
	if err != nil && !permanent(err) {
		r.ended = true
	} else if err != nil {
		r.log.Error("audit not stored", "step", what, "error", err)
	}
	return err == nil
}

// full reports whether the round has made enough audits, or holds enough facts.
func (r *round) full() bool {
	return r.ended || r.audits >= roundAudits || len(r.changes) > 1 && r.factBytes() > r.cfg.Facts.CacheBytes
}

// hasRoom reports whether the round may make an audit in scope. Facts exceed
// their limit by those of one scope at most.
func (r *round) hasRoom(scope storage.Scope) bool {
	return !r.full() && (r.changes[scope] != nil || r.factBytes() <= r.cfg.Facts.CacheBytes)
}

// factBytes returns the size of the facts of the round's scopes.
func (r *round) factBytes() (n int64) {
	for _, c := range r.changes {
		n += c.facts.Size()
	}
	return n
}

// changesOf returns the changes to a scope, whose facts it loads if needed.
func (r *round) changesOf(scope storage.Scope) (*scopeChanges, error) {
	if c := r.changes[scope]; c != nil {
		return c, nil
	}
	f := r.scopes[scope]
	if f == nil {
		r.evictScopes(r.changes)
		err := r.retry("audit", func() (err error) {
			f, err = r.loadScope(r.work, scope, r.restFor)
			return err
		})
		if err != nil {
			return nil, err
		}
		r.scopes[scope] = f
	}
	f.used = time.Now()
	c := &scopeChanges{facts.NewChanges(f.Set, r.store, r.cfg.Facts.Config), f}
	r.changes[scope] = c
	return c, nil
}

func (r *round) restFor(d time.Duration) { pause(d, nil, nil, r.work.Done()) }

// scan calls found for memories of one kind, with rests between pages.
func (r *round) scan(scope storage.Scope, kind storage.Kind, what string, found func(*storage.Memory)) error {
	pages := storage.Pages(func(after string) (page storage.Page, next string, err error) {
		q := storage.Query{Kinds: []storage.Kind{kind}, After: after, Limit: scanPage}
		err = r.retry(what, func() (err error) {
			page, err = r.store.Scan(r.work, scope, q)
			return err
		})
		return page, page.Next, err
	})
	begun := time.Now()
	for page, err := range pages {
		if err != nil {
			return err
		}
		for i := range page.Memories {
			found(&page.Memories[i])
		}
		if page.Next != "" {
			r.restFor(time.Since(begun))
		}
		begun = time.Now()
	}
	return nil
}

// factsPerWrite keeps a write far below storage.MaxWrite.
const factsPerWrite = 100

// commit writes all that the round has changed.
func (r *round) commit() {
	if r.ended {
		return
	}
	unlock := func() {}
	for _, c := range r.changes {
		if c.Retags() {
			if r.passages.lock(r.work) != nil {
				r.ended = true
				return
			}
			unlock = sync.OnceFunc(r.passages.unlock)
			defer unlock()
			break
		}
	}
	now := storage.Now()
	var all []storage.Write
	writes := make(map[storage.Scope][]storage.Write, len(r.changes))
	for scope, c := range r.changes {
		var changed []storage.Memory // the passages first
		if !r.try("read passages", func() (err error) { changed, err = c.Passages(r.work); return err }) && r.ended {
			return
		}
		r.stats.factsEvicted.Add(uint64(c.Evict(now)))
		for batch := range slices.Chunk(append(changed, c.Written()...), factsPerWrite) {
			writes[scope] = append(writes[scope], storage.Write{Scope: scope, Memories: batch})
		}
		all = append(all, writes[scope]...)
	}
	together := r.putTogether(all)
	if r.ended {
		return
	}
	if together {
		unlock()
	}
	for scope, c := range r.changes {
		ok := together || r.putApart(writes[scope])
		if gone := c.Deleted(); ok && len(gone) > 0 {
			ok = r.try("delete facts", func() error { _, err := r.store.Delete(r.work, scope, gone...); return err })
			if ok {
				r.index.forget(scope, gone...)
			}
		}
		if r.ended {
			r.markUncertain(scope, c.Deleted()...)
			return
		}
		if !ok {
			delete(r.scopes, scope) // it is ahead of the store: to be read again
			continue
		}
		if c.facts.episodeBytes > r.cfg.Facts.EpisodeBytes {
			r.trimEpisodes(c.facts)
		}
	}
	unlock()
	r.commitRecords()
}

// putTogether writes in one call and updates the index at once: if a later step
// yields to an erasure, the next round finds these facts unchanged. It returns
// false if the store refuses one of the writes.
func (r *round) putTogether(writes []storage.Write) bool {
	if len(writes) == 0 {
		return true
	}
	err := r.retry("store facts", func() error { return r.store.Put(r.work, writes) })
	switch {
	case err == nil:
		for _, w := range writes {
			r.index.add(w.Scope, w.Memories)
		}
		return true
	case !permanent(err):
		r.ended = true
		for i := range writes {
			r.markWriteUncertain(&writes[i])
		}
	}
	return false
}

// putApart writes in a call each, so that the store refuses as little as it
// must.
func (r *round) putApart(writes []storage.Write) bool {
	for i := range writes {
		w := &writes[i]
		if !r.try("store facts", func() error { return r.store.Put(r.work, []storage.Write{*w}) }) {
			if r.ended {
				r.markWriteUncertain(w)
			}
			return false
		}
		r.index.add(w.Scope, w.Memories)
	}
	return true
}

// commitRecords writes the records, and deletes those and the marks that are
// not needed. What can't be deleted now, the next start finds.
func (r *round) commitRecords() {
	for batch := range slices.Chunk(r.records, storage.MaxRecords) {
		r.putBatch(batch)
	}
	if r.ended {
		return
	}
	for i := range r.findings {
		r.stats.audited(&r.findings[i])
	}
	r.undo = undoLog{} // all of it is stored
	marks, more := r.sweepMarks(time.Now(), false)
	r.unswept = more
	for batch := range slices.Chunk(append(r.stale, marks...), storage.MaxRecords) {
		r.try("clear audit marks", func() error { return r.local.DeleteRecords(r.work, batch) })
	}
}

// putBatch writes records, scope by scope if the store refuses one.
func (r *round) putBatch(records []storage.Record) {
	put := func(records []storage.Record) func() error {
		return func() error { return r.local.PutRecords(r.work, records) }
	}
	err := r.retry("store audit", put(records))
	switch {
	case err == nil:
		return
	case !permanent(err):
		r.ended = true
		return
	}
	byScope := make(map[storage.Scope][]storage.Record)
	for _, record := range records {
		byScope[record.Scope] = append(byScope[record.Scope], record)
	}
	for _, records := range byScope {
		r.try("store audit", put(records))
	}
}

// trimEpisodes deletes a scope's oldest episodes down to 9/10 of the limit.
// Pinned ones count, and stay.
func (r *round) trimEpisodes(f *scopeFacts) {
	type passage struct {
		id   string
		size int64
	}
	var all []passage
	total := int64(0)
	err := r.scan(f.scope, storage.KindEpisode, "trim episodes", func(m *storage.Memory) {
		if !facts.Pinned(m) {
			all = append(all, passage{m.ID, int64(len(m.Text))})
		}
		total += int64(len(m.Text))
	})
	if err != nil {
		r.ended = !permanent(err)
		return
	}
	var ids []string
	for _, e := range all {
		if total <= r.cfg.Facts.EpisodeBytes/10*9 {
			break
		}
		total -= e.size
		ids = append(ids, e.id)
	}
	for batch := range slices.Chunk(ids, storage.MaxRecords) {
		err := r.retry("trim episodes", func() error { _, err := r.store.Delete(r.work, f.scope, batch...); return err })
		if err != nil {
			if r.ended = !permanent(err); r.ended {
				r.markUncertain(f.scope, batch...)
			}
			return
		}
		r.index.forget(f.scope, batch...)
		r.stats.episodesEvicted.Add(uint64(len(batch)))
	}
	f.episodeBytes = total
}

// A write may have happened although it failed, for example if the connection
// to the store's process broke after the commit. A round that yields to an
// erasure does not repeat it, and the next round finds the facts stored or
// deleted and has nothing to tell the index.

// markUncertain notes memories whose write or deletion may have happened.
func (r *round) markUncertain(scope storage.Scope, ids ...string) {
	if len(ids) == 0 {
		return
	}
	if r.uncertain == nil {
		r.uncertain = map[storage.Scope][]string{}
	}
	r.uncertain[scope] = append(r.uncertain[scope], ids...)
}

func (r *round) markWriteUncertain(w *storage.Write) {
	for i := range w.Memories {
		r.markUncertain(w.Scope, w.Memories[i].ID)
	}
}

// resolveUncertain updates the index with them. It comes first in a round, so
// they are those of one round at most.
func (r *round) resolveUncertain() {
	if len(r.uncertain) == 0 || r.passages.lock(r.work) != nil {
		return
	}
	defer r.passages.unlock()
	for scope, ids := range r.uncertain {
		for ; len(ids) > 0; ids = ids[1:] {
			var m storage.Memory
			err := r.retry("read again", func() (err error) {
				m, err = r.store.Memory(r.work, scope, ids[0])
				if errors.Is(err, storage.ErrNotFound) {
					m, err = storage.Memory{}, nil
				}
				return err
			})
			switch {
			case err != nil && !permanent(err):
				r.uncertain[scope], r.ended = ids, true
				return
			case err != nil || m.ID == "":
				r.index.forget(scope, ids[0])
			default:
				r.index.add(scope, []storage.Memory{m})
			}
		}
		delete(r.uncertain, scope)
	}
}
