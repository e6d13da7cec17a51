package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/storage"
)

// crossing is a control plane whose calls take callTime each, next to traffic
// of a rate.
type crossing struct {
	*Precedence
	handler http.Handler
	served  atomic.Int64
	now     atomic.Int64 // calls under way
	most    atomic.Int64
}

const callTime = 10 * time.Millisecond

func newCrossing(t *testing.T, rate int64) *crossing {
	begun := time.Now()
	c := &crossing{Precedence: NewPrecedence(func() int64 { return int64(time.Since(begun)) * rate / int64(time.Second) })}
	c.handler = c.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		c.most.Store(max(c.most.Load(), c.now.Add(1)))
		defer c.now.Add(-1)
		time.Sleep(callTime)
		c.served.Add(1)
	}))
	time.Sleep(2 * rateInterval) // the rate becomes known
	return c
}

func (c *crossing) call(ctx context.Context, h http.Handler, path string) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	r.Header.Set("Accept", "text/event-stream") // which says nothing
	h.ServeHTTP(httptest.NewRecorder(), r)
}

// load calls from so many clients as fast as they are answered.
func (c *crossing) load(clients int, lasts time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				c.call(ctx, c.handler, "/")
			}
		})
	}
	all.Wait()
}

// TestCallsGiveWay guards the share of the time that calls get next to traffic,
// and that without traffic they get all of it.
func TestCallsGiveWay(t *testing.T) {
	for _, tt := range []struct {
		rate, most, least, atOnce int64 // calls of a second
	}{
		{0, 808, 792, 8},
		{4, 808, 792, 8}, // a person's agents
		{50, 104, 96, callsAtOnce},
		{150, 52, 48, callsAtOnce},
		{5000, 52, 48, callsAtOnce},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrossing(t, tt.rate)
			c.load(8, time.Second)
			if n := c.served.Load(); n > tt.most || n < tt.least {
				t.Errorf("%d requests a second: %d calls, want %d to %d", tt.rate, n, tt.least, tt.most)
			}
			if n := c.most.Load(); n != tt.atOnce {
				t.Errorf("%d requests a second: %d calls at once, want %d", tt.rate, n, tt.atOnce)
			}
		})
	}
}

// TestLoneCallsDoNotWait guards that rests are felt only by those who call
// again and again.
func TestLoneCallsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrossing(t, 5000)
		for range 20 {
			begun := time.Now()
			c.call(t.Context(), c.handler, "/")
			if took := time.Since(begun); took != callTime {
				t.Fatalf("a call took %v, want %v", took, callTime)
			}
			time.Sleep(maxRest * callTime)
		}
	})
}

// TestPlacesComeBack guards that calls that panic, last or whose clients leave
// do not keep their places, and that streams of events need none.
func TestPlacesComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrossing(t, 5000)
		bad := c.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		endless := c.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 3 * callsAtOnce {
			func() {
				defer func() { _ = recover() }()
				c.call(t.Context(), bad, "/")
			}()
			all.Go(func() { c.call(ctx, endless, "/live/events") })
		}
		synctest.Wait()
		begun := time.Now()
		c.call(t.Context(), c.handler, "/")
		if took := time.Since(begun); took != callTime {
			t.Errorf("next to streams a call took %v", took)
		}
		time.Sleep(time.Second)
		for range callsAtOnce {
			all.Go(func() { c.call(ctx, endless, "/") })
		}
		synctest.Wait()
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		served := c.served.Load()
		c.call(gone, c.handler, "/")
		if c.served.Load() != served {
			t.Error("a call whose client has left was served")
		}
		begun = time.Now()
		c.call(t.Context(), c.handler, "/")
		if took := time.Since(begun); took > longCall*(1+maxRest) {
			t.Errorf("next to calls that do not end, one took %v", took)
		}
		leave()
		all.Wait()
		time.Sleep(time.Minute)
		if n := len(c.places); n > 0 {
			t.Errorf("%d places are still taken", n)
		}
	})
}

// slowPages is a store whose pages take callTime each.
type slowPages struct{ api.Store }

func (slowPages) Scan(context.Context, storage.Scope, storage.Query) (storage.Page, error) {
	time.Sleep(callTime)
	return storage.Page{}, nil
}

// TestLongCallsRest guards that a call that reads page after page rests in
// between, and one without traffic does not.
func TestLongCallsRest(t *testing.T) {
	const pages = 100
	for rate, want := range map[int64]time.Duration{0: pages * callTime, 5000: pages*callTime + (pages-1)*maxRest*callTime} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrossing(t, rate)
			store := c.Store(slowPages{})
			begun := time.Now()
			c.call(t.Context(), c.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				for range pages {
					if _, err := store.Scan(r.Context(), storage.Scope{}, storage.Query{}); err != nil {
						t.Error(err)
					}
				}
			})), "/")
			if took := time.Since(begun); took != want {
				t.Errorf("%d requests a second: %v, want %v", rate, took, want)
			}
			if _, err := store.Scan(t.Context(), storage.Scope{}, storage.Query{}); err != nil { // of no call
				t.Error(err)
			}
			time.Sleep(time.Minute)
		})
	}
}
