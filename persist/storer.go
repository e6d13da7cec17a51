package persist

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/remora-proxy/remora/background"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/telemetry"
)

// tracerName is the name of the instrumentation.
const tracerName = "github.com/remora-proxy/remora/persist"

// storer makes memories of durable turns: Put, then the index, then spool
// records are deleted. Each step can be repeated after a crash or an error.
type storer struct {
	*shared
	auditor *auditor
	aside   int // quarantined records in the spool; an erasure changes it while the gate is closed
}

// run stores until spooling is closed and nothing is spooled, or work ends.
func (s *storer) run(ctx, work context.Context, spooling <-chan struct{}) {
	t := &s.tuning
	size := batchSize{enough: t.batchTurns, max: t.maxBatchTurns, bytes: math.MaxInt64, interval: t.batchInterval}
	for {
		batch := s.queue.gather(work, &s.queue.spooled, s.queue.wakeStorer, spooling, size)
		if batch == nil {
			return
		}
		unsaved := batch
		if s.gate.enter(work) {
			if unsaved = s.queue.unfinished(batch); len(unsaved) > 0 {
				unsaved = s.storeBatch(ctx, work, unsaved)
			}
			s.gate.leave()
		}
		if len(unsaved) > 0 {
			s.queue.putBack(unsaved) // at the end they are counted; they stay in the spool
			if work.Err() != nil {
				return
			}
		}
	}
}

// storeBatch stores a batch, turn by turn if the store refuses it. It returns
// what it could not store before work ended or an erasure came.
func (s *storer) storeBatch(ctx, work context.Context, batch []*item) []*item {
	put := func(items []*item) error {
		return s.retry(ctx, work, "store", s.gate.yielding(func() error { return s.upsert(work, items) }))
	}
	switch err := put(batch); {
	case err == nil:
		s.complete(ctx, work, batch)
		return nil
	case !permanent(err):
		return batch
	}
	for i, it := range batch {
		var err error
		for ; it.tries < maxTries; it.tries++ {
			if err = put([]*item{it}); err == nil || !permanent(err) {
				break
			}
		}
		switch {
		case err == nil && it.tries < maxTries:
			s.complete(ctx, work, []*item{it})
		case err != nil && !permanent(err), !s.setAside(ctx, work, it, err):
			return batch[i:]
		}
	}
	return nil
}

// outcome is what an upsert did to one turn.
type outcome int

const (
	added outcome = iota
	replaced
	unchanged
	overtaken // a later turn of the batch has the same id
	repeated  // a later turn of the batch has the same id and words
)

