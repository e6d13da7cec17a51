package persist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/background"
	"github.com/remora-proxy/remora/storage"
)

// The spooler takes turns from the queue, prepares them and makes them durable, many to a commit. The commit point is
// PutRecords' return: from there on a turn counts as persisted.

// spoolVersion is that of spoolEntry's encoding.
const spoolVersion = 1

// spoolEntry is the value of a spool record. Its turn is redacted.
type spoolEntry struct {
	Version int
	Seq     uint64 // order among all entries
	Tries   int
	Problem string // why it was set aside; "" = it is pending
	Since   storage.Time
	Turn    Turn
	Due     *dueNote `json:",omitempty"` // set in the mark of an audit, which has nothing else
}

// dueNote says which conversation has messages that no audit has seen, and since when.
type dueNote struct {
	Conversation string
	Since        storage.Time
}

func encodeMark(conversation string, since storage.Time) ([]byte, error) {
	e := spoolEntry{Version: spoolVersion, Due: &dueNote{conversation, since}}
	return json.Marshal(&e)
}

func encodeEntry(it *item, problem string) ([]byte, error) {
	e := spoolEntry{Version: spoolVersion, Seq: it.seq, Tries: it.tries, Problem: problem, Since: storage.TimeOf(it.since), Turn: it.turn}
	return json.Marshal(&e)
}

func decodeEntry(value []byte) (spoolEntry, error) {
	var e spoolEntry
	if err := json.Unmarshal(value, &e); err != nil {
		return e, errors.New("spool entry is not readable")
	}
	if e.Version != spoolVersion {
		return e, fmt.Errorf("spool entry has version %d", e.Version)
	}
	return e, nil
}

// conversation is whose turn or audit mark it is.
func (e *spoolEntry) conversation() string {
	if e.Due != nil {
		return e.Due.Conversation
	}
	return e.Turn.Conversation
}

// commitBytes bounds a spool commit of several turns, so that the store has room for it in one transaction.
const commitBytes = 384 << 10

// fairShare is how many turns of a batch are worth another worker.
const fairShare = 16

func (p *Pipeline) runSpooler(ctx, work context.Context, ending <-chan struct{}) {
	for {
		batch := p.gather(work, &p.queued, p.wakeA, ending, p.cfg.CommitTurns, max(p.cfg.CommitTurns, p.cfg.MaxBatchTurns), commitBytes, p.cfg.CommitInterval)
		if batch == nil {
			return
		}
		if !p.gate.enter(work) {
			p.mu.Lock()
			p.queued = append(batch, p.queued...)
			p.mu.Unlock()
			return
		}
		ready := p.prepareAll(p.present(batch))
		if len(ready) == 0 {
			p.gate.leave()
			continue
		}
		durable, unsaved := p.spool(ctx, work, ready)
		p.mu.Lock()
		p.spooled = append(p.spooled, durable...)
		p.queued = append(unsaved, p.queued...)
		p.mu.Unlock()
		p.gate.leave()
		wake(p.wakeB)
	}
}

// prepareAll prepares a batch by some workers and returns those that have something to store, in order.
func (p *Pipeline) prepareAll(batch []*item) []*item {
	errs := make([]error, len(batch))
	var next atomic.Int64
	work := func() {
		pace := background.Begin()
		for i := int(next.Add(1)) - 1; i < len(batch); i = int(next.Add(1)) - 1 {
			errs[i] = p.prepareItem(batch[i])
			pace.Yield()
		}
	}
	var wg sync.WaitGroup
	for range min(p.cfg.Workers, len(batch)/fairShare) { // a small batch leaves the other processors to requests
		wg.Go(work)
	}
	work()
	wg.Wait()

	ready := make([]*item, 0, len(batch))
	for i, it := range batch {
		switch err := errs[i]; {
		case err == nil:
			ready = append(ready, it)
			continue
		case errors.Is(err, errEmpty):
			p.stats.drop(DropEmpty)
		case errors.Is(err, errRedactedAll):
			p.stats.drop(DropRedactedAll)
		case errors.Is(err, errDeclined):
			p.stats.drop(DropDeclined)
		default: // its raw text must not be kept, so there is nothing to set aside
			p.stats.drop(DropPoison)
			p.log.Error("turn can't be prepared", "turn", it.turn.ID, "error", err)
		}
		p.finish(it)
	}
	return ready
}

func (p *Pipeline) prepareItem(it *item) error {
	if it.seq != 0 { // it was, before an erasure came in between
		return nil
	}
	var err error
	for range maxTries {
		err = guard(func() error {
			kept, err := p.prepare(it.turn)
			if err == nil {
				p.mu.Lock() // Waiting may look at it
				it.turn = kept
				p.mu.Unlock()
			}
			return err
		})
		if !errors.Is(err, errPanic) {
			break
		}
	}
	return err
}

// spool makes items durable in one commit. Those that the store refuses are dropped; when the work is cut short, or
// gives way to an erasure, all are returned as unsaved.
func (p *Pipeline) spool(ctx, work context.Context, items []*item) (durable, unsaved []*item) {
	records := make([]storage.Record, 0, len(items))
	pace := background.Begin()
	for _, it := range items {
		pace.Yield()
		if it.seq == 0 { // a repetition must not leave a second record behind
			p.lastSeq = max(p.lastSeq+1, uint64(time.Now().UnixNano()))
			it.seq = p.lastSeq
			it.ref = storage.RecordRef{Bucket: storage.BucketSpool, Scope: it.turn.Scope, Key: fmt.Sprintf("%016x-%s", it.seq, it.turn.ID)}
		}
		value, err := encodeEntry(it, "")
		if err == nil && len(value) > storage.MaxRecord { // the texts come first
			for i := range it.turn.Messages {
				it.turn.Messages[i].Originals = nil
			}
			value, err = encodeEntry(it, "")
		}
		if err != nil || len(value) > storage.MaxRecord {
			p.refuse(it, errors.New("spool entry is too large"))
			continue
		}
		durable = append(durable, it)
		records = append(records, storage.Record{Bucket: it.ref.Bucket, Scope: it.ref.Scope, Key: it.ref.Key, Value: value})
	}
	if len(records) == 0 {
		return nil, nil
	}
	err := p.retry(ctx, work, "spool", p.gate.yielding(func() error { return p.local.PutRecords(work, records) }))
	switch {
	case err == nil:
		p.stats.persisted.Add(uint64(len(durable)))
		return durable, nil
	case !permanent(err):
		return nil, durable
	case len(durable) == 1:
		if it := durable[0]; it.tries+1 < maxTries {
			it.tries++
			return p.spool(ctx, work, durable)
		}
		p.refuse(durable[0], err)
		return nil, nil
	}
	batch := durable
	durable = nil
	for _, it := range batch { // find the one that is to blame
		saved, left := p.spool(ctx, work, []*item{it})
		durable, unsaved = append(durable, saved...), append(unsaved, left...)
	}
	return durable, unsaved
}

// refuse drops a turn that can't be spooled.
func (p *Pipeline) refuse(it *item, err error) {
	p.stats.drop(DropPoison)
	p.log.Error("turn can't be spooled", "turn", it.turn.ID, "error", err)
	p.finish(it)
}
