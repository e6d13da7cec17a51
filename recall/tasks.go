package recall

import (
	"context"
	"sync"
)

// tasks are the background goroutines of an engine. close waits for all of
// them.
type tasks struct {
	ctx    context.Context // done when close begins
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu     sync.Mutex // guards closed, and group.Add before close waits
	closed bool
}

func newTasks() *tasks {
	t := &tasks{}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// start runs f in the background. It reports false, and does not run f, after
// close.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.group.Go(f)
	return true
}

// startNested runs f in the background, even after close. Only a running task
// may call it.
func (t *tasks) startNested(f func()) { t.group.Go(f) }

// close cancels the tasks and waits for them. It reports whether it was the
// first call.
func (t *tasks) close() (first bool) {
	t.mu.Lock()
	first, t.closed = !t.closed, true
	t.mu.Unlock()
	t.cancel()
	t.group.Wait()
	return first
}
