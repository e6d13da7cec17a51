package listener

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serveLimited runs a server of h under a limit of so many exchanges.
func serveLimited(t *testing.T, exchanges int, h http.HandlerFunc) (address string) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Listen, cfg.Limit, cfg.Drain = "127.0.0.1:0", NewLimit(exchanges), time.Minute // a busy machine must not decide
	s := New(h, cfg, nil)
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.Addr().String()
}

// Idle connections, whether they have asked for something or not, make room for
// new clients.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	address := serveLimited(t, 4, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	for i := range 32 { // each beyond 8 waits for some time
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%10 == 0 {
			continue // sends nothing
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if r, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("client %d, behind idle ones: %v", i, err)
		}
	}
}

// What is over the limit waits, over both versions of HTTP, and nobody is
// refused. A probe does not wait.
func TestExchangesWait(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/2"} {
		t.Run(version, func(t *testing.T) {
			var running, most atomic.Int64
			began, release := make(chan struct{}, 100), make(chan struct{})
			address := serveLimited(t, 8, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == LivePath {
					Live(w)
					return
				}
				n := running.Add(1)
				defer running.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				began <- struct{}{}
				<-release
			})
			protocols := new(http.Protocols)
			protocols.SetHTTP1(version == "HTTP/1.1")
			protocols.SetUnencryptedHTTP2(version == "HTTP/2")
			client := &http.Client{Transport: &http.Transport{Protocols: protocols}, Timeout: time.Minute}
			defer client.CloseIdleConnections()
			var asking sync.WaitGroup
			for range 50 {
				asking.Go(func() {
					if r, err := client.Get("http://" + address); err != nil || r.StatusCode != http.StatusOK {
						t.Errorf("refused: %v", err)
					}
				})
			}
			for range 8 {
				<-began
			}
			if version == "HTTP/2" { // over HTTP/1.1 the other clients may have all connections
				if r, err := client.Get("http://" + address + LivePath); err != nil || !IsLive(r) {
					t.Errorf("probe: %v", err)
				}
			}
			close(release)
			asking.Wait()
			if most.Load() != 8 {
				t.Errorf("%d at a time, want 8", most.Load())
			}
		})
	}
}

// A client that leaves while it waits has no place any more.
func TestWaitingClientsLeave(t *testing.T) {
	began, release := make(chan struct{}, 10), make(chan struct{})
	address := serveLimited(t, 1, func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-release
	})
	ask := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	}
	first := make(chan error, 1)
	go func() { first <- ask(t.Context()) }()
	<-began
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	if ask(ctx) == nil {
		t.Error("two at a time")
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := ask(t.Context()); err != nil {
		t.Error(err)
	}
}
