//go:build unix

package main

import (
	"bytes"
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
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/process"
)

// TestKilledPrograms kills the store's process, the proxy's, or both, over and over. What was seen in the store once is
// there at the end, once, and no process outlives its parent.
func TestKilledPrograms(t *testing.T) {
	t.Parallel()
	if !process.Supported {
		t.Skip("the store has no process of its own here")
	}
	model := httptest.NewServer(&proxytest.LLM{Answer: func(proxytest.Recorded) proxytest.Reply { return proxytest.Reply{Text: "Noted."} }})
	defer model.Close()
	dir := rigDir(t)
	scope := storage.Scope{Tenant: "name:tests", App: "default", Project: "default", User: "u"}
	acknowledged := map[string]bool{}
	seen := func(r *process.Remote) map[string]int {
		found := map[string]int{}
		for q := (storage.Query{}); ; {
			page, err := r.Scan(t.Context(), scope, q)
			if err != nil {
				return found // killed in between
			}
			for _, m := range page.Memories {
				if m.Provenance.Role == storage.RoleUser {
					found[m.Text]++
				}
			}
			if q.After = page.Next; q.After == "" {
				return found
			}
		}
	}
	serial, failed := 0, 0
	rounds := storeRounds(6, 60)
	for round := range rounds {
		serve, address := startServe(t, dir, model.URL)
		what := round % 3
		remote := dialServe(t, dir)
		for range 3 + rand.IntN(8) {
			serial++
			if err := tell(address, fmt.Sprintf("The invoice number %d is approved by department %d.", serial, serial%9)); err != nil {
				failed++
			}
		}
		for range 1 + rand.IntN(30) {
			for text := range seen(remote) {
				acknowledged[text] = true
			}
		}
		child := childOf(t, serve.Process.Pid)
		if what != 1 {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
		if what == 0 { // the proxy goes on, and finds another one
			_ = remote.Close()
			remote = dialServe(t, dir)
			for text := range seen(remote) {
				acknowledged[text] = true
			}
			child = childOf(t, serve.Process.Pid)
		}
		_ = serve.Process.Kill()
		_ = serve.Wait()
		_ = remote.Close()
		await := time.Now()
		for syscall.Kill(child, 0) == nil {
			if time.Since(await) > patience {
				t.Fatalf("the store's process %d outlives its parent", child)
			}
			time.Sleep(time.Millisecond)
		}
	}
	if failed > 0 {
		t.Errorf("%d requests failed", failed)
	}
	serve, _ := startServe(t, dir, model.URL)
	remote := dialServe(t, dir)
	var found map[string]int
	for start := time.Now(); time.Since(start) < patience; time.Sleep(50 * time.Millisecond) { // the spool's rest is stored first
		page, err := remote.AllRecords(t.Context(), storage.BucketSpool, "", 1)
		if found = seen(remote); err == nil && len(page.Records) == 0 {
			break
		}
	}
	for text := range acknowledged {
		if found[text] != 1 {
			t.Errorf("stored %d times: %s", found[text], text)
		}
	}
	for text, n := range found {
		if n != 1 {
			t.Errorf("stored %d times: %s", n, text)
		}
	}
	t.Logf("%d rounds, %d requests, %d acknowledged before a kill, %d stored", rounds, serial, len(acknowledged), len(found))
	_ = remote.Close()
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("serve: %v", err)
	}
}

// startServe runs this binary as remora, on a port of its own choice, and waits until it is alive.
func startServe(t *testing.T, dir, upstream string) (serve *exec.Cmd, address string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	serve = &exec.Cmd{Path: self, Args: []string{"remora", "serve", "--listen", "127.0.0.1:0", "--upstream", upstream, "--data", dir}}
	serve.Env = append(os.Environ(), "REMORA_IDENTITY_TENANT=tests", "REMORA_IDENTITY_ANONYMOUS=keyHolder",
		"REMORA_STORAGE_KEY_FILE="+dir+".key", "REMORA_STORAGE_RESERVE_BYTES=0", "REMORA_LOG_LEVEL=info", "REMORA_LOG_FORMAT=json",
		"HOME="+filepath.Dir(dir))
	said := &startLog{out: t.Output(), url: make(chan string, 1)}
	serve.Stderr = said
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serve.Process.Kill() })
	select {
	case address = <-said.url:
	case <-time.After(patience):
		t.Fatal("it does not say where it listens")
	}
	if err := await("http://" + address + "/.remora/livez"); err != nil {
		t.Fatal(err)
	}
	return serve, address
}

// startLog reads the log of a program for the address that it listens on, and shows what is worse than information. It is
// written to by one goroutine.
type startLog struct {
	out  io.Writer
	url  chan string
	line []byte
}

func (l *startLog) Write(p []byte) (int, error) {
	l.line = append(l.line, p...)
	for {
		line, rest, whole := bytes.Cut(l.line, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.line = rest
		var said struct{ Level, Msg, URL string }
		if json.Unmarshal(line, &said) == nil && said.Level == "INFO" {
			if said.Msg == "remora is listening" {
				l.url <- strings.TrimPrefix(said.URL, "http://")
			}
			continue
		}
		_, _ = fmt.Fprintf(l.out, "%s\n", line)
	}
}

func dialServe(t *testing.T, dir string) *process.Remote {
	t.Helper()
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		r, err := process.Dial(dir, readBuild().String())
		if err == nil {
			return r
		}
		if time.Since(start) > patience {
			t.Fatal(err)
		}
	}
}

// childOf is the process that another one has started.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	for start := time.Now(); time.Since(start) < patience; time.Sleep(time.Millisecond) {
		out, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
		if child, err := strconv.Atoi(string(bytes.TrimSpace(out))); err == nil {
			return child
		}
	}
	t.Fatalf("%d has no child", pid)
	return 0
}

// tell says something as user u.
func tell(address, text string) error {
	body, err := json.Marshal(map[string]any{"model": "fake-1", "messages": []any{demoMessage{"user", text}}})
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, "http://"+address+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-Remora-User", "u")
	response, err := (&http.Client{Timeout: slowest}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%d, %w", response.StatusCode, err)
	}
	return nil
}
