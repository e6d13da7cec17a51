package persist

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// item is one turn on its way.
type item struct {
	turn  Turn // raw until prepared, redacted from then on
	size  int64
	since time.Time
	ref   storage.RecordRef // of its spool record, once spooled
	seq   uint64
	tries int // attempts that panicked or were refused
	// attempted: a Put of it was begun; effect is what that was to do.
	attempted bool
	effect    outcome
	ticket    uint64 // its number in the queue
	done      bool
	// What the auditor learns of it.
	recovered, changed, replaced bool
	reworded                     bool // the version before had other words of the user's
}

// itemBytes estimates what an item takes in addition to its texts.
const itemBytes = 512

// size is what a turn counts against Config.QueueBytes.
func (t *Turn) size() int64 {
	n := itemBytes + len(t.ID) + len(t.Conversation) + len(t.Chain) + len(t.Model) + len(t.Project)
	for i := range t.Messages {
		n += 64 + len(t.Messages[i].Text) + len(t.Messages[i].Speaker)
	}
	return int64(n)
}

// queue holds all turns that are not memories yet. Enqueue adds to waiting, the
// spooler moves them to spooled, the storer finishes them. What a stage works
// on is in neither list. A turn counts against the limits until it is finished.
type queue struct {
	maxTurns    int
	maxBytes    int64
	wakeSpooler chan struct{}
	wakeStorer  chan struct{}

	mu       sync.Mutex // guards what follows
	closing  bool       // nothing more is accepted
	waiting  []*item    // accepted, not yet spooled
	spooled  []*item    // durable, not yet stored
	inFlight inFlight   // all of them, in order
	flushing int        // Flush calls that wait: batches don't
}

func newQueue(maxTurns int, maxBytes int64) queue {
	return queue{maxTurns: maxTurns, maxBytes: maxBytes, wakeSpooler: make(chan struct{}, 1), wakeStorer: make(chan struct{}, 1)}
}

// add accepts an item, or fails with ErrFull or ErrClosed.
func (q *queue) add(it *item) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closing:
		return ErrClosed
	case q.inFlight.turns >= q.maxTurns || q.inFlight.bytes+it.size > q.maxBytes:
		return ErrFull
	}
	q.inFlight.push(it)
	q.waiting = append(q.waiting, it)
	wake(q.wakeSpooler)
	return nil
}

// addRecovered takes in durable turns of an earlier run, whatever the limits.
func (q *queue) addRecovered(items []*item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range items {
		q.inFlight.push(it)
	}
	q.spooled = append(q.spooled, items...)
}

// flush makes batches not wait until release is called. done is closed when the
// turns accepted so far are finished.
func (q *queue) flush() (done <-chan struct{}, release func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flushing++
	wake(q.wakeSpooler)
	wake(q.wakeStorer)
	return q.inFlight.drained(), func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.flushing--
	}
}

// putSpooled hands durable items to the storer and puts unsaved ones back.
func (q *queue) putSpooled(durable, unsaved []*item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spooled = append(q.spooled, durable...)
	q.waiting = append(unsaved, q.waiting...)
	wake(q.wakeStorer)
}

// putBack returns items to the front of those that the storer takes from.
func (q *queue) putBack(items []*item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spooled = append(items, q.spooled...)
}

// setTurn sets the prepared form of a turn. find may be reading it.
func (q *queue) setTurn(it *item, t Turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it.turn = t
}

// finish removes items and wakes those who waited for them.
func (q *queue) finish(items ...*item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range items {
		q.inFlight.finish(it)
	}
}

// unfinished drops from a batch what an erasure has finished meanwhile.
func (q *queue) unfinished(batch []*item) []*item {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.DeleteFunc(batch, func(it *item) bool { return it.done })
}

// find returns the matching turns that are not memories yet.
func (q *queue) find(matches func(*Turn) bool) (found []*item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range q.inFlight.items {
		if !it.done && matches(&it.turn) {
			found = append(found, it)
		}
	}
	return found
}

// drop removes items that find returned, and returns how many were not durable.
// The gate has been closed since.
func (q *queue) drop(gone []*item) (waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range gone {
		q.inFlight.finish(it)
	}
	before := len(q.waiting)
	done := func(it *item) bool { return it.done }
	q.waiting = slices.DeleteFunc(q.waiting, done)
	q.spooled = slices.DeleteFunc(q.spooled, done)
	return before - len(q.waiting)
}

