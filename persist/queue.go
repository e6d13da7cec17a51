package persist

import (
	"slices"
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
	// tried says that a Put of it was begun before, so that what the store has may be its own; effect is what it was to do.
	tried  bool
	effect outcome
	ticket uint64 // its number in the ledger
	done   bool
	// What the auditor hears of it.
	recovered, heard, replaced bool
}

// itemBytes is what an item costs beside its texts.
const itemBytes = 512

// size is what a turn counts against Config.QueueBytes.
func (t *Turn) size() int64 {
	n := itemBytes + len(t.ID) + len(t.Conversation) + len(t.Chain) + len(t.Model) + len(t.Project)
	for i := range t.Messages {
		n += 64 + len(t.Messages[i].Text) + len(t.Messages[i].Speaker)
	}
	return int64(n)
}

// ledger knows all turns that are not finished, in the order in which they were taken. Its owner locks it.
type ledger struct {
	items   []*item // by ticket; items[0] is unfinished, later ones may be finished
	turns   int
	bytes   int64
	waiters []waiter
	taken   uint64 // items ever pushed, the last ticket
}

// compactAt is how many finished items a ledger may keep beside as many as are unfinished.
const compactAt = 1024

// waiter is told when all items pushed before it are finished.
type waiter struct {
	upTo uint64
	done chan struct{}
}

func (l *ledger) admits(size int64, turns int, bytes int64) bool {
	return l.turns < turns && l.bytes+size <= bytes
}

func (l *ledger) push(it *item) {
	l.items = append(l.items, it)
	l.turns++
	l.bytes += it.size
	l.taken++
	it.ticket = l.taken
}

// finish takes an item out. The front moves past all that are finished and wakes who waited for them.
func (l *ledger) finish(it *item) {
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
	finished := l.taken
	if len(l.items) > 0 {
		finished = l.items[0].ticket - 1
	} else {
		l.items = nil // lets go of the array
	}
	kept := l.waiters[:0]
	for _, w := range l.waiters {
		if w.upTo <= finished {
			close(w.done)
		} else {
			kept = append(kept, w)
		}
	}
	l.waiters = kept
}

// drained returns a channel that is closed when all items pushed so far are finished.
func (l *ledger) drained() <-chan struct{} {
	done := make(chan struct{})
	if len(l.items) == 0 {
		close(done)
		return done
	}
	l.waiters = append(l.waiters, waiter{upTo: l.taken, done: done})
	return done
}

// oldest returns when the first unfinished item was taken, zero if there is none.
func (l *ledger) oldest() time.Time {
	if len(l.items) == 0 {
		return time.Time{}
	}
	return l.items[0].since
}

// finish ends the way of items.
func (p *Pipeline) finish(items ...*item) {
	p.mu.Lock()
	for _, it := range items {
		p.inFlight.finish(it)
	}
	p.mu.Unlock()
}

// present drops from a batch what an erasure has finished between its gathering and the gate.
func (p *Pipeline) present(batch []*item) []*item {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(batch, func(it *item) bool { return it.done })
}
