package mcp

import (
	"context"
	"hash/maphash"
)

// locks has changes of one thing wait for one another: a model may edit one
// file in several calls at once. Two things may share a lock.
type locks struct {
	seed  maphash.Seed
	slots [64]chan struct{}
}

func newLocks() locks {
	l := locks{seed: maphash.MakeSeed()}
	for i := range l.slots {
		l.slots[i] = make(chan struct{}, 1)
	}
	return l
}

// lock returns what unlocks a name, or the error of ctx.
func (l *locks) lock(ctx context.Context, name string) (unlock func(), err error) {
	slot := l.slots[maphash.String(l.seed, name)%uint64(len(l.slots))]
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
