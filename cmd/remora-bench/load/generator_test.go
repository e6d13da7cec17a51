package load

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/remora-proxy/remora/cmd/remora-bench/prose"
)

// startMock serves a mock upstream in this process and returns its address.
func startMock(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := newUpstream(replyScript{events: 4}).serve(ctx, l); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return l.Addr().String()
}

func testJob(t *testing.T, addr string, script replyScript) job {
	t.Helper()
	tpl, err := newRequestTemplate(requestSpec{api: chatAPI(), host: addr, size: 1 << 10, script: script}, prose.New(5))
	if err != nil {
		t.Fatal(err)
	}
	return job{
		route: route{addr: addr}, template: tpl, script: script, conns: 3, duration: 100 * time.Millisecond,
		users: 64, messages: []string{"one?", "two?"}, serial: new(atomic.Uint64),
	}
}

func TestClosedLoop(t *testing.T) {
	addr := startMock(t)
	for name, script := range map[string]replyScript{
		"json":              {},
		"json with latency": {latency: 2 * time.Millisecond},
		"stream at once":    {events: 5},
		"stream":            {events: 5, gap: 2 * time.Millisecond, latency: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			j := testJob(t, addr, script)
			m, err := j.run(t.Context())
			for err == nil && m.errors == 0 && (m.latency.count() == 0 || m.events == 0 && script.events > 0) && j.duration < time.Minute {
				j.duration *= 4 // this machine was busy with something else
				m, err = j.run(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.errors > 0 || m.latency.count() == 0 || m.first.count() != m.latency.count() {
				t.Fatalf("errors %d (%v), latencies %d, first bytes %d", m.errors, m.lastError, m.latency.count(), m.first.count())
			}
			length := script.latency + time.Duration(max(script.events-1, 0))*script.gap
			if got := m.latency.quantile(1e-6); got < length {
				t.Errorf("shortest latency %v, want at least the %v that a response takes", got, length)
			}
			if got := m.first.quantile(1e-6); got < script.latency {
				t.Errorf("earliest first byte %v, want at least %v", got, script.latency)
			}
			if script.events > 0 && m.events == 0 {
				t.Error("no event was timed")
			}
		})
	}
}

// One connection of 20 ms a request can't keep up with 200 requests a second.
// An open loop says so: the k-th request waits for all before it, from the time
// that it was due.
func TestOpenLoopCountsFromTheSchedule(t *testing.T) {
	j := testJob(t, startMock(t), replyScript{latency: 20 * time.Millisecond})
	j.conns, j.rate = 1, 200
	m, err := j.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.latency.count(), int64(20); got != want || m.errors > 0 {
		t.Fatalf("%d requests, %d errors (%v), want %d and none", got, m.errors, m.lastError, want)
	}
	// The last is due at 95 ms and done after 20 * 20 ms.
	if got, want := m.latency.max, 305*time.Millisecond; got < want {
		t.Errorf("longest latency %v, want at least %v", got, want)
	}
	if m.late == 0 {
		t.Error("no request was late")
	}
}

func TestOpenLoopSendsTheWholeSchedule(t *testing.T) {
	j := testJob(t, startMock(t), replyScript{})
	j.rate, j.warmup = 500, 50*time.Millisecond
	m, err := j.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := j.serial.Load(), uint64(75); got != want {
		t.Errorf("%d requests sent, want %d in 150 ms", got, want)
	}
	if got, want := m.latency.count(), int64(50); got != want || m.errors > 0 {
		t.Errorf("%d requests measured, %d errors, want %d after the warm-up", got, m.errors, want)
	}
}

// A target that hangs up costs errors, not the run.
func TestBrokenTarget(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = newWireReader(c, wireBuffer).head()
			_ = c.Close()
		}
	})
	defer wg.Wait()
	defer func() { _ = l.Close() }()
	for _, rate := range []float64{0, 100} {
		j := testJob(t, l.Addr().String(), replyScript{})
		if j.rate = rate; rate == 0 {
			j.duration = time.Minute // errors end it
		}
		m, err := j.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if m.errors == 0 || m.requests != 0 || m.lastError == nil {
			t.Errorf("rate %v: errors %d, requests %d, want errors alone", rate, m.errors, m.requests)
		}
	}
}

func TestUnreachableTarget(t *testing.T) {
	const addr = "127.0.0.1:1" // a port that is never given out
	for _, rate := range []float64{0, 100} {
		j := testJob(t, addr, replyScript{})
		j.rate = rate
		if _, err := j.run(t.Context()); err == nil {
			t.Errorf("rate %v: no error", rate)
		}
	}
}

// Jobs run in the order of their times, not in the order in which they were
// handed in, and again where they say so.
func TestPacer(t *testing.T) {
	p := newPacer()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := time.Now()
	var fired []int
	for _, n := range []int{30, 10, 20} {
		due := start.Add(time.Duration(n) * time.Millisecond)
		p.at(ctx, due, pacerFunc(func() (time.Time, bool) {
			if time.Now().Before(due) {
				t.Errorf("job %d ran early", n)
			}
			fired = append(fired, n)
			if len(fired) == 4 {
				cancel()
			}
			return start.Add(40 * time.Millisecond), len(fired) == 1
		}))
	}
	p.run(ctx)
	if diff := cmp.Diff([]int{10, 20, 30, 10}, fired); diff != "" {
		t.Errorf("order (-want +got)\n%s", diff)
	}
}

type pacerFunc func() (time.Time, bool)

func (f pacerFunc) fire() (time.Time, bool) { return f() }
