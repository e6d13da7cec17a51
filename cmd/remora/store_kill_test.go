//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/process"
)

// killsPerStore is after how many kills a store is looked through and a new one
// begun.
const killsPerStore = 50

// TestKilledPrograms kills the store's process, the proxy's, or both, at any
// moment, over and over: KILL_LOOPS times if that is set. What the spool had
// once is in the store at the end, once, no request fails before its proxy is
// killed, and no process outlives its parent.
func TestKilledPrograms(t *testing.T) {
	t.Parallel()
	if !process.Supported {
		t.Skip("the store has no process of its own here")
	}
	rounds := storeRounds(6, 60)
	if n, err := strconv.Atoi(os.Getenv("KILL_LOOPS")); err == nil {
		rounds = n
	}
	model := httptest.NewServer(&proxytest.LLM{Answer: func(proxytest.Recorded) proxytest.Reply { return proxytest.Reply{Text: "Noted."} }})
	defer model.Close()
	var all killedPrograms
	for first := 0; first < rounds; first += killsPerStore {
		address, err := freeAddress()
		if err != nil {
			t.Fatal(err)
		}
		k := killedPrograms{t: t, dir: rigDir(t), address: address, upstream: model.URL, acknowledged: map[string]bool{}}
		for round := first; round < min(rounds, first+killsPerStore); round++ {
			k.run(round)
		}
		k.nothingLost()
		all.requests.Add(k.requests.Load())
		all.early += k.early
		all.turns += len(k.acknowledged)
		all.stored += k.stored
	}
	t.Logf("%d rounds, %d of them ended before the proxy answered, %d requests, %d turns acknowledged before a kill, %d stored",
		rounds, all.early, all.requests.Load(), all.turns, all.stored)
}

// killedPrograms is what is known of a store whose processes are killed over
// and over.
type killedPrograms struct {
	t                      *testing.T
	dir, address, upstream string

	log              lockedBuffer // of all processes
	serial, requests atomic.Int64
	early            int // rounds that ended before the proxy answered
	turns, stored    int

	mu           sync.Mutex
	acknowledged map[string]bool // turns, by id
}