// upsert writes a batch and updates the index. Counters move only on success.
func (s *storer) upsert(ctx context.Context, batch []*item) (err error) {
	if err := s.passages.lock(ctx); err != nil {
		return err
	}
	defer s.passages.unlock()
	ctx, span := s.tracer.Start(ctx, telemetry.SpanUpsert, trace.WithAttributes(
		telemetry.AttrOperation.String(telemetry.SpanUpsert), telemetry.AttrTurns.Int(len(batch))))
	defer func() {
		if err != nil {
			span.SetAttributes(telemetry.AttrError.String(errorName(err)))
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}()
	pace, pressed := background.Begin(), s.queue.pressed()
	rest := func() {
		if pressed {
			pace.Yield()
		} else {
			pace.Pause(ctx)
		}
	}
	outcomes, episodes, err := s.compareAll(ctx, batch, rest)
	if err != nil {
		return err
	}
	var writes []storage.Write
	records := 0
	for i, it := range batch {
		o := outcomes[i]
		if o != added && o != replaced {
			continue
		}
		writes = append(writes, storage.Write{Scope: it.turn.Scope, Turn: it.turn.ID, Memories: episodes[i]})
		records += len(episodes[i])
		if !it.attempted {
			it.attempted, it.effect = true, o
		}
	}
	span.SetAttributes(telemetry.AttrRecords.Int(records)) // also if they can't be written, as the convention has it
	if len(writes) > 0 {
		if err := s.store.Put(ctx, writes); err != nil {
			return err
		}
	}
	counts := [5]int{}
	memories, bytes := 0, 0
	for i, it := range batch {
		o := outcomes[i]
		if o == unchanged && it.attempted {
			o = it.effect // of an earlier attempt
		}
		counts[o]++
		it.changed = o == added || o == replaced || o == unchanged && it.recovered
		it.replaced = o == replaced
		if o != overtaken && o != repeated && s.index.index != nil {
			// Unchanged ones too: the run that stored them may have died before
			// it updated the index.
			rest()
			s.index.notifyOrPanic(func(x Indexer) { x.Add(it.turn.Scope, it.turn.ID, withoutOriginals(episodes[i])) })
		}
		if o == added || o == replaced {
			memories += len(episodes[i])
			for k := range episodes[i] {
				bytes += len(episodes[i][k].Text)
			}
		}
	}
	s.stats.indexed.Add(uint64(counts[added] + counts[replaced]))
	s.stats.replaced.Add(uint64(counts[replaced] + counts[overtaken]))
	s.stats.duplicates.Add(uint64(counts[unchanged] + counts[repeated]))
	s.stats.memories.Add(uint64(memories))
	s.stats.saved.add(memories, time.Now())
	s.stats.passageBytes.Add(uint64(bytes))
	span.SetAttributes(telemetry.AttrAdded.Int(counts[added]), telemetry.AttrReplaced.Int(counts[replaced]+counts[overtaken]),
		telemetry.AttrUnchanged.Int(counts[unchanged]+counts[repeated]))
	return nil
}

// errorName names an error without quoting it.
func errorName(err error) string {
	switch {
	case errors.Is(err, storage.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "failed"
}

// compareAll decides what each turn does to the store, and cuts it into
// episodes.
func (s *storer) compareAll(ctx context.Context, batch []*item, rest func()) ([]outcome, [][]storage.Memory, error) {
	outcomes, episodes := make([]outcome, len(batch)), make([][]storage.Memory, len(batch))
	newest := make(map[turnKey]*item, len(batch))
	for _, it := range batch {
		newest[it.key()] = it
	}
	stored, err := s.maybeStored(ctx, slices.Collect(maps.Values(newest)))
	if err != nil {
		return nil, nil, err
	}
	for i, it := range batch {
		rest()
		if last := newest[it.key()]; last != it {
			outcomes[i] = overtaken
			if slices.EqualFunc(it.turn.Messages, last.turn.Messages, sameMessage) {
				outcomes[i] = repeated
			}
			continue
		}
		salt, err := s.redactor.salt(ctx, it.turn)
		if err != nil {
			return nil, nil, err
		}
		episodes[i] = episodesOf(it.turn, s.cfg.Retention, salt, s.cfg.MaxWrite)
		if stored[it] {
			if outcomes[i], err = s.compare(ctx, it, episodes[i]); err != nil {
				return nil, nil, err
			}
		}
		if outcomes[i] == replaced && !it.attempted {
			if it.reworded, err = s.reworded(ctx, it, episodes[i]); err != nil {
				return nil, nil, err
			}
		}
	}
	return outcomes, episodes, nil
}

// maybeStored returns the items that the store may have; the others are new.
func (s *storer) maybeStored(ctx context.Context, items []*item) (map[*item]bool, error) {
	prober, ok := s.store.(storage.Prober)
	maybe := make(map[*item]bool, len(items))
	for batch := range slices.Chunk(items, storage.MaxRecords) {
		refs := make([]storage.MemoryRef, len(batch))
		for i, it := range batch {
			refs[i] = storage.MemoryRef{Scope: it.turn.Scope, ID: storage.TurnMemoryID(it.turn.ID, 0)}
			maybe[it] = true
		}
		if !ok {
			continue
		}
		found, err := prober.Probe(ctx, refs)
		if errors.Is(err, errors.ErrUnsupported) {
			ok = false
			continue
		}
		if err != nil {
			return nil, err
		}
		for i, it := range batch {
			maybe[it] = found[i]
		}
	}
	return maybe, nil
}

type turnKey struct {
	scope storage.Scope
	id    string
}

func (it *item) key() turnKey { return turnKey{it.turn.Scope, it.turn.ID} }

// compare reads what the store has of a turn. The same words by the same
// speaker are the same turn, whatever the time: a client's retry has another
// one. An unchanged passage stays as it is, with its tags and what was changed
// by hand. If a passage was private the whole turn stays so.
func (s *storer) compare(ctx context.Context, it *item, episodes []storage.Memory) (outcome, error) {
	out, private := unchanged, false
	for seq := 0; ; seq++ {
		m, err := s.store.Memory(ctx, it.turn.Scope, storage.TurnMemoryID(it.turn.ID, seq))
		switch {
		case errors.Is(err, storage.ErrNotFound) && seq == 0:
			return added, nil
		case errors.Is(err, storage.ErrNotFound):
			if seq < len(episodes) {
				out = replaced
			}
			if private {
				for i := range episodes {
					if !isPrivate(&episodes[i]) {
						episodes[i].Tags = append(slices.Clip(episodes[i].Tags), storage.PrivateTag)
					}
				}
			}
			return out, nil
		case errors.Is(err, storage.ErrDamaged):
			out = replaced // writing it again repairs it
			continue
		case err != nil:
			return added, err
		}
		private = private || isPrivate(&m)
		if seq >= len(episodes) {
			out = replaced
			continue
		}
		e := &episodes[seq]
		same := sameWords(m, *e)
		if !same {
			if same, err = s.edited(ctx, it.turn.Scope, m.ID, e); err != nil {
				return added, err
			}
		}
		if !same {
			out = replaced
			continue
		}
		e.Text, e.Redactions, e.Tags, e.DeletedAt, e.Trust, e.Priority = m.Text, m.Redactions, m.Tags, m.DeletedAt, m.Trust, m.Priority
		if facts.Pinned(&m) {
			e.ExpiresAt = 0
		}
	}
}

// edited reports whether a stored passage is what somebody made by hand of the
// words of e.
func (s *storer) edited(ctx context.Context, scope storage.Scope, id string, e *storage.Memory) (bool, error) {
	revisions, err := s.revisions(ctx, scope, recordKey(id))
	return slices.ContainsFunc(revisions, func(r Revision) bool { return sameWords(r.Before, *e) }), err
}

// reworded reports whether the user's words differ in the stored version. A
// regenerated reply leaves them, and the facts made of them, as they are.
func (s *storer) reworded(ctx context.Context, it *item, episodes []storage.Memory) (bool, error) {
	for seq := range len(episodes) + 1 {
		m, err := s.store.Memory(ctx, it.turn.Scope, storage.TurnMemoryID(it.turn.ID, seq))
		stored := err == nil
		if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
			return false, err
		}
		users := seq < len(episodes) && episodes[seq].Provenance.Role == storage.RoleUser
		if users && (!stored || m.Text != episodes[seq].Text) || stored && m.Provenance.Role == storage.RoleUser && !users {
			return true, nil
		}
	}
	return false, nil
}

func sameMessage(a, b Message) bool {
	return a.Role == b.Role && a.Speaker == b.Speaker && a.Text == b.Text
}

func sameWords(a, b storage.Memory) bool {
	return a.Text == b.Text && a.Conversation == b.Conversation && a.Provenance.Role == b.Provenance.Role &&
		a.Provenance.Speaker == b.Provenance.Speaker && a.Provenance.Chain == b.Provenance.Chain
}

// complete hands stored turns to the auditor and deletes their spool records.
// If that fails permanently, the next run finds the turns stored already.
func (s *storer) complete(ctx, work context.Context, items []*item) {
	refs := make([]storage.RecordRef, len(items))
	var stored []auditTurn
	for i, it := range items {
		refs[i] = it.ref
		if !it.changed {
			continue
		}
		err := guard(func() error {
			t := newAuditTurn(&it.turn, s.cfg.Audit.WindowMessages)
			t.replaced, t.reworded, t.recovered = it.replaced, it.replaced && it.reworded, it.recovered
			stored = append(stored, t)
			return nil
		})
		if err != nil { // it is stored all the same
			s.stats.auditsGivenUp.Add(1)
			s.log.Error("turn not audited", "turn", it.turn.ID, "error", err)
		}
	}
	for marks := s.auditor.add(stored); len(marks) > 0; marks = s.auditor.add(stored) {
		err := s.retry(ctx, work, "mark audits", s.gate.yielding(func() error { return s.local.PutRecords(work, marks) }))
		if errors.Is(err, errYield) { // a crash would lose the audit
			defer s.auditor.unmarked(marks)
			continue
		}
		if err != nil && !permanent(err) {
			break // work ended: the turns are still in the spool
		}
	}
	if len(stored) > 0 {
		wake(s.auditor.wake)
	}
	for _, it := range items {
		s.stats.latency.add(time.Since(it.since))
	}
	s.queue.finish(items...) // searchable: nobody needs to wait for the spool
	if err := s.retry(ctx, work, "clear spool", func() error { return s.local.DeleteRecords(work, refs) }); err != nil && permanent(err) {
		s.log.Error("spool can't be cleared", "error", err)
	}
}

// setAside marks a poison turn, so that no run tries it again. False means that
// work ended first.
func (s *storer) setAside(ctx, work context.Context, it *item, cause error) bool {
	problem := "refused by the store"
	if errors.Is(cause, errPanic) {
		problem = "panic"
	}
	value, err := encodeEntry(it, problem)
	if err == nil && s.aside < s.cfg.MaxQuarantined {
		record := storage.Record{
			Bucket: it.ref.Bucket, Scope: it.ref.Scope, Key: it.ref.Key, Value: value,
			ExpiresAt: storage.TimeOf(storage.Clock().Add(s.cfg.Retention)),
		}
		err = s.retry(ctx, work, "quarantine", func() error { return s.local.PutRecords(work, []storage.Record{record}) })
		if err != nil && !permanent(err) {
			return false
		}
		if err == nil {
			s.aside++
			s.stats.quarantined.Add(1)
			s.log.Error("turn set aside", "turn", it.turn.ID, "tries", it.tries, "problem", problem)
			s.queue.finish(it)
			return true
		}
	}
	s.stats.drop(DropPoison)
	s.log.Error("turn dropped: no room in quarantine", "turn", it.turn.ID, "problem", problem)
	s.complete(ctx, work, []*item{it})
	return true
}
