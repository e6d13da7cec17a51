package mem0

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/identity"
)

// States of an event.
const (
	statusPending   = "PENDING"
	statusSucceeded = "SUCCEEDED"
	statusFailed    = "FAILED"
)

// Bounds of events. Beyond maxEvents the oldest are forgotten, unless as many
// wait: then messages are refused.
const (
	maxEvents     = 1000
	settleTimeout = 30 * time.Second
	settlePause   = time.Second
	eventPatience = 5 * time.Minute // after which one that could not be audited has failed
)

// whyLabelled is the reason of a change that gives a new memory the metadata
// that it was handed in with.
const whyLabelled = "metadata it was handed in with"

// events remembers what was handed in, and what became of it. One goroutine, as
// long as there is something to do, has the pipeline audit what waits: all of
// it at once.
type events struct {
	face *face

	mu      sync.Mutex
	byID    map[string]*event
	order   []*event // oldest first
	waiting []*event
	open    int // events that are not over
	working bool
}

// event is what was handed in by one request. It holds no text: what became of
// it is read when somebody asks, and may.
type event struct {
	id     string
	p      api.Principal
	owner  api.Target
	labels labels
	begun  time.Time
	done   chan struct{}

	// The rest changes under the lock of events until done is closed.
	turns   []string
	status  string
	failure string
	ended   time.Time
	ids     []string // of the memories
	known   []string // of those that were there before, as far as the Service has said so
}

func newEvents(f *face) *events { return &events{face: f, byID: map[string]*event{}} }

// begin remembers an event that is about to happen.
func (x *events) begin(p api.Principal, owner api.Target, l labels) (*event, error) {
	e := &event{id: newID(), p: p, owner: owner, labels: l, begun: x.face.service.Now(), status: statusPending, done: make(chan struct{})}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open >= maxEvents {
		return nil, api.ErrBusy
	}
	x.open++
	x.byID[e.id] = e
	x.order = append(x.order, e)
	if len(x.order) > maxEvents {
		delete(x.byID, x.order[0].id)
		x.order[0] = nil
		x.order = x.order[1:]
	}
	return e, nil
}

// handedIn has the turns of an event audited. Without any it has failed.
func (x *events) handedIn(e *event, turns []string) {
	if len(turns) == 0 {
		x.end(e, statusFailed, "nothing was taken in")
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	e.turns = turns
	x.waiting = append(x.waiting, e)
	if !x.working {
		x.working = true
		go x.work()
	}
}

// end says what became of an event.
func (x *events) end(e *event, status, failure string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open--
	e.status, e.failure, e.ended = status, failure, x.face.service.Now()
	close(e.done)
}

// work audits until nothing waits. Every audit is for all that wait when it
// begins.
func (x *events) work() {
	for {
		x.mu.Lock()
		batch := x.waiting
		if x.waiting = nil; len(batch) == 0 {
			x.working = false
			x.mu.Unlock()
			return
		}
		x.mu.Unlock()
		err := x.settle()
		var late []*event
		for _, e := range batch {
			switch {
			case err == nil:
				x.collect(e)
			case errors.Is(err, persist.ErrClosed), x.face.service.Now().Sub(e.begun) > eventPatience:
				x.end(e, statusFailed, api.Detail(err))
			default:
				late = append(late, e)
			}
		}
		if len(late) > 0 {
			x.mu.Lock()
			x.waiting = append(late, x.waiting...)
			x.mu.Unlock()
			time.Sleep(settlePause)
		}
	}
}

func (x *events) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	return x.face.service.Pipeline.Settle(ctx)
}

// collect finds what an event's turns have become, and labels it.
func (x *events) collect(e *event) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	c := &call{face: x.face, p: e.p}
	made, err := adminCall{c}.become(ctx, e)
	for i := range made {
		if err == nil && len(e.labels.metadata)+len(e.labels.categories) > 0 {
			_, err = label(c, ctx, &made[i], e.labels, whyLabelled)
			if errors.Is(err, api.ErrNotFound) { // deleted meanwhile
				err = nil
			}
		}
		e.ids = append(e.ids, made[i].ID)
	}
	if err != nil {
		x.face.log.Warn("an event has failed", "event", e.id, "error", err)
		x.end(e, statusFailed, api.Detail(err))
		return
	}
	x.end(e, statusSucceeded, "")
}

// become returns what the turns of an event have become.
func (c adminCall) become(ctx context.Context, e *event) (out []api.Memory, err error) {
	v, err := c.open(ctx, e.owner)
	if err != nil {
		return nil, err
	}
	for _, turn := range e.turns {
		of, err := c.ofTurn(ctx, v, turn)
		if err != nil {
			return nil, err
		}
		out = append(out, of...)
	}
	return out, nil
}

// get returns an event of a principal's.
func (x *events) get(p api.Principal, id string) (*event, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.byID[id]; e != nil && mayRead(p, e.owner) {
		return e, nil
	}
	return nil, api.ErrNotFound
}

// list returns the events of a principal's, newest first.
func (x *events) list(p api.Principal) (out []*event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range slices.Backward(x.order) {
		if mayRead(p, e.owner) {
			out = append(out, e)
		}
	}
	return out
}

// mayRead reports whether a principal may read what was made for an owner.
func mayRead(p api.Principal, owner api.Target) bool {
	return (p.Admin || owner.Tenant == identity.Show(p.Tenant)) && (p.User == "" || owner.User == identity.Show(p.User))
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
