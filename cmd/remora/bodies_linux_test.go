package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage/process"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// TestLargeBodiesInASmallMachine sends bodies of 32 MiB, 64 at a time, through
// a Remora whose two processes have the 128 MiB of the documented container.
// Some upstreams take them as they come, some slowly, and some nothing for a
// while; some clients announce the length and most do not, so that as much as
// possible is read before it shows that the body is too large. None may fail,
// and the memory of both processes stays within the container's.
func TestLargeBodiesInASmallMachine(t *testing.T) {
	const clients, rounds = 64, 2
	size := int64(32 << 20)
	if testing.Short() {
		size = 10 << 20 // above what is kept
	}
	for _, kind := range []string{"taken", "slow", "stalled"} {
		t.Run(kind, func(t *testing.T) {
			slow := make(chan struct{})
			var arrived atomic.Int64
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch kind {
				case "slow":
					if _, err := io.CopyN(io.Discard, pausing{r.Body}, 1<<20); err != nil {
						return
					}
				case "stalled":
					<-slow
				}
				if n, err := io.Copy(io.Discard, r.Body); err == nil {
					arrived.Add(n)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
			}))
			t.Cleanup(model.Close)
			m := inSmallMachine(t, "bodies-"+kind)
			serve := m.launch(model.URL)
			var anon, proxy, store int64 // bytes at most
			over := make(chan struct{})
			var watching, sending sync.WaitGroup
			watching.Go(func() {
				for {
					anon = max(anon, m.group.Anonymous())
					proxy = max(proxy, storagetest.Resident(serve.Process.Pid))
					store = max(store, storagetest.Resident(childOf(serve.Process.Pid)))
					select {
					case <-over:
						return
					case <-time.After(20 * time.Millisecond):
					}
				}
			})
			var failed atomic.Int64
			for i := range clients {
				time.Sleep(30 * time.Millisecond) // what the one before has sent has been read
				sending.Go(func() {
					for n := range rounds {
						if kind == "stalled" && n > 0 {
							return
						}
						if err := sendLarge(m.url, i, size); err != nil {
							failed.Add(1)
							t.Errorf("client %d: %v", i, err)
							return
						}
					}
				})
			}
			if kind == "stalled" {
				time.AfterFunc(5*time.Second, func() { close(slow) })
			}
			sending.Wait()
			close(over)
			watching.Wait()
			t.Logf("%d of %d failed; %d MiB arrived; MiB at most: %d not of files in both, proxy %d resident, store %d resident; %s",
				failed.Load(), clients, arrived.Load()>>20, anon>>20, proxy>>20, store>>20, m.group)
			if kills := m.group.Kills(); kills > 0 {
				t.Errorf("the kernel killed %d processes for memory", kills)
			}
			if max(anon, proxy) > m.part {
				t.Errorf("%d MiB not of files, proxy %d resident, want at most %d", anon>>20, proxy>>20, m.part>>20)
			}
		})
	}
}

// TestManyStreamsInASmallMachine has more clients than the documented container
// serves at a time: all of them get their answer.
func TestManyStreamsInASmallMachine(t *testing.T) {
	const clients = 1500
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 10 {
			_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"word "}}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(50 * time.Millisecond)
		}
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(model.Close)
	m := inSmallMachine(t, "streams")
	m.launch(model.URL)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var asking sync.WaitGroup
	for i := range clients {
		asking.Go(func() {
			if err := m.ask(client, i, "How does the tide turn?"); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	var most int64
	done := make(chan struct{})
	go func() { asking.Wait(); close(done) }()
	for over := false; !over; {
		most = max(most, m.group.Anonymous())
		select {
		case <-done:
			over = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Logf("%d MiB at most; %s", most>>20, m.group)
	if m.group.Kills() > 0 || most > m.part {
		t.Errorf("%d processes were killed, %d MiB at most", m.group.Kills(), most>>20)
	}
}

// TestFewFiles has many idle clients at a Remora that may open 80 files: those
// that ask are served.
func TestFewFiles(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(model.Close)
	m := &million{t: t, dir: rigDir(t), group: &storagetest.Group{}, files: 80}
	m.launch(model.URL)
	for i := range 75 { // those that have a place ask within a second, and then are idle
		c, err := net.Dial("tcp", strings.TrimPrefix(m.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%10 == 0 {
			continue
		}
		client := &http.Client{Transport: &http.Transport{}, Timeout: patience} // its connection stays
		if err := m.ask(client, i, "How does the tide turn?"); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
	}
}

// pausing is a reader of 64 KiB at a time, with a pause after each.
type pausing struct{ io.Reader }

func (r pausing) Read(p []byte) (int, error) {
	time.Sleep(50 * time.Millisecond)
	return r.Reader.Read(p[:min(len(p), 64<<10)])
}

// sendLarge sends one question whose body is about size bytes.
func sendLarge(url string, client int, size int64) error {
	const head, tail = `{"model":"m","messages":[{"role":"user","content":"`, `"}]}`
	body := io.MultiReader(strings.NewReader(head), io.LimitReader(letters{}, size), strings.NewReader(tail))
	request, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", body)
	if err != nil {
		return err
	}
	request.Header.Set("X-Remora-User", "u"+strconv.Itoa(client))
	if client%4 == 0 {
		request.ContentLength = size + int64(len(head)+len(tail))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d: %s", response.StatusCode, answer[:min(len(answer), 200)])
	}
	return err
}

// letters has no end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestIdleCommands has 600 connections to the store's socket that ask for
// nothing: commands are served.
func TestIdleCommands(t *testing.T) {
	m := &million{t: t, dir: rigDir(t), group: &storagetest.Group{}}
	m.launch("http://127.0.0.1:1")
	r := dialServe(t, m.dir)
	defer r.Close()
	for i := range 600 {
		c, err := net.Dial("unix", filepath.Join(m.dir, process.StoreSocket))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%100 != 99 {
			continue
		}
		other, err := process.Dial(m.dir, process.StoreSocket, readBuild().String())
		if err != nil {
			t.Fatalf("behind %d idle connections: %v", i+1, err)
		}
		if _, err := other.Scopes(t.Context(), "", 0); err != nil {
			t.Errorf("behind %d idle connections: %v", i+1, err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
}
