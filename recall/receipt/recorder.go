package receipt

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Bounds of what is kept and held.
const (
	// MaxPerUser is how many receipts of one user are kept.
	MaxPerUser = 1000
	// MaxWaiting is how many receipts may wait to be written, and MaxWatchers
	// how many may watch them come. Beyond, receipts are dropped and counted,
	// and watchers refused.
	MaxWaiting  = 2048
	MaxWatchers = 64

	// MaxQuery is how much of a question is kept, in bytes. The caller of Record
	// gives up to QueryOverhang more, so that what the cut goes through is
	// redacted whole.
	MaxQuery      = 2 << 10
	QueryOverhang = 1 << 10

	maxErased      = 2048 // users of whom is known when something of theirs was erased last
	flushPause     = 500 * time.Millisecond
	watcherBacklog = 256 // receipts that a watcher may be behind; beyond, it misses some
)

// Recorder writes receipts. Record never blocks; Run writes. All methods are
// safe for concurrent use.
type Recorder struct {
	local storage.Local
	keep  time.Duration
	// Redact is applied to questions before anybody sees them. It is set before
	// anything runs; nil = they are redacted already.
	Redact func(text string) string

	log     *slog.Logger
	queue   chan *Receipt
	dropped atomic.Int64
	serial  atomic.Uint32
	writing chan struct{} // held while receipts are written
	uses    useCounter

	mu         sync.Mutex
	watchers   map[chan Receipt]struct{}
	counts     map[storage.Scope]int          // receipts of users that were written for since the start
	erased     map[storage.Scope]storage.Time // when something of them was erased last
	erasedLast storage.Time                   // the same of all others
}

// NewRecorder returns a Recorder that keeps receipts for keep.
func NewRecorder(local storage.Local, keep time.Duration, log *slog.Logger) *Recorder {
	return &Recorder{
		local: local, keep: keep, log: log, queue: make(chan *Receipt, MaxWaiting), writing: make(chan struct{}, 1),
		watchers: map[chan Receipt]struct{}{}, counts: map[storage.Scope]int{}, erased: map[storage.Scope]storage.Time{},
	}
}

// Record hands in a receipt, which belongs to the Recorder from then on. It
// sets ID and never blocks.
func (r *Recorder) Record(receipt *Receipt) {
	receipt.ID, receipt.Version = r.newID(receipt.At), version
	select {
	case r.queue <- receipt:
	default:
		r.dropped.Add(1)
	}
}

// Dropped returns how many receipts were not kept.
func (r *Recorder) Dropped() int64 { return r.dropped.Load() }

// Erased drops the receipts of a user's exchanges that have begun by now and
// are not written yet: they may show what is gone. Those that are written are
// for [Forget].
func (r *Recorder) Erased(scope storage.Scope, ids ...string) {
	r.uses.forget(scope, ids)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.erased) >= maxErased {
		for _, at := range r.erased {
			r.erasedLast = max(r.erasedLast, at)
		}
		clear(r.erased)
	}
	r.erased[scope] = storage.Now()
}

// Drop is Erased for all of a user.
func (r *Recorder) Drop(scope storage.Scope) {
	r.Erased(scope)
	r.uses.drop(scope)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.counts, scope)
}

// PauseWrites waits until no receipt is being written, and keeps it so until
// resume is called. Call it before something is erased, and resume after Erased
// or Drop.
func (r *Recorder) PauseWrites(ctx context.Context, _ storage.Scope) (resume func(), err error) {
	select {
	case r.writing <- struct{}{}:
		return func() { <-r.writing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// kept returns the receipts that may be written, in the memory of batch, and
// counts the others.
func (r *Recorder) kept(batch []*Receipt) []*Receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := len(batch)
	batch = slices.DeleteFunc(batch, func(receipt *Receipt) bool {
		return receipt.At <= max(r.erased[receipt.Scope], r.erasedLast)
	})
	r.dropped.Add(int64(all - len(batch)))
	return batch
}

// newID returns an id that sorts by time and that nobody can guess.
func (r *Recorder) newID(at storage.Time) string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("x%012x%04x%s", uint64(at), r.serial.Add(1)&0xffff, hex.EncodeToString(b[:]))
}

// Watch returns a channel of receipts as they come, until stop is called. A
// slow watcher misses some. It fails beyond MaxWatchers.
func (r *Recorder) Watch() (receipts <-chan Receipt, stop func(), err error) {
	c := make(chan Receipt, watcherBacklog)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.watchers) >= MaxWatchers {
		return nil, nil, fmt.Errorf("%d watch already", MaxWatchers)
	}
	r.watchers[c] = struct{}{}
	return c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, c)
	}, nil
}

