package persist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/remora-proxy/remora/persist/distill"
	"github.com/remora-proxy/remora/storage"
)

// roundWork is some audits and what they change, written in one go: first the facts, then the index is told, then the
// records, then marks that nothing needs go. Each step can be repeated; a crash between two of them costs a
// repetition, for facts have ids of their words. While the store is away, or full, the round waits, holding the gate, until an
// erasure wants it: then the round is undone, and made anew after that.
type roundWork struct {
	*auditor
	ctx, work context.Context
	mergings  map[storage.Scope]*merging
	records   []storage.Record
	found     []finding
	stale     []storage.RecordRef // records beyond their bounds
	audits    int
	unswept   bool // marks that nothing needs are left
	taken     taken
	ended     bool // the work ended, or an erasure came: what was not committed is due at the next start, or in the next round
	undoing   undoing
}

// retry is the pipeline's, and yields to an erasure.
func (r *roundWork) retry(what string, try func() error) error {
	return r.p.retry(r.ctx, r.work, what, r.p.gate.yielding(try))
}

// full says whether the round has done enough: it holds what its audits change, and the facts of all their scopes.
func (r *roundWork) full() bool {
	return r.ended || r.audits >= roundAudits || len(r.mergings) > 1 && r.facts() > r.p.cfg.Facts.CacheBytes
}

// room says whether the round may make an audit in scope: facts beyond their bound are those of one scope, at most.
func (r *roundWork) room(scope storage.Scope) bool {
	return !r.full() && (r.mergings[scope] != nil || r.facts() <= r.p.cfg.Facts.CacheBytes)
}

// facts are the bytes of what is held of the facts of the round's scopes.
func (r *roundWork) facts() (n int64) {
	for _, g := range r.mergings {
		n += g.d.bytes
	}
	return n
}

// merging returns what the round changes in a scope, and reads the scope's facts if they are not held.
func (r *roundWork) merging(scope storage.Scope) (*merging, error) {
	if g := r.mergings[scope]; g != nil {
		return g, nil
	}
	d := r.dossiers[scope]
	if d == nil {
		r.evict(r.mergings)
		rest := func(took time.Duration) { pause(took, nil, nil, r.work.Done()) }
		err := r.retry("audit", func() (err error) {
			d, err = r.p.loadDossier(r.work, scope, rest)
			return err
		})
		if err != nil {
			return nil, err
		}
		r.dossiers[scope] = d
	}
	d.used = time.Now()
	g := r.p.newMerging(d)
	r.mergings[scope] = g
	return g, nil
}

// audit audits one conversation. Whatever comes of it, its messages count as seen, unless the work ended.
func (r *roundWork) audit(t *talk, proposals []distill.Proposal) {
	if r.ended || !t.dirty() {
		return
	}
	r.audits++
	r.touch(t)
	g, err := r.merging(t.scope)
	if err == nil && r.p.cfg.Audit.Enabled {
		err = guard(func() error { return r.inspect(t, g, proposals) }) // what is written of it included
	}
	switch {
	case err == nil:
	case !permanent(err) && !errors.Is(err, errTooLong):
		r.ended = true
		return
	default:
		r.p.stats.auditsGivenUp.Add(1)
		r.p.log.Warn("audit given up", "error", err)
	}
	t.audited()
}

