package persist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/remora-proxy/remora/storage"
)

// shared is what all stages use. It does not change after New; its parts have
// locks of their own.
type shared struct {
	cfg      Config
	tuning   tuning
	store    storage.Store
	local    storage.Local
	redactor redactor
	index    notifier
	log      *slog.Logger
	tracer   trace.Tracer
	stats    counters
	gate     gate
	queue    queue
	passages passageLock
}

// passageLock is held while passages of turns are read, changed and written,
// and the index is notified. The storer and the auditor both do so, and a
// version of a turn that was written in between would be lost. It may be held
// while waiting for a store that is away.
type passageLock chan struct{}

func (l passageLock) lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l passageLock) unlock() { <-l }

// Backoff while a store is away.
const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
	quietOutage  = time.Second // a shorter outage, such as a store that is being opened, is not logged
)

// retry calls try until it returns nil, with backoff in between. It gives up
// with try's error if repeating won't help or an erasure waits, and with the
// context's error when work ends. Waits are short once ctx has ended and Run is
// draining.
func (s *shared) retry(ctx, work context.Context, what string, try func() error) error {
	wait := firstBackoff
	logged := false
	var served <-chan struct{} // the erasure that this has made an attempt for
	for {
		err := guard(try)
		switch {
		case err == nil:
			if logged {
				s.log.Info("persistence resumed", "step", what)
			}
			return nil
		case work.Err() != nil:
			return work.Err()
		case permanent(err), errors.Is(err, errYield):
			return err
		}
		s.stats.retries.Add(1)
		if !logged && wait >= quietOutage {
			logged = true
			s.log.Warn("persistence is waiting for the store", "step", what, "error", err)
		}
		draining := ctx.Done()
		if ctx.Err() != nil {
			wait, draining = firstBackoff, nil
		}
		requested := s.gate.closeRequested() // an erasure does not wait for the next attempt, which may yield to it
		if requested == served {
			requested = nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-draining:
		case <-requested:
			served = requested
		case <-work.Done():
			timer.Stop()
			return work.Err()
		}
		timer.Stop()
		wait = min(2*wait, maxBackoff)
	}
}

// errPanic wraps panics. Their values are not kept: they may quote content.
var errPanic = errors.New("panic")

// guard calls f and turns a panic into an error.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w of type %T", errPanic, r)
		}
	}()
	return f()
}

// permanent reports an error in the data rather than in the store's state.
func permanent(err error) bool {
	return errors.Is(err, storage.ErrInvalid) || errors.Is(err, storage.ErrDamaged) || errors.Is(err, errPanic) || errors.Is(err, errNothingAccepted)
}

// pause waits for d or a wake-up; false means that an end came first.
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

// scanPage is how many memories or records are read at a time.
const scanPage = 200

// eachMemory calls found for every memory of a scope that the query asks for.
func (s *shared) eachMemory(ctx context.Context, scope storage.Scope, q storage.Query, found func(*storage.Memory)) error {
	return s.eachMemoryResting(ctx, scope, q, found, func(time.Duration) {})
}

// eachMemoryResting calls rest after every page but the last, with how long the
// page took: requests share the processor.
func (s *shared) eachMemoryResting(ctx context.Context, scope storage.Scope, q storage.Query, found func(*storage.Memory), rest func(time.Duration)) error {
	q.Limit = scanPage
	begun := time.Now()
	for page, err := range storage.ScanPages(ctx, s.store, scope, q) {
		if err != nil {
			return err
		}
		for i := range page.Memories {
			found(&page.Memories[i])
		}
		if page.Next != "" {
			rest(time.Since(begun))
		}
		begun = time.Now()
	}
	return nil
}

// eachRecord calls found for every record in a bucket of a scope.
func (s *shared) eachRecord(ctx context.Context, bucket storage.Bucket, scope storage.Scope, found func(storage.Record)) error {
	for page, err := range storage.RecordPages(ctx, s.local, bucket, scope, scanPage) {
		if err != nil {
			return err
		}
		for _, r := range page.Records {
			found(r)
		}
	}
	return nil
}

// record reads one record, storage.ErrNotFound where there is none.
func (s *shared) record(ctx context.Context, ref storage.RecordRef) (storage.Record, error) {
	if reader, ok := s.local.(storage.RecordReader); ok {
		r, err := reader.Record(ctx, ref)
		if !errors.Is(err, errors.ErrUnsupported) {
			return r, err
		}
	}
	found, missing := storage.Record{}, storage.ErrNotFound
	err := s.eachRecord(ctx, ref.Bucket, ref.Scope, func(r storage.Record) {
		if r.Key == ref.Key {
			found, missing = r, nil
		}
	})
	return found, errors.Join(err, missing)
}

func (s *shared) putRecords(ctx context.Context, records []storage.Record) error {
	for batch := range slices.Chunk(records, storage.MaxRecords) {
		if err := s.local.PutRecords(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

func (s *shared) deleteRecords(ctx context.Context, refs []storage.RecordRef) error {
	for batch := range slices.Chunk(refs, storage.MaxRecords) {
		if err := s.local.DeleteRecords(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}
