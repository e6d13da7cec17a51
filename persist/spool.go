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

// maxTries is how often a turn may fail before it is set aside.
const maxTries = 3

// spoolVersion is the version of the encoding of spoolEntry.
const spoolVersion = 1

// spoolEntry is the value of a spool record. Its turn is redacted.
type spoolEntry struct {
	Version int
	Seq     uint64 // order among all entries
	Tries   int
	Problem string // why it was set aside; "" = it is pending
	Since   storage.Time
	Turn    Turn
	Due     *dueNote `json:",omitempty"` // an audit that is due; such an entry has nothing else
}

// dueNote names a conversation with unread messages, and the time of the first.
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

// conversation returns the conversation that the turn or audit mark belongs to.
func (e *spoolEntry) conversation() string {
	if e.Due != nil {
		return e.Due.Conversation
	}
	return e.Turn.Conversation
}

// commitBytes is what the store has room for in one transaction.
const commitBytes = 384 << 10

// turnsPerWorker is how many turns of a batch occupy one more worker.
const turnsPerWorker = 16

// spooler takes turns from the queue, prepares them and makes them durable,
// many to a commit. The commit point is the return of PutRecords: from then on
// a turn counts as persisted.
type spooler struct {
	*shared
	lastSeq uint64 // of spool records
}

// run spools until ended is closed and the queue is empty, or work ends.
func (s *spooler) run(ctx, work context.Context, ended <-chan struct{}) {
	t := &s.tuning
	size := batchSize{enough: t.commitTurns, max: max(t.commitTurns, t.maxBatchTurns), bytes: commitBytes, interval: t.commitInterval}
	for {
		batch := s.queue.gather(work, &s.queue.waiting, s.queue.wakeSpooler, ended, size)
		if batch == nil {
			return
		}
		if !s.gate.enter(work) {
			s.queue.putSpooled(nil, batch)
			return
		}
		durable, unsaved := s.spool(ctx, work, s.prepareAll(s.queue.unfinished(batch)))
		s.queue.putSpooled(durable, unsaved)
		s.gate.leave()
	}
}

// prepareAll prepares a batch, a large one by several workers, and returns the
// turns that have something to store, in order.
func (s *spooler) prepareAll(batch []*item) []*item {
	errs := make([]error, len(batch))
	var next atomic.Int64
	work := func() {
		pace := background.Begin()
		for i := int(next.Add(1)) - 1; i < len(batch); i = int(next.Add(1)) - 1 {
			errs[i] = s.prepareItem(batch[i])
			pace.Yield()
		}
	}
	var wg sync.WaitGroup
	for range min(s.tuning.workers, len(batch)/turnsPerWorker) { // a small batch leaves the other processors to requests
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
			s.stats.drop(DropEmpty)
		case errors.Is(err, errRedactedAll):
			s.stats.drop(DropRedactedAll)
		case errors.Is(err, errDeclined):
			s.stats.drop(DropDeclined)
		default: // its raw text must not be kept, so it can't be set aside
			s.stats.drop(DropPoison)
			s.log.Error("turn can't be prepared", "turn", it.turn.ID, "error", err)
		}
		s.queue.finish(it)
	}
	return ready
}

func (s *spooler) prepareItem(it *item) error {
	if it.seq != 0 { // prepared before an erasure interrupted the commit
		return nil
	}
	var err error
	for range maxTries {
		err = guard(func() error {
			prepared, err := s.redactor.prepare(it.turn)
			if err == nil {
				s.queue.setTurn(it, prepared)
			}
			return err
		})
		if !errors.Is(err, errPanic) {
			break
		}
	}
	return err
}

// spool makes items durable in one commit and drops those that the store
// refuses. If work ends or an erasure waits, all are returned as unsaved.
func (s *spooler) spool(ctx, work context.Context, items []*item) (durable, unsaved []*item) {
	records := make([]storage.Record, 0, len(items))
	pace := background.Begin()
	for _, it := range items {
		pace.Yield()
		if it.seq == 0 { // a second attempt must not leave a second record
			s.lastSeq = max(s.lastSeq+1, uint64(time.Now().UnixNano()))
			it.seq = s.lastSeq
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
			s.refuse(it, errors.New("spool entry is too large"))
			continue
		}
		durable = append(durable, it)
		records = append(records, storage.Record{Bucket: it.ref.Bucket, Scope: it.ref.Scope, Key: it.ref.Key, Value: value})
	}
	if len(records) == 0 {
		return nil, nil
	}
	err := s.retry(ctx, work, "spool", s.gate.yielding(func() error { return s.local.PutRecords(work, records) }))
	switch {
	case err == nil:
		s.stats.persisted.Add(uint64(len(durable)))
		return durable, nil
	case !permanent(err):
		return nil, durable
	case len(durable) == 1:
		if it := durable[0]; it.tries+1 < maxTries && !errors.Is(err, storage.ErrTooManyUsers) {
			it.tries++
			return s.spool(ctx, work, durable)
		}
		s.refuse(durable[0], err)
		return nil, nil
	}
	batch := durable
	durable = nil
	for _, it := range batch { // find the one that the store refuses
		saved, left := s.spool(ctx, work, []*item{it})
		durable, unsaved = append(durable, saved...), append(unsaved, left...)
	}
	return durable, unsaved
}

// refuse drops a turn that can't be spooled.
func (s *spooler) refuse(it *item, err error) {
	if errors.Is(err, storage.ErrTooManyUsers) { // there may be thousands
		s.stats.drop(DropUsers)
	} else {
		s.stats.drop(DropPoison)
		s.log.Error("turn can't be spooled", "turn", it.turn.ID, "error", err)
	}
	s.queue.finish(it)
}
