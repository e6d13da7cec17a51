package persist

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/remora-proxy/remora/background"
	"github.com/remora-proxy/remora/storage"
)

// The storer makes memories of durable turns: Put, then the index, then the spool records go. Each step can be repeated,
// so a crash or an error between two of them costs a repetition and nothing else.

const (
	tracerName = "github.com/remora-proxy/remora/persist"
	spanName   = "upsert_memory"
)

func (p *Pipeline) runStorer(ctx, work context.Context, spooling <-chan struct{}) {
	for {
		batch := p.gather(work, &p.spooled, p.wakeB, spooling, p.cfg.BatchTurns, p.cfg.MaxBatchTurns, math.MaxInt64, p.cfg.BatchInterval)
		if batch == nil {
			return
		}
		unsaved := batch
		if p.gate.enter(work) {
			if batch = p.present(batch); len(batch) > 0 {
				unsaved = p.storeBatch(ctx, work, batch)
			} else {
				unsaved = nil
			}
			p.gate.leave()
		}
		if len(unsaved) > 0 {
			p.mu.Lock()
			p.spooled = append(unsaved, p.spooled...) // for abandon to count, at the end; they stay in the spool
			p.mu.Unlock()
			if work.Err() != nil {
				return
			}
		}
	}
}

// storeBatch stores a batch in one go, or turn by turn when one of them is to blame. It returns what it could not store
// before the work ended, or an erasure came.
func (p *Pipeline) storeBatch(ctx, work context.Context, batch []*item) []*item {
	err := p.retry(ctx, work, "store", p.gate.yielding(func() error { return p.upsert(work, batch) }))
	switch {
	case err == nil:
		p.complete(ctx, work, batch)
		return nil
	case !permanent(err):
		return batch
	}
	for i, it := range batch {
		var err error
		for ; it.tries < maxTries; it.tries++ {
			err = p.retry(ctx, work, "store", p.gate.yielding(func() error { return p.upsert(work, []*item{it}) }))
			if err == nil || !permanent(err) {
				break
			}
		}
		switch {
		case err == nil && it.tries < maxTries:
			p.complete(ctx, work, []*item{it})
		case err != nil && !permanent(err):
			return batch[i:]
		default:
			if !p.setAside(ctx, work, it, err) {
				return batch[i:]
			}
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
	repeated  // so, and the same words
)

// upsert writes a batch and tells the index. Counters move only when all of it has succeeded.
func (p *Pipeline) upsert(ctx context.Context, batch []*item) (err error) {
	if err := p.turns.lock(ctx); err != nil {
		return err
	}
	defer p.turns.unlock()
	ctx, span := p.tracer.Start(ctx, spanName, trace.WithAttributes(
		attribute.String("gen_ai.operation.name", spanName), attribute.Int("remora.turns", len(batch))))
	defer func() {
		if err != nil {
			span.SetStatus(codes.Error, "store failed")
		}
		span.End()
	}()

	newest := make(map[turnKey]*item, len(batch))
	for _, it := range batch {
		newest[it.key()] = it
	}
	outcomes := make([]outcome, len(batch))
	episodes := make([][]storage.Memory, len(batch))
	var writes []storage.Write
	known, err := p.known(ctx, slices.Collect(maps.Values(newest)))
	if err != nil {
		return err
	}
	pace, pressed := background.Begin(), p.pressed()
	giveWay := func() {
		if pressed {
			pace.Yield()
		} else {
			pace.Pause(ctx)
		}
	}
	for i, it := range batch {
		giveWay()
		if last := newest[it.key()]; last != it {
			outcomes[i] = overtaken
			if slices.EqualFunc(it.turn.Messages, last.turn.Messages, sameMessage) {
				outcomes[i] = repeated
			}
			continue
		}
		var salt []byte
		if salt, err = p.salt(ctx, it.turn); err != nil {
			return err
		}
		episodes[i] = episodesOf(it.turn, p.cfg.Retention, salt, p.cfg.MaxWrite)
		if known[it] {
			if outcomes[i], err = p.compare(ctx, it, episodes[i]); err != nil {
				return err
			}
		}
		if outcomes[i] == replaced && !it.tried {
			if it.reworded, err = p.reworded(ctx, it, episodes[i]); err != nil {
				return err
			}
		}
		if outcomes[i] != unchanged {
			writes = append(writes, storage.Write{Scope: it.turn.Scope, Turn: it.turn.ID, Memories: episodes[i]})
		}
	}
	for i, it := range batch {
		if o := outcomes[i]; !it.tried && (o == added || o == replaced) {
			it.tried, it.effect = true, o
		}
	}
	if len(writes) > 0 {
		if err := p.store.Put(ctx, writes); err != nil {
			return err
		}
	}
	counts := [5]int{}
	memories, bytes := 0, 0
	for i, it := range batch {
		o := outcomes[i]
		if o == unchanged && it.tried {
			o = it.effect // of an attempt before
		}
		counts[o]++
		it.heard = o == added || o == replaced || o == unchanged && it.recovered
		it.replaced = o == replaced
		if o != overtaken && o != repeated && p.index != nil {
			// Unchanged ones too: the run that stored them may have died before it told the index.
			giveWay()
			p.telling.Lock()
			func() {
				defer p.telling.Unlock()
				p.index.Add(it.turn.Scope, it.turn.ID, withoutOriginals(episodes[i]))
			}()
		}
		if o == added || o == replaced {
			memories += len(episodes[i])
			for k := range episodes[i] {
				bytes += len(episodes[i][k].Text)
			}
		}
	}
	p.stats.indexed.Add(uint64(counts[added] + counts[replaced]))
	p.stats.replaced.Add(uint64(counts[replaced] + counts[overtaken]))
	p.stats.duplicates.Add(uint64(counts[unchanged] + counts[repeated]))
	p.stats.memories.Add(uint64(memories))
	p.stats.passageBytes.Add(uint64(bytes))
	span.SetAttributes(attribute.Int("remora.memories", memories), attribute.Int("remora.added", counts[added]),
		attribute.Int("remora.replaced", counts[replaced]+counts[overtaken]), attribute.Int("remora.unchanged", counts[unchanged]+counts[repeated]))
	return nil
}

// pressed says whether what is under way must not pause: someone waits for it, or turns queue up.
func (p *Pipeline) pressed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hurry > 0 || p.closing || p.inFlight.turns > backlog
}

type turnKey struct {
	scope storage.Scope
	id    string
}

func (it *item) key() turnKey { return turnKey{it.turn.Scope, it.turn.ID} }

// compare looks at what the store has of a turn. The same words said by the same are the same turn, whatever the time:
// a client's retry carries another one. What is known of a passage that stays the same is known of the new one.
func (p *Pipeline) compare(ctx context.Context, it *item, episodes []storage.Memory) (outcome, error) {
	for seq := 0; ; seq++ {
		m, err := p.store.Memory(ctx, it.turn.Scope, storage.TurnMemoryID(it.turn.ID, seq))
		switch {
		case errors.Is(err, storage.ErrNotFound):
			switch seq {
			case 0:
				return added, nil
			case len(episodes):
				return unchanged, nil
			}
			return replaced, nil
		case errors.Is(err, storage.ErrDamaged):
			return replaced, nil // writing it anew mends it
		case err != nil:
			return added, err
		}
		if seq >= len(episodes) || !sameWords(m, episodes[seq]) {
			return replaced, nil
		}
		if slices.Contains(m.Tags, storage.OutdatedTag) {
			episodes[seq].Tags = append(episodes[seq].Tags, storage.OutdatedTag)
		}
	}
}

// reworded says whether the user said something else in the stored version of a turn. A regenerated reply leaves the
// user's words as they are, and with them what was made of them.
func (p *Pipeline) reworded(ctx context.Context, it *item, episodes []storage.Memory) (bool, error) {
	for seq := range len(episodes) + 1 {
		m, err := p.store.Memory(ctx, it.turn.Scope, storage.TurnMemoryID(it.turn.ID, seq))
		known := err == nil
		if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
			return false, err
		}
		users := seq < len(episodes) && episodes[seq].Provenance.Role == storage.RoleUser
		if users && (!known || m.Text != episodes[seq].Text) || known && m.Provenance.Role == storage.RoleUser && !users {
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

// complete deletes the spool records of stored turns. If that fails for good the records stay and the next run finds
// the turns stored already.
func (p *Pipeline) complete(ctx, work context.Context, items []*item) {
	refs := make([]storage.RecordRef, len(items))
	var heard []heardTurn
	for i, it := range items {
		refs[i] = it.ref
		if !it.heard {
			continue
		}
		err := guard(func() error {
			h := hearing(&it.turn, p.cfg.Audit.WindowMessages)
			h.replaced, h.reworded, h.again = it.replaced, it.replaced && it.reworded, it.recovered
			heard = append(heard, h)
			return nil
		})
		if err != nil { // it is stored
			p.stats.auditsGivenUp.Add(1)
			p.log.Error("turn not audited", "turn", it.turn.ID, "error", err)
		}
	}
	for marks := p.auditor.note(heard); len(marks) > 0; marks = p.auditor.note(heard) {
		err := p.retry(ctx, work, "mark audits", p.gate.yielding(func() error { return p.local.PutRecords(work, marks) }))
		if errors.Is(err, errYield) { // the audit would be lost at a crash
			defer p.auditor.unmarked(marks)
			continue
		}
		if err != nil && !permanent(err) {
			break // the work ended: the turns are in the spool still
		}
	}
	if len(heard) > 0 {
		wake(p.auditor.wake)
	}
	p.finish(items...) // searchable: nobody needs to wait for the spool
	if err := p.retry(ctx, work, "clear spool", func() error { return p.local.DeleteRecords(work, refs) }); err != nil && permanent(err) {
		p.log.Error("spool can't be cleared", "error", err)
	}
}

// setAside marks a poison turn in the spool, so that no run tries it again. False means that the work ended first.
func (p *Pipeline) setAside(ctx, work context.Context, it *item, cause error) bool {
	problem := "refused by the store"
	if errors.Is(cause, errPanic) {
		problem = "panic"
	}
	value, err := encodeEntry(it, problem)
	if err == nil && p.aside < p.cfg.MaxQuarantined {
		record := storage.Record{
			Bucket: it.ref.Bucket, Scope: it.ref.Scope, Key: it.ref.Key, Value: value,
			ExpiresAt: storage.TimeOf(time.Now().Add(p.cfg.Retention)),
		}
		err = p.retry(ctx, work, "quarantine", func() error { return p.local.PutRecords(work, []storage.Record{record}) })
		if err != nil && !permanent(err) {
			return false
		}
		if err == nil {
			p.aside++
			p.stats.quarantined.Add(1)
			p.log.Error("turn set aside", "turn", it.turn.ID, "tries", it.tries, "problem", problem)
			p.finish(it)
			return true
		}
	}
	p.stats.drop(DropPoison)
	p.log.Error("turn dropped: no room in quarantine", "turn", it.turn.ID, "problem", problem)
	p.complete(ctx, work, []*item{it})
	return true
}