// close stops the acceptance of turns.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closing = true
}

// empty reports whether the queue is closed and nothing waits to be spooled.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closing && len(q.waiting) == 0
}

// abandon empties the queue and returns how many turns are lost, and how many
// are left in the spool for the next run.
func (q *queue) abandon() (lost, left int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lost, left = len(q.waiting), len(q.spooled)
	q.closing, q.waiting, q.spooled, q.inFlight = true, nil, nil, inFlight{turns: left}
	return lost, left
}

// pressed reports whether somebody waits for work, or turns queue up.
func (q *queue) pressed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.flushing > 0 || q.closing || q.inFlight.turns > busyTurns
}

// state returns the turns and bytes in flight, and when the oldest was
// accepted.
func (q *queue) state() (turns int, bytes int64, oldest time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.inFlight.items) > 0 {
		oldest = q.inFlight.items[0].since
	}
	return q.inFlight.turns, q.inFlight.bytes, oldest
}

// batchSize: a batch waits for enough items, at most for interval, and takes at
// most max items and, beyond the first, bytes of texts.
type batchSize struct {
	enough, max int
	bytes       int64
	interval    time.Duration
}

// gather takes a batch from list, which is one of q's. It does not wait for
// more if somebody flushes or ended is closed. nil means that the stage is
// done.
func (q *queue) gather(work context.Context, list *[]*item, wakeup, ended <-chan struct{}, size batchSize) []*item {
	var timer *time.Timer
	var expired <-chan time.Time
	late, over := false, false
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	for {
		batch, n := q.take(list, size, late || over)
		if batch != nil || n == 0 && over {
			return batch
		}
		if n > 0 && timer == nil {
			timer = time.NewTimer(size.interval)
			expired = timer.C
		}
		select {
		case <-wakeup:
		case <-expired:
			late = true
		case <-ended:
			over, ended = true, nil
		case <-work.Done():
			return nil
		}
	}
}

// take removes a batch from the front of list, and returns how many there were.
func (q *queue) take(list *[]*item, size batchSize, now bool) (batch []*item, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = len(*list)
	if n == 0 || n < size.enough && !now && q.flushing == 0 {
		return nil, n
	}
	taken, bytes := 0, size.bytes
	for ; taken < min(n, size.max); taken++ {
		if bytes -= (*list)[taken].size; bytes < 0 && taken > 0 {
			break
		}
	}
	batch = slices.Clone((*list)[:taken])
	if *list = (*list)[taken:]; len(*list) == 0 {
		*list = nil
	}
	return batch, n
}

// inFlight holds all unfinished turns in order. The queue's lock guards it.
type inFlight struct {
	items   []*item // by ticket; items[0] is unfinished, later ones may be finished
	turns   int
	bytes   int64
	waiters []waiter
	pushed  uint64 // items ever pushed, the last ticket
}

// compactAt is how many finished items the list may hold, plus as many as are
// unfinished.
const compactAt = 1024

// waiter is notified when all items up to a ticket are finished.
type waiter struct {
	upTo uint64
	done chan struct{}
}

func (l *inFlight) push(it *item) {
	l.items = append(l.items, it)
	l.turns++
	l.bytes += it.size
	l.pushed++
	it.ticket = l.pushed
}

// finish removes an item and wakes those who waited for it and all before it.
func (l *inFlight) finish(it *item) {
	if it.done {
		return
	}
	it.done, it.turn = true, Turn{}
	l.turns--
	l.bytes -= it.size
	front := 0
	for front < len(l.items) && l.items[front].done {
		l.items[front] = nil
		front++
	}
	l.items = l.items[front:]
	if len(l.items) > 2*l.turns+compactAt { // many finished behind one that is not
		l.items = slices.DeleteFunc(l.items, func(it *item) bool { return it.done })
	}
	finished := l.pushed
	if len(l.items) > 0 {
		finished = l.items[0].ticket - 1
	} else {
		l.items = nil // frees the array
	}
	l.waiters = slices.DeleteFunc(l.waiters, func(w waiter) bool {
		if w.upTo > finished {
			return false
		}
		close(w.done)
		return true
	})
}

// drained returns a channel that is closed when the items so far are finished.
func (l *inFlight) drained() <-chan struct{} {
	done := make(chan struct{})
	if len(l.items) == 0 {
		close(done)
		return done
	}
	l.waiters = append(l.waiters, waiter{upTo: l.pushed, done: done})
	return done
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
