package persist

import "context"

// gate lets an erasure in between the stages' batches. Each stage holds it while it has turns in its hands; an erasure
// closes it for all of them, and then knows that no turn is anywhere but in the lists and in the store.
type gate struct {
	slots chan struct{} // one for each stage that has something in its hands
	alone chan struct{} // one closer at a time
}

// stages that pass the gate: spooler, storer, auditor.
const stages = 3

func newGate() gate {
	return gate{slots: make(chan struct{}, stages), alone: make(chan struct{}, 1)}
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

// close waits until all stages have let go and keeps them out until open is called. While the store is away a stage may
// hold on until it comes back, so ctx should have a deadline.
func (g *gate) close(ctx context.Context) (open func(), err error) {
	select {
	case g.alone <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for n := range stages {
		select {
		case g.slots <- struct{}{}:
		case <-ctx.Done():
			for range n {
				<-g.slots
			}
			<-g.alone
			return nil, ctx.Err()
		}
	}
	return func() {
		for range stages {
			<-g.slots
		}
		<-g.alone
	}, nil
}
