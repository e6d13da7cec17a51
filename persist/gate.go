package persist

import (
	"context"
	"errors"
	"sync"
)

// gate lets an erasure in between the batches of the stages. A stage is inside
// the gate while it works on turns; an erasure closes the gate and then knows
// that no turn is anywhere but in the queue and in the store.
type gate struct {
	slots  chan struct{} // one for each stage inside
	closer chan struct{} // one erasure at a time

	mu        sync.Mutex
	requested chan struct{} // closed while an erasure waits or works
}

// stages that pass the gate: spooler, storer, auditor.
const stages = 3

func newGate() gate {
	return gate{slots: make(chan struct{}, stages), closer: make(chan struct{}, 1), requested: make(chan struct{})}
}

// enter waits while the gate is closed; false means that work has ended.
func (g *gate) enter(work context.Context) bool {
	select {
	case g.slots <- struct{}{}:
		return true
	case <-work.Done():
		return false
	}
}

func (g *gate) leave() { <-g.slots }

// closeRequested returns a channel that is closed while an erasure waits for
// the stages to leave, or works.
func (g *gate) closeRequested() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requested
}

// errYield ends a stage's attempt at a store that is away, or full, because an
// erasure waits. The erasure may succeed where the stage does not.
var errYield = errors.New("an erasure waits")

// yielding wraps try for a stage that can repeat its work later: a failed
// attempt yields to an erasure.
func (g *gate) yielding(try func() error) func() error {
	return func() error {
		err := try()
		if err != nil && !permanent(err) {
			select {
			case <-g.closeRequested():
				return errYield
			default:
			}
		}
		return err
	}
}

// close waits until all stages have left and keeps them out until open is
// called. A stage whose call to the store hangs, or that clears the spool of a
// store that is away, stays inside, so ctx should have a deadline.
func (g *gate) close(ctx context.Context) (open func(), err error) {
	select {
	case g.closer <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	g.mu.Lock()
	close(g.requested)
	g.mu.Unlock()
	held := 0
	open = func() {
		for range held {
			<-g.slots
		}
		g.mu.Lock()
		g.requested = make(chan struct{})
		g.mu.Unlock()
		<-g.closer
	}
	for ; held < stages; held++ {
		select {
		case g.slots <- struct{}{}:
		case <-ctx.Done():
			open()
			return nil, ctx.Err()
		}
	}
	return open, nil
}
