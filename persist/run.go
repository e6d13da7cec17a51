package persist

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Backoff while a store is away.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// maxTries is how often a turn may panic or be refused before it is set aside.
const maxTries = 3

// Run works until ctx ends and then drains what was taken, for at most Config.DrainTimeout; where the store never came and nothing was
// taken it ends at once. It returns nil then, and an
// error only when called twice: a store that fails is waited for. Turns that are not durable by the end are dropped and counted; durable ones are taken
// up by the next Run on the same store.
func (p *Pipeline) Run(ctx context.Context) error {
	if p.running.Swap(true) {
		return errors.New("persist pipeline is running already")
	}
	defer close(p.stopped)
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	var stages sync.WaitGroup
	ending := make(chan struct{}) // closed once nothing more is taken
	stages.Go(func() {            // ends when the drain does, or is cut short
		select {
		case <-ctx.Done():
		case <-work.Done():
			return
		}
		p.close()
		close(ending)
		timer := time.NewTimer(p.cfg.DrainTimeout)
		defer timer.Stop()
		select {
		case <-timer.C:
			stop()
		case <-work.Done():
		}
	})

	recovered := p.gate.enter(work)
	if recovered {
		recovered = p.recover(ctx, work)
		p.gate.leave()
	}
	if recovered {
		spooling := make(chan struct{})
		stages.Go(func() {
			defer close(spooling)
			p.runSpooler(ctx, work, ending)
		})
		auditing := make(chan struct{})
		stages.Go(func() {
			defer close(auditing)
			p.auditor.run(ctx, work, ending)
		})
		p.runStorer(ctx, work, spooling)
		<-auditing
	}
	stop()
	stages.Wait()
	p.abandon()
	return nil
}

// close stops Enqueue.
func (p *Pipeline) close() {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
}

// abandon counts what was taken but is not durable, and what is durable but not stored. Who waits in Flush learns of the end by p.stopped.
func (p *Pipeline) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = true
	for range p.queued {
		p.stats.drop(DropStopped)
	}
	lost, left := len(p.queued), len(p.spooled)
	p.queued, p.spooled, p.inFlight = nil, nil, ledger{turns: left} // Stats tells of those for whom the next start is
	if lost+left > 0 {
		p.log.Warn("persist stopped before its queue was empty", "dropped", lost, "left_in_spool", left)
	}
}

// worthTelling: a shorter outage, such as a store that is just being opened, is not.
const worthTelling = time.Second

// retry calls try until it returns nil or an error that repeating won't mend, with backoff in between, and returns that
// error, or errYield. It gives up with the context's error when work ends. While ctx is alive waits are full; once it has ended
// (draining) waits are short, for there is little time.
func (p *Pipeline) retry(ctx, work context.Context, what string, try func() error) error {
	wait := firstBackoff
	failing := false
	var served <-chan struct{} // the erasure that has had its attempt
	for {
		err := guard(try)
		switch {
		case err == nil:
			if failing {
				p.log.Info("persist goes on", "step", what)
			}
			return nil
		case work.Err() != nil:
			return work.Err()
		case permanent(err), errors.Is(err, errYield):
			return err
		}
		p.stats.retries.Add(1)
		if !failing && wait >= worthTelling {
			failing = true
			p.log.Warn("persist waits for the store", "step", what, "error", err)
		}
		if ctx.Err() != nil {
			wait = firstBackoff
		}
		asked := p.gate.asked() // an erasure does not wait for the next attempt, which may yield to it
		if asked == served {
			asked = nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-work.Done():
			timer.Stop()
			return work.Err()
		case <-done(ctx):
			timer.Stop()
		case <-asked:
			timer.Stop()
			served = asked
		}
		wait = min(2*wait, lastBackoff)
	}
}

// done is ctx.Done until ctx has ended, and never after: a wait that has been cut short once isn't again.
func done(ctx context.Context) <-chan struct{} {
	if ctx.Err() != nil {
		return nil
	}
	return ctx.Done()
}

// errPanic wraps panics of code that was handed a turn. The value is not kept: it may quote content.
var errPanic = errors.New("panic")

// guard calls f and makes an error of a panic.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w of type %T", errPanic, r)
		}
	}()
	return f()
}

// permanent reports an error that lies in the data rather than in the store's state.
func permanent(err error) bool {
	return errors.Is(err, storage.ErrInvalid) || errors.Is(err, storage.ErrDamaged) || errors.Is(err, errPanic) || errors.Is(err, errNothingTaken)
}

// gather waits until there are enough items in *list, or some and the first of them has waited for interval, or Flush or
// the end hurries. It takes at most most items and, beyond the first, bytes of texts; none means that the stage is done, for ended is
// closed and the list empty.
func (p *Pipeline) gather(work context.Context, list *[]*item, wakeup, ended <-chan struct{}, enough, most int, bytes int64, interval time.Duration) []*item {
	var timer *time.Timer
	var expired <-chan time.Time
	late := false
	over := false
	for {
		p.mu.Lock()
		n := len(*list)
		if n >= enough || n > 0 && (late || over || p.hurry > 0) {
			n = fitting((*list)[:min(n, most)], bytes)
			batch := make([]*item, n)
			copy(batch, *list)
			if n == len(*list) {
				*list = nil
			} else {
				*list = (*list)[n:]
			}
			p.mu.Unlock()
			if timer != nil {
				timer.Stop()
			}
			return batch
		}
		p.mu.Unlock()
		if n == 0 && over {
			return nil
		}
		if n > 0 && timer == nil {
			timer = time.NewTimer(interval)
			expired = timer.C
		}
		select {
		case <-wakeup:
		case <-expired:
			late = true
		case <-ended:
			over, ended = true, nil
		case <-work.Done():
			if timer != nil {
				timer.Stop()
			}
			return nil
		}
	}
}

// fitting is how many of items hold so many bytes together, one at least.
func fitting(items []*item, bytes int64) int {
	for i, it := range items {
		if bytes -= it.size; bytes < 0 && i > 0 {
			return i
		}
	}
	return len(items)
}