// run is one life of a proxy. Its store's process may have several.
func (k *killedPrograms) run(round int) {
	k.t.Helper()
	ctx, stop := context.WithCancel(k.t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	var dying atomic.Bool // the proxy
	serve := k.launch()
	all.Go(func() { k.watch(ctx) })
	if round%4 == 3 {
		time.Sleep(rand.N(120 * time.Millisecond))
		if await("http://"+k.address+"/.remora/livez", 0) != nil {
			k.early++
		}
	} else {
		if err := await("http://"+k.address+"/.remora/livez", patience); err != nil {
			k.t.Fatal(err)
		}
		for user := range 3 {
			all.Go(func() {
				for ctx.Err() == nil && !dying.Load() {
					if err := k.tell(user); err != nil && !dying.Load() {
						k.t.Errorf("round %d: a request failed: %v", round, err)
					}
					time.Sleep(rand.N(4 * time.Millisecond))
				}
			})
		}
		time.Sleep(rand.N(400 * time.Millisecond))
	}
	child := childOf(serve.Process.Pid)
	switch what := round % 3; {
	case what == 0 && child > 0: // the proxy goes on, and starts another one
		_ = syscall.Kill(child, syscall.SIGKILL)
		time.Sleep(rand.N(400 * time.Millisecond))
		child = childOf(serve.Process.Pid)
	case what == 2 && child > 0: // both
		dying.Store(true)
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	dying.Store(true)
	_ = serve.Process.Kill()
	_ = serve.Wait()
	for began := time.Now(); child > 0 && !ended(child); time.Sleep(time.Millisecond) {
		if time.Since(began) > patience {
			k.t.Fatalf("the store's process %d outlives its parent", child)
		}
	}
}

// watch notes which turns the spool has, until ctx ends.
func (k *killedPrograms) watch(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		remote, err := process.Dial(k.dir, process.StoreSocket, readBuild().String())
		if err != nil {
			continue
		}
		for err == nil {
			var page storage.RecordPage
			if page, err = remote.AllRecords(ctx, storage.BucketSpool, "", 1000); err != nil {
				break
			}
			k.mu.Lock()
			for _, r := range page.Records {
				if id, ok := turnOfSpool(r.Key); ok {
					k.acknowledged[id] = true
				}
			}
			k.mu.Unlock()
			time.Sleep(2 * time.Millisecond)
		}
		_ = remote.Close()
	}
}

// turnOfSpool is the turn's id in a key of the spool: behind a number, where
// others' keys have a word.
func turnOfSpool(key string) (string, bool) {
	number, id, _ := strings.Cut(key, "-")
	_, err := strconv.ParseUint(number, 16, 64)
	return id, err == nil && len(number) == 16
}

func (k *killedPrograms) scope(user int) storage.Scope {
	return storage.Scope{Tenant: "name:tests", App: "default", Project: "default", User: "u" + strconv.Itoa(user)}
}

// nothingLost lets the last start store what the spool has, and looks for every
// turn.
func (k *killedPrograms) nothingLost() {
	k.t.Helper()
	serve := k.launch()
	if err := await("http://"+k.address+"/.remora/livez", patience); err != nil {
		k.t.Fatal(err)
	}
	remote := dialServe(k.t, k.dir)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		left := 0
		page, err := remote.AllRecords(k.t.Context(), storage.BucketSpool, "", 1000)
		for _, r := range page.Records {
			if _, ok := turnOfSpool(r.Key); ok {
				left++
			}
		}
		if err == nil && left == 0 {
			break
		}
		if time.Since(began) > patience {
			k.t.Fatalf("%d turns are left in the spool, %v", left, err)
		}
	}
	for _, text := range []string{"set aside", "damaged", "is lost"} {
		if log := k.log.String(); strings.Contains(log, text) {
			k.t.Fatalf("a store was taken for damaged: %s", log[max(0, strings.Index(log, text)-8000):])
		}
	}
	turns, texts := map[string]int{}, map[string]int{}
	for user := range 3 {
		for q := (storage.Query{}); ; {
			page, err := remote.Scan(k.t.Context(), k.scope(user), q)
			if err != nil || page.Damaged > 0 {
				k.t.Fatalf("%d damaged, %v", page.Damaged, err)
			}
			for _, m := range page.Memories {
				if m.Provenance.Role == storage.RoleUser {
					texts[m.Text]++
				}
				if m.Provenance.Role == storage.RoleUser && m.Kind == storage.KindEpisode {
					turns[m.Provenance.Turn]++
				}
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
	}
	for id := range k.acknowledged {
		if turns[id] != 1 {
			k.t.Errorf("turn %s is stored %d times", id, turns[id])
		}
	}
	for text, n := range texts {
		if n != 1 {
			k.t.Errorf("stored %d times: %s", n, text)
		}
	}
	k.stored = len(turns)
	_ = remote.Close()
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		k.t.Fatal(err)
	}
	if err := serve.Wait(); err != nil {
		k.t.Errorf("serve: %v", err)
	}
}

// launch runs this binary as remora. Audits go on all the time.
func (k *killedPrograms) launch() *exec.Cmd {
	k.t.Helper()
	self, err := os.Executable()
	if err != nil {
		k.t.Fatal(err)
	}
	serve := &exec.Cmd{Path: self, Args: []string{"remora", "serve", "--listen", k.address, "--upstream", k.upstream, "--data", k.dir}}
	serve.Env = append(os.Environ(), "REMORA_IDENTITY_TENANT=tests", "REMORA_IDENTITY_ANONYMOUS=keyHolder",
		"REMORA_STORAGE_KEY_FILE="+k.dir+".key", "REMORA_STORAGE_RESERVE_BYTES=0", "REMORA_LOG_LEVEL=warn", "HOME="+filepath.Dir(k.dir),
		"REMORA_PERSIST_TURNS_PER_SECOND=0", "REMORA_PERSIST_AUDIT_INTERVAL=20ms", "REMORA_PERSIST_AUDIT_DEBOUNCE=5ms")
	serve.Stderr = &k.log
	if err := serve.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = serve.Process.Kill() })
	return serve
}

func dialServe(t *testing.T, dir string) *process.Remote {
	t.Helper()
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		r, err := process.Dial(dir, process.StoreSocket, readBuild().String())
		if err == nil {
			return r
		}
		if time.Since(start) > patience {
			t.Fatal(err)
		}
	}
}

// childOf is the process that another one has started, 0 if there is none.
func childOf(pid int) int {
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	child, _ := strconv.Atoi(string(bytes.TrimSpace(out)))
	return child
}

// ended says whether a process is gone. The process that inherits an orphan may take its
// time to bury it.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		return bytes.HasPrefix(rest, []byte("Z"))
	}
	return syscall.Kill(pid, 0) != nil
}

// tell says something new as a user.
func (k *killedPrograms) tell(user int) error {
	n := k.serial.Add(1)
	text := fmt.Sprintf("The invoice number %d is approved by department %d.", n, n%9)
	if n%8 == 0 {
		text = fmt.Sprintf("I have %d cats and my locker has the number %d.", n%89, n)
	}
	body, err := json.Marshal(map[string]any{"model": "fake-1", "messages": []any{demoMessage{"user", text}}})
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, "http://"+k.address+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-Remora-User", "u"+strconv.Itoa(user))
	k.requests.Add(1)
	response, err := (&http.Client{Timeout: 10 * time.Minute}).Do(request) // a machine may be suspended
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%d, %w", response.StatusCode, err)
	}
	return nil
}
