//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/export"
	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/process"
)

// storeRounds scales the tests of what may befall the store's process:
// REMORA_STORE_ROUNDS=full runs the 20 disk fills and 200 damages that
// docs/storage.md tells of, otherwise some of each.
func storeRounds(few, full int) int {
	switch {
	case os.Getenv("REMORA_STORE_ROUNDS") == "full":
		return full
	case testing.Short():
		return 1
	}
	return few
}

const rigUsers = 4

// slowest is what a request may take on a busy machine: far more than recall's
// deadline, less than a wait for the store.
const slowest = 6 * time.Second

// rig is a Remora in this process, whose store is in another, between traffic
// and a fake model.
type rig struct {
	t   *testing.T
	sys *system
	url string
	dir string
	log *lockedBuffer

	serial   atomic.Int64
	requests atomic.Int64
	injected atomic.Int64
	stop     func()

	stalls  atomic.Int64
	failing atomic.Bool // the store is, or may be: tells apart what requests took

	mu   sync.Mutex
	took [2][]time.Duration // by requests: while all was well, and from failures to recoveries
	said map[string]bool    // what got an answer while memory was not said to be away for that user
}

// newRig starts a Remora with its data in dir, and awaits its memory.
func newRig(t *testing.T, dir string, change func(*config.Config)) *rig {
	t.Helper()
	if !process.Supported {
		t.Skip("the store has no process of its own here")
	}
	r := &rig{t: t, dir: dir, said: map[string]bool{}, log: &lockedBuffer{}}
	model := httptest.NewServer(&proxytest.LLM{Answer: r.answer})
	c := demoConfig(dir, model.URL)
	c.Store = config.Default().Store
	c.Store.ReserveBytes = 4 << 20
	c.Persist.TurnsPerSecond = 0 // a busy test is faster than a person
	c.Persist.QueueTurns = 1 << 20
	c.Store.Process.LastWait = 2 * time.Second
	c.Store.Process.Ping, c.Store.Process.Suspect, c.Store.Process.Hang = 100*time.Millisecond, 300*time.Millisecond, 5*time.Second
	if change != nil {
		change(&c)
	}
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var err error
	if r.sys, err = newSystem(c, log, export.Telemetry{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.sys.run(ctx) }()
	go r.watchStalls(ctx)
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		model.Close()
	})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			text := r.log.String()
			t.Log(text[max(0, len(text)-8000):])
		}
	})
	r.url = "http://" + r.sys.server.Addr().String()
	r.awaitMemory()
	return r
}

const stallTick = 100 * time.Millisecond

// watchStalls notices that this process was stopped, or the machine suspended
// or far too busy, which no timeout knows of.
func (r *rig) watchStalls(ctx context.Context) {
	for last := time.Now(); ctx.Err() == nil; {
		time.Sleep(stallTick)
		now := time.Now()
		if now.Sub(last) > slowest/6 {
			r.stalls.Add(1)
		}
		last = now
	}
}

func (r *rig) await(what string, done func() bool) {
	r.t.Helper()
	for start := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > 2*patience {
			r.t.Fatalf("waited in vain: %s; the store says: %+v\n%s", what, r.sys.store.Status(), r.counters())
		}
	}
}

// counters says what became of the requests, where a turn may be.
func (r *rig) counters() string {
	h := r.sys.handler.Stats()
	return fmt.Sprintf("%d requests, %d answers being read\nproxy: %v, %d assembled, %d not final, %d panics, %d ledger entries late\nlost: %v\npipeline: %+v",
		r.requests.Load(), h.Reading(), h.ByStatus(), h.Assembled.Load(), h.NotFinal.Load(), h.Panics.Load(), h.LedgerLate.Load(), r.sys.losses(), r.sys.pipeline.Stats())
}

// lost counts the turns that were dropped, and counted as such, anywhere.
func (r *rig) lost() (n uint64) {
	for _, of := range r.sys.losses() {
		n += of
	}
	return n
}

func (r *rig) awaitMemory() {
	r.t.Helper()
	r.await("memory", func() bool { return r.sys.store.Status().Open && r.sys.handler.KnowsUsers() })
}

func rigName(user int) string { return "person" + strconv.Itoa(user) }

// answer is the model's. It sees what memory was given: only what this person
// has said, and never an empty block.
func (r *rig) answer(in proxytest.Recorded) proxytest.Reply {
	question := in.Last("user")
	_, owner, _ := strings.Cut(question, "says ")
	owner, _, _ = strings.Cut(owner, ":")
	for _, m := range in.Messages {
		if !strings.Contains(m.Text, "<remora-memory") {
			continue
		}
		r.injected.Add(1)
		if !strings.Contains(m.Text, "\n- ") {
			r.t.Errorf("an empty block was inserted: %q", m.Text)
		}
		for user := range rigUsers {
			if name := rigName(user); name != owner && strings.Contains(m.Text, name+":") {
				r.t.Errorf("%s was given what %s said", owner, name)
			}
		}
	}
	return proxytest.Reply{Text: "Noted."}
}

