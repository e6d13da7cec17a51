package persist

import (
	"context"
	"errors"
	"sync"
)

// gate lets an erasure in between the stages' batches. Each stage holds it while it has turns in its hands; an erasure
// closes it for all of them, and then knows that no turn is anywhere but in the lists and in the store.
type gate struct {
	slots chan struct{} // one for each stage that has something in its hands
	alone chan struct{} // one closer at a time

	mu    sync.Mutex
	knock chan struct{} // closed while an erasure waits or is at work
}

// stages that pass the gate: spooler, storer, auditor.
const stages = 3

func newGate() gate {
	return gate{slots: make(chan struct{}, stages), alone: make(chan struct{}, 1), knock: make(chan struct{})}
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

// asked is closed when an erasure waits for the stages to let go, or is at work.
func (g *gate) asked() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.knock
}

func (g *gate) wanted() bool {
	select {
	case <-g.asked():
		return true
	default:
		return false
	}
}

// ask has wanted say so until answered is called. The caller is alone.
func (g *gate) ask() (answered func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.knock)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.knock = make(chan struct{})
	}
}

// errYield ends a stage's attempt at a store that is away, or full, for the sake of an erasure that waits, and that it may well serve.
var errYield = errors.New("an erasure waits")

// yielding is try for a stage that can take its turns up again later.
func (g *gate) yielding(try func() error) func() error {
	return func() error {
		err := try()
		if err != nil && !permanent(err) && g.wanted() {
			return errYield
		}
		return err
	}
}

// close waits until all stages have let go and keeps them out until open is called. A stage whose call to the store hangs, or that
// clears the spool of a store that is away, holds on, so ctx should have a deadline.
func (g *gate) close(ctx context.Context) (open func(), err error) {
	select {
	case g.alone <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	answered := g.ask()
	for n := range stages {
		select {
		case g.slots <- struct{}{}:
		case <-ctx.Done():
			for range n {
				<-g.slots
			}
			answered()
			<-g.alone
			return nil, ctx.Err()
		}
	}
	return func() {
		for range stages {
			<-g.slots
		}
		answered()
		<-g.alone
	}, nil
}