// Run writes receipts until ctx has ended and none waits.
func (r *Recorder) Run(ctx context.Context) {
	for {
		var late <-chan time.Time
		if r.uses.waits() {
			late = time.After(flushPause)
		}
		select {
		case first := <-r.queue:
			batch := []*Receipt{first}
			timer := time.NewTimer(flushPause)
		collect:
			for len(batch) < storage.MaxRecords/4 {
				select {
				case next := <-r.queue:
					batch = append(batch, next)
				case <-timer.C:
					break collect
				case <-ctx.Done():
					select {
					case next := <-r.queue:
						batch = append(batch, next)
					default:
						break collect
					}
				}
			}
			timer.Stop()
			r.writing <- struct{}{}
			for _, receipt := range batch {
				if r.Redact != nil {
					receipt.Query = r.Redact(receipt.Query)
				}
				receipt.Query = strings.ToValidUTF8(receipt.Query[:min(len(receipt.Query), MaxQuery)], "")
			}
			if batch = r.kept(batch); len(batch) > 0 {
				r.publish(batch)
				r.write(context.WithoutCancel(ctx), batch)
			}
			<-r.writing
		case <-late:
			r.writeUses(ctx, false)
		case <-ctx.Done():
			if len(r.queue) == 0 {
				r.writeUses(context.WithoutCancel(ctx), true)
				return
			}
		}
	}
}

func (r *Recorder) publish(batch []*Receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.watchers {
		for _, receipt := range batch {
			select {
			case c <- *receipt:
			default:
			}
		}
	}
}

const writeTimeout = 5 * time.Second

// write stores receipts and the uses of their memories. What the store does not
// take is dropped.
func (r *Recorder) write(ctx context.Context, batch []*Receipt) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	byScope := map[storage.Scope][]*Receipt{}
	for _, receipt := range batch {
		byScope[receipt.Scope] = append(byScope[receipt.Scope], receipt)
	}
	var records []storage.Record
	for _, receipt := range batch {
		if rec, err := receipt.record(receipt.At + storage.Time(r.keep.Milliseconds())); err == nil {
			records = append(records, rec)
		}
	}
	for scope, own := range byScope {
		r.uses.add(scope, own)
	}
	records = append(records, r.newUses(ctx, false)...)
	if err := r.local.PutRecords(ctx, records); err != nil {
		r.dropped.Add(int64(len(batch)))
		if !errors.Is(err, storage.ErrUnavailable) {
			r.log.Warn("receipts not kept", "error", err)
		}
		return
	}
	for scope, own := range byScope {
		r.trim(ctx, scope, len(own))
	}
}

// trimEvery is how many receipts may be too many before the oldest are deleted.
const trimEvery = 50

// trim deletes a user's oldest receipts beyond MaxPerUser.
func (r *Recorder) trim(ctx context.Context, scope storage.Scope, added int) {
	reader, ok := r.local.(storage.PrefixReader)
	if !ok {
		return
	}
	r.mu.Lock()
	n, known := r.counts[scope]
	if len(r.counts) > MaxWaiting {
		clear(r.counts)
	}
	n += added
	r.counts[scope] = n
	r.mu.Unlock()
	if known && n <= MaxPerUser+trimEvery {
		return
	}
	keys, err := reader.RecordKeys(ctx, storage.BucketExchange, scope, 0)
	if err != nil {
		return
	}
	keys = slices.DeleteFunc(keys, ofUses)
	surplus := len(keys) - MaxPerUser
	if surplus > 0 {
		refs := make([]storage.RecordRef, 0, surplus)
		for _, key := range keys[:surplus] {
			refs = append(refs, storage.RecordRef{Bucket: storage.BucketExchange, Scope: scope, Key: key})
		}
		for batch := range slices.Chunk(refs, storage.MaxRecords) {
			if r.local.DeleteRecords(ctx, batch) != nil {
				return
			}
		}
	}
	r.mu.Lock()
	r.counts[scope] = min(len(keys), MaxPerUser)
	r.mu.Unlock()
}

// List returns a user's receipts, newest first, at most limit of those with an
// id less than before ("" = all).
func List(ctx context.Context, local storage.Local, scope storage.Scope, before string, limit int, match func(*Receipt) bool) (out []Receipt, next string, err error) {
	if limit <= 0 {
		return nil, "", nil
	}
	keys, err := keysOf(ctx, local, scope)
	if err != nil {
		return nil, "", err
	}
	for _, key := range slices.Backward(keys) {
		if ofUses(key) || before != "" && key >= before {
			continue
		}
		if len(out) == limit {
			return out, out[limit-1].ID, nil
		}
		r, err := Get(ctx, local, scope, key)
		if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if match == nil || match(&r) {
			out = append(out, r)
		}
	}
	return out, "", nil
}

func keysOf(ctx context.Context, local storage.Local, scope storage.Scope) (keys []string, err error) {
	if reader, ok := local.(storage.PrefixReader); ok {
		return reader.RecordKeys(ctx, storage.BucketExchange, scope, 0)
	}
	for page, err := range storage.RecordPages(ctx, local, storage.BucketExchange, scope, 0) {
		if err != nil {
			return nil, err
		}
		for i := range page.Records {
			keys = append(keys, page.Records[i].Key)
		}
	}
	return keys, nil
}

// Get returns one receipt.
func Get(ctx context.Context, local storage.Local, scope storage.Scope, id string) (Receipt, error) {
	reader, ok := local.(storage.RecordReader)
	if !ok || ofUses(id) {
		return Receipt{}, storage.ErrNotFound
	}
	rec, err := reader.Record(ctx, storage.RecordRef{Bucket: storage.BucketExchange, Scope: scope, Key: id})
	if err != nil {
		return Receipt{}, err
	}
	return Decode(&rec)
}