// say makes one request of a user and fails the test if it fails.
func (r *rig) say(client *http.Client, user int) {
	n := r.serial.Add(1)
	text := fmt.Sprintf("says %s: the invoice number %d of the garden project is approved by department %d", rigName(user), n, n%7)
	body, _ := json.Marshal(map[string]any{"model": "fake-1", "messages": []any{demoMessage{"user", text}}})
	request, err := http.NewRequest(http.MethodPost, r.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return
	}
	request.Header.Set("X-Remora-User", rigName(user))
	failing, stalls, began := r.failing.Load(), r.stalls.Load(), time.Now()
	response, err := client.Do(request)
	if err != nil {
		if time.Sleep(2 * stallTick); r.stalls.Load() != stalls {
			r.t.Logf("the machine stood still during a request: %v", err)
			return
		}
		r.t.Errorf("request failed: %v", err)
		return
	}
	r.requests.Add(1)
	answer, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte("Noted.")) {
		r.t.Errorf("request failed: %d, %v", response.StatusCode, err)
	}
	r.mu.Lock()
	r.said[text] = true
	of := 0
	if failing {
		of = 1
	}
	r.took[of] = append(r.took[of], time.Since(began))
	r.mu.Unlock()
}

// traffic runs until the function that it returns is called.
func (r *rig) traffic() (stop func()) {
	client := &http.Client{Timeout: slowest, Transport: &http.Transport{MaxIdleConnsPerHost: rigUsers}}
	for user := range rigUsers { // so that every index is loaded, and there is something to recall
		before := r.injected.Load()
		r.await("something to recall", func() bool { r.say(client, user); return r.injected.Load() > before })
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for user := range rigUsers {
		all.Go(func() {
			for ctx.Err() == nil {
				r.say(client, user)
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); all.Wait(); client.CloseIdleConnections() })
	r.t.Cleanup(stop)
	return stop
}

// stored counts what is in the store, by text.
func (r *rig) stored() map[string]int {
	r.t.Helper()
	found := map[string]int{}
	for user := range rigUsers {
		scope := storage.Scope{Tenant: "name:demo", App: "default", Project: "default", User: rigName(user)}
		for q := (storage.Query{}); ; {
			var page storage.Page
			r.await("a scan", func() (ok bool) { // on a busy machine the store may be away for a moment
				var err error
				page, err = r.sys.store.Scan(r.t.Context(), scope, q)
				return err == nil
			})
			if page.Damaged > 0 {
				r.t.Errorf("%d damaged", page.Damaged)
			}
			for _, m := range page.Memories {
				if m.Provenance.Role == storage.RoleUser {
					found[m.Text]++
				}
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
	}
	return found
}

// nothingLost waits until all that was said is stored, and checks that it is,
// once.
func (r *rig) nothingLost() {
	r.t.Helper()
	r.awaitMemory()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*patience)
	defer cancel()
	// A turn that was dropped is counted; one that is neither stored nor counted
	// is lost, and waited for in vain.
	r.await("turns assembled or counted as lost", func() bool {
		return r.sys.pipeline.Stats().Enqueued+r.lost() >= uint64(r.requests.Load())
	})
	if n := r.lost(); n > 0 {
		r.t.Errorf("%d turns were dropped on the way\n%s", n, r.counters())
	}
	if err := r.sys.pipeline.Flush(ctx); err != nil {
		r.t.Errorf("Flush: %v", err)
	}
	if s := r.sys.pipeline.Stats(); len(s.Dropped) > 0 || s.Quarantined > 0 {
		r.t.Errorf("turns were dropped: %+v", s)
	}
	found := r.stored()
	r.mu.Lock()
	defer r.mu.Unlock()
	for text := range r.said {
		if found[text] != 1 {
			r.t.Errorf("stored %d times: %s", found[text], text)
		}
	}
	if r.injected.Load() == 0 {
		r.t.Error("nothing was ever recalled: the test shows nothing")
	}
	if aside := r.sys.store.Status().SetAside; len(aside) > 0 {
		r.t.Errorf("set aside: %v", aside)
	}
	for i, when := range []string{"while all was well", "while the store failed"} {
		if took := r.took[i]; len(took) > 0 {
			slices.Sort(took)
			r.t.Logf("%d requests %s: median %s, 99 %% %s, slowest %s", len(took), when,
				took[len(took)/2].Round(10*time.Microsecond), took[len(took)*99/100].Round(10*time.Microsecond), took[len(took)-1].Round(10*time.Microsecond))
		}
	}
}

func rigDir(t *testing.T) string { return filepath.Join(t.TempDir(), "remora") }
