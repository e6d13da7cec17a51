package rest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/storage"
)

// While requests pass through the proxy, calls of the control plane give way to
// them: callsAtOnce are served at a time, and after each its place stays empty
// for a multiple of the time that it took, which grows with the number of
// requests a second, and on a busy machine with the time that calls wait for a
// processor. So calls take a bounded part of the machine, however many come,
// and a call that comes alone does not wait. Without requests nothing waits.
const (
	callsAtOnce = 2
	// restPerRate is the rest after a call for each request a second, in times
	// of the call; below minRest there is none.
	restPerRate = .02
	minRest     = .1
	maxRest     = 3.
	// longCall is how long a call has its place: what takes longer waits for
	// something, or reads piece by piece and rests in between.
	longCall = 2 * time.Second
	// pieceAfter is how long a call reads before it rests, maxPieceRest for how
	// long at most: somebody waits for the next piece.
	pieceAfter   = 5 * time.Millisecond
	maxPieceRest = time.Second
	// rateInterval is how long requests are counted for the rate.
	rateInterval = 500 * time.Millisecond
)

// Precedence is that of the traffic over calls of the control plane.
type Precedence struct {
	exchanges func() int64
	places    chan struct{}

	mu    sync.Mutex
	at    time.Time // of the last count
	count int64
	rest  float64 // in times of the work
}

// NewPrecedence returns the precedence of the traffic that is counted by
// exchanges, since the start.
func NewPrecedence(exchanges func() int64) *Precedence {
	return &Precedence{exchanges: exchanges, places: make(chan struct{}, callsAtOnce), at: time.Now(), count: exchanges()}
}

// restNow returns how long work rests, in times of itself; 0 = not at all.
func (p *Precedence) restNow() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if passed := now.Sub(p.at); passed >= rateInterval {
		count := p.exchanges()
		rate := float64(count-p.count) / passed.Seconds()
		p.at, p.count, p.rest = now, count, min(rate*restPerRate, maxRest)
		if p.rest < minRest {
			p.rest = 0
		}
	}
	return p.rest
}

// Handler has the calls of next give way.
func (p *Precedence) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{p: p, began: time.Now()}
		if p.restNow() > 0 && !waitsForEvents(r) {
			select {
			case p.places <- struct{}{}:
			case <-r.Context().Done():
				return // nobody waits for an answer
			}
			v.began = time.Now()
			long := time.AfterFunc(longCall, v.leave)
			defer func() {
				if long.Stop() {
					v.leave()
				}
			}()
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, v)))
	})
}

// waitsForEvents reports whether a call is mostly idle: a stream of receipts, of
// this face or of the web page.
func waitsForEvents(r *http.Request) bool {
	return r.Method == http.MethodGet && (r.URL.Path == "/v1/exchanges/watch" || r.URL.Path == "/live/events")
}

// visit is a call that is served.
type visit struct {
	p *Precedence

	mu    sync.Mutex
	began time.Time // or when it last rested
}

type visitKey struct{}

func (v *visit) worked() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Since(v.began)
}

// leave gives the place back after a rest.
func (v *visit) leave() {
	rest := time.Duration(float64(min(v.worked(), longCall)) * v.p.restNow())
	time.AfterFunc(rest, func() { <-v.p.places })
}

// pause is a rest between the pieces of a long call.
func (v *visit) pause(ctx context.Context) {
	worked := v.worked()
	if worked < pieceAfter {
		return
	}
	if rest := time.Duration(float64(worked) * v.p.restNow()); rest > 0 {
		timer := time.NewTimer(min(rest, maxPieceRest))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.began = time.Now()
}

// Store returns a store whose scans rest in between when a call makes many.
func (*Precedence) Store(s api.Store) api.Store { return restingStore{s} }

type restingStore struct{ api.Store }

func (s restingStore) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error) {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		v.pause(ctx)
	}
	return s.Store.Scan(ctx, scope, q)
}
