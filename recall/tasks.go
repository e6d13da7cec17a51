package recall

import (
	"context"
	"sync"

	"github.com/remora-proxy/remora/storage"
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

// writePauses keep the engine from writing what it derives from a scope,
// vectors and snapshots, while memories of the scope are erased. Whatever was
// written between the erasure in the store and [Engine.Drop] would be deleted
// again, but until the store compacts its files its bytes would stay on the
// disk, sealed by a key that still exists. A writer waits during a pause and
// then finds the memories gone.
type writePauses struct {
	mu      sync.Mutex
	paused  map[storage.Scope]chan struct{} // closed when the pause ends
	writers map[storage.Scope]int
	idle    map[storage.Scope]chan struct{} // closed when the last writer ends; set while a pause waits for that
}

// PauseWrites waits until nothing derived from a scope is being written, and
// keeps it so until release is called. It is called before a scope or some of
// its memories are erased, and released after Drop or Forget. A write takes 30
// s at most.
func (e *Engine) PauseWrites(ctx context.Context, scope storage.Scope) (release func(), err error) {
	return e.pauses.pause(ctx, scope)
}

func (p *writePauses) pause(ctx context.Context, scope storage.Scope) (release func(), err error) {
	for {
		p.mu.Lock()
		other := p.paused[scope]
		if other == nil {
			break
		}
		p.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if p.paused == nil {
		p.paused, p.idle = map[storage.Scope]chan struct{}{}, map[storage.Scope]chan struct{}{}
	}
	ended := make(chan struct{})
	p.paused[scope] = ended
	release = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.paused, scope)
		delete(p.idle, scope)
		close(ended)
	}
	if p.writers[scope] == 0 {
		p.mu.Unlock()
		return release, nil
	}
	idle := make(chan struct{})
	p.idle[scope] = idle
	p.mu.Unlock()
	select {
	case <-idle:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	}
}

// beginWrite waits while the scope is paused; ok is false if ctx is done first.
// After it the writer must check that there still is something to write, and
// call done in the end.
func (p *writePauses) beginWrite(ctx context.Context, scope storage.Scope) (done func(), ok bool) {
	for {
		p.mu.Lock()
		paused := p.paused[scope]
		if paused == nil {
			break
		}
		p.mu.Unlock()
		select {
		case <-paused:
		case <-ctx.Done():
			return nil, false
		}
	}
	defer p.mu.Unlock()
	if p.writers == nil {
		p.writers = map[storage.Scope]int{}
	}
	p.writers[scope]++
	return func() { p.endWrite(scope) }, true
}

func (p *writePauses) endWrite(scope storage.Scope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writers[scope]--; p.writers[scope] > 0 {
		return
	}
	delete(p.writers, scope)
	if idle := p.idle[scope]; idle != nil {
		close(idle)
		delete(p.idle, scope)
	}
}