func (r *roundWork) inspect(t *talk, g *merging, proposals []distill.Proposal) error {
	if t.summary == nil {
		err := r.retry("audit", func() (err error) {
			t.summary, err = r.p.summaryOf(r.work, g.d, t.conversation)
			return err
		})
		if err != nil {
			return err
		}
	}
	before := *t.summary // whose lists an audit replaces
	var found finding
	late := false
	err := r.retry("audit", func() (err error) {
		again := before
		t.summary = &again
		found, err = r.p.inspect(r.work, t, g, proposals, time.Now)
		if late = errors.Is(err, errTooLong); late { // repeating won't mend it
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case late:
		return errTooLong
	}
	found.record.Distilled = proposals != nil
	r.found = append(r.found, found)
	r.write(t, g.d, &found)
	return nil
}

// write adds the records of an audit.
func (r *roundWork) write(t *talk, d *dossier, f *finding) {
	cfg := &r.p.cfg.Audit
	now := time.Now()
	expires := storage.TimeOf(now.Add(cfg.Retention))
	add := func(bucket storage.Bucket, key string, value []byte) {
		r.records = append(r.records, storage.Record{Bucket: bucket, Scope: t.scope, Key: key, Value: value, ExpiresAt: expires})
	}
	if cfg.KeepRecords > 0 {
		add(storage.BucketAudit, fmt.Sprintf("%s%05d", auditPrefix, d.records%cfg.KeepRecords), f.record.encode(now))
		d.records++
	}
	if cfg.KeepSummaries > 0 {
		key := recordKey(t.conversation)
		add(storage.BucketSummary, key, t.summary.encode())
		d.summaries[key] = t.summary.Updated
		for len(d.summaries) > cfg.KeepSummaries {
			oldest := key
			for k, at := range d.summaries {
				if k != key && (oldest == key || at < d.summaries[oldest] || at == d.summaries[oldest] && k < oldest) {
					oldest = k
				}
			}
			delete(d.summaries, oldest)
			r.stale = append(r.stale, storage.RecordRef{Bucket: storage.BucketSummary, Scope: t.scope, Key: oldest})
		}
	}
	for i := range f.requests {
		q := &f.requests[i]
		value, err := q.encode()
		if err != nil || cfg.MaxPending == 0 {
			continue
		}
		key := forgetPrefix + q.ID
		if !slices.ContainsFunc(d.pending, func(p pendingAge) bool { return p.key == key }) {
			d.pending = append(d.pending, pendingAge{key, q.At})
		}
		add(storage.BucketAudit, key, value)
		for len(d.pending) > cfg.MaxPending {
			r.stale = append(r.stale, storage.RecordRef{Bucket: storage.BucketAudit, Scope: t.scope, Key: d.pending[0].key})
			d.pending = d.pending[1:]
		}
	}
}

// commit writes all of it.
func (r *roundWork) commit() {
	p := r.p
	if r.ended {
		return
	}
	do := func(what string, try func() error) bool {
		err := r.retry(what, try)
		if err != nil && !permanent(err) {
			r.ended = true
		} else if err != nil {
			p.log.Error("audit not stored", "step", what, "error", err)
		}
		return err == nil
	}
	now := storage.TimeOf(time.Now())
	unlock := func() {}
	for _, g := range r.mergings {
		if len(g.turned) == 0 {
			continue
		}
		if p.turns.lock(r.work) != nil {
			r.ended = true
			return
		}
		unlock = sync.OnceFunc(p.turns.unlock)
		defer unlock()
		break
	}
	var all []storage.Write
	writes := make(map[storage.Scope][]storage.Write, len(r.mergings))
	for scope, g := range r.mergings {
		var changed []storage.Memory // passages first: facts that a crash leaves behind are found to be stored, and nothing is done again
		if !do("look at passages", func() (err error) { changed, err = g.outdated(r.work); return err }) && r.ended {
			return
		}
		p.stats.factsEvicted.Add(uint64(g.evict(now)))
		for _, id := range g.order {
			changed = append(changed, *g.changed[id])
		}
		for batch := range slices.Chunk(changed, factsPerWrite) {
			writes[scope] = append(writes[scope], storage.Write{Scope: scope, Memories: batch})
		}
		all = append(all, writes[scope]...)
	}
	together := true // unless one of the scopes is to blame
	if len(all) > 0 {
		err := r.retry("store facts", func() error { return p.store.Put(r.work, all) })
		if together = err == nil; err != nil && !permanent(err) {
			r.ended = true
			for i := range all {
				r.doubtWrite(&all[i])
			}
			return
		}
	}
	// The index is told at once: if a later step gives way to an erasure, the next round finds nothing new in these facts.
	stored := func(ws []storage.Write) {
		for _, w := range ws {
			p.tell(func(x Indexer) { x.Add(w.Scope, "", withoutOriginals(w.Memories)) })
		}
	}
	if together {
		stored(all)
		unlock()
	}
	for scope, g := range r.mergings {
		ok := true
		if !together {
			for _, w := range writes[scope] {
				if ok = ok && do("store facts", func() error { return p.store.Put(r.work, []storage.Write{w}) }); ok {
					stored([]storage.Write{w})
				} else if r.ended {
					r.doubtWrite(&w)
					return
				}
			}
		}
		if ok && len(g.gone) > 0 {
			ok = do("delete facts", func() error { _, err := p.store.Delete(r.work, scope, g.gone...); return err })
		}
		if r.ended {
			r.doubt(scope, g.gone...)
			return
		}
		if !ok {
			delete(r.dossiers, scope) // it is ahead of the store: read it anew
			continue
		}
		if len(g.gone) > 0 {
			p.tell(func(x Indexer) { x.Forget(scope, g.gone...) })
		}
		if g.d.episodes > p.cfg.Facts.EpisodeBytes {
			r.trim(g.d)
		}
	}
	unlock()
	for batch := range slices.Chunk(r.records, storage.MaxRecords) {
		r.store(batch, do)
	}
	if r.ended {
		return
	}
	for i := range r.found {
		p.stats.audited(&r.found[i])
	}
	r.undoing = undoing{} // all of it stands. What can't be cleared now, the next start finds
	marks, more := r.unmark(time.Now(), false)
	r.unswept = more
	for batch := range slices.Chunk(append(r.stale, marks...), storage.MaxRecords) {
		do("clear audit marks", func() error { return p.local.DeleteRecords(r.work, batch) })
	}
}

// store keeps records, those of each scope by themselves if one of them is to blame.
func (r *roundWork) store(records []storage.Record, do func(what string, try func() error) bool) {
	put := func(records []storage.Record) func() error {
		return func() error { return r.p.local.PutRecords(r.work, records) }
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
		do("store audit", put(records))
	}
}

// factsPerWrite keeps a write far below storage.MaxWrite.
const factsPerWrite = 100

// trim lets the oldest episodes of a scope go until nine tenths of the bound are left.
func (r *roundWork) trim(d *dossier) {
	p := r.p
	left := p.cfg.Facts.EpisodeBytes / 10 * 9
	total := int64(0)
	type passage struct {
		id   string
		size int64
	}
	var all []passage
	for q := (storage.Query{Kinds: []storage.Kind{storage.KindEpisode}, Limit: scanPage}); ; {
		begun := time.Now()
		var page storage.Page
		err := r.retry("trim episodes", func() (err error) {
			page, err = p.store.Scan(r.work, d.scope, q)
			return err
		})
		if err != nil {
			r.ended = !permanent(err)
			return
		}
		for i := range page.Memories {
			all = append(all, passage{page.Memories[i].ID, int64(len(page.Memories[i].Text))})
			total += int64(len(page.Memories[i].Text))
		}
		if page.Next == "" || page.Next == q.After {
			break
		}
		q.After = page.Next
		pause(time.Since(begun), nil, nil, r.work.Done())
	}
	var ids []string
	for _, e := range all {
		if total <= left {
			break
		}
		total -= e.size
		ids = append(ids, e.id)
	}
	for batch := range slices.Chunk(ids, storage.MaxRecords) {
		err := r.retry("trim episodes", func() error { _, err := p.store.Delete(r.work, d.scope, batch...); return err })
		if err != nil {
			if r.ended = !permanent(err); r.ended {
				r.doubt(d.scope, batch...)
			}
			return
		}
		p.tell(func(x Indexer) { x.Forget(d.scope, batch...) })
		p.stats.episodesEvicted.Add(uint64(len(batch)))
	}
	d.episodes = total
}
