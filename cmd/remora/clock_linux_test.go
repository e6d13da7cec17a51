package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// shiftedTime is a file of package time in which the seconds in the file that
// CLOCK_SHIFT names are added to the machine's clock. They are read without a
// call of the system, because the runtime asks for the time where it may make
// none.
const shiftedTime = `package time

import "syscall"

var shiftFrom []byte

func init() {
	path, _ := syscall.Getenv("CLOCK_SHIFT")
	if fd, err := syscall.Open(path, syscall.O_RDONLY, 0); err == nil {
		shiftFrom, _ = syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	}
}

func shift() (seconds int64) {
	for i, b := range shiftFrom {
		seconds |= int64(b) << (8 * i)
	}
	return seconds
}
`

// buildShifted builds a remora whose whole program has a clock that can be set,
// and whose reaper works every second.
func buildShifted(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	std := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	replaced := map[string]string{}
	overlay := func(path, text string) {
		name := filepath.Join(dir, strconv.Itoa(len(replaced))+".go")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[path] = name
	}
	edited := func(path, old, with string) {
		text, err := os.ReadFile(path)
		if err != nil || strings.Count(string(text), old) != 1 {
			t.Fatalf("%s: %q is there %d times, %v", path, old, strings.Count(string(text), old), err)
		}
		overlay(path, strings.Replace(string(text), old, with, 1))
	}
	edited(filepath.Join(std, "time.go"), "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n", "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tsec += shift()\n")
	overlay(filepath.Join(std, "shift.go"), shiftedTime)
	here, err := filepath.Abs("reap.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(here)
	if err != nil {
		t.Fatal(err)
	}
	overlay(here, strings.NewReplacer("= time.Hour\n", "= time.Second\n", "= time.Minute //", "= time.Second //").Replace(string(text)))
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "remora")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// shifted is a remora whose clock is set, and its upstream.
type shifted struct {
	t        *testing.T
	program  string
	dir      string
	url      string
	upstream string
	got      atomic.Pointer[string] // the newest body that the upstream got
	serve    *exec.Cmd
	log      *lockedBuffer
}

func (s *shifted) set(by time.Duration) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, "shift"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(by/time.Second)), 0); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shifted) start(zone string) {
	s.t.Helper()
	address, err := freeAddress()
	if err != nil {
		s.t.Fatal(err)
	}
	s.url, s.log = "http://"+address, &lockedBuffer{}
	s.serve = exec.CommandContext(s.t.Context(), s.program, "serve", "--listen", address, "--upstream", s.upstream, "--data", filepath.Join(s.dir, "data"))
	s.serve.Env = append(os.Environ(), "CLOCK_SHIFT="+filepath.Join(s.dir, "shift"), "REMORA_STORAGE_KEY_FILE="+filepath.Join(s.dir, "key"),
		"REMORA_IDENTITY_TENANT=tests", "REMORA_STORAGE_RESERVE_BYTES=0", "HOME="+s.dir, "TZ="+zone, "REMORA_RECALL_FIRST_DEADLINE=1m")
	s.serve.Stderr = s.log
	if err := s.serve.Start(); err != nil {
		s.t.Fatal(err)
	}
	if err := await(s.url+"/.remora/livez", patience); err != nil {
		s.t.Fatalf("%v\n%s", err, s.log.String())
	}
	began := time.Now()
	for s.ask("Hello there.") == "unavailable" { // the store opens meanwhile
		if time.Since(began) > patience {
			s.t.Fatalf("no store\n%s", s.log.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *shifted) stop() {
	s.t.Helper()
	if err := s.serve.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.serve.Wait(); err != nil {
		s.t.Errorf("serve: %v\n%s", err, s.log.String())
	}
}

// ask sends a question in a conversation of its own, and returns the status.
func (s *shifted) ask(text string) string {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"model": "fake-1", "messages": []any{demoMessage{"user", text}}})
	if err != nil {
		s.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("X-Remora-User", "ada")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.log.String())
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%d, %v", response.StatusCode, err)
	}
	return response.Header.Get("X-Remora-Status")
}

// TestWrongClocks runs Remora with a clock that is wrong by up to ten years in
// either direction, from its start or in the midst of it: requests are served,
// what is said is stored, and once the clock is right everything that was said
// while it was right is found.
func TestWrongClocks(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program with a clock that can be set: not with -short")
	}
	s := &shifted{t: t, program: buildShifted(t), dir: t.TempDir()}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := string(body)
		s.got.Store(&text)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"Noted."},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(model.Close)
	s.upstream = model.URL
	s.set(0)
	s.start("UTC")
	for i := range 10 {
		s.ask(fmt.Sprintf("The spare key %s lies in drawer %d.", item(i, i), i))
	}
	s.stop()
	found := func(when string) {
		t.Helper()
		for i := range 10 {
			s.ask(fmt.Sprintf("Where is the spare key %s?", item(i, i)))
			if got := *s.got.Load(); !strings.Contains(got, fmt.Sprintf("%s lies in drawer %d", item(i, i), i)) {
				t.Fatalf("%s: key %d is not found in %s\n%s", when, i, got, s.log.String())
			}
		}
	}
	year := 365 * day
	now := time.Now()
	spring := time.Date(now.Year()+1, 3, 28, 1, 59, 57, 0, time.UTC).Sub(now) // in Europe the clocks are set within seconds
	autumn := time.Date(now.Year()+1, 10, 31, 0, 59, 57, 0, time.UTC).Sub(now)
	overflow := time.Date(2038, 1, 19, 3, 14, 5, 0, time.UTC).Sub(now) // the seconds of 32 bits end
	for _, by := range []time.Duration{day, -day, 7 * day, -7 * day, 30 * day, -30 * day, year, -year, 10 * year, -10 * year, spring, autumn, overflow} {
		for _, from := range []string{"from the start", "in the midst"} {
			what := fmt.Sprintf("wrong by %s %s", by.Round(time.Second), from)
			if from == "from the start" {
				s.set(by)
			}
			s.start("Europe/Berlin")
			s.set(by)
			s.ask("The wind is from the west today.")
			time.Sleep(1500 * time.Millisecond) // the reaper works every second
			if from == "in the midst" {
				s.set(0)
				found(what)
			}
			s.stop()
			s.set(0)
		}
		s.start("UTC")
		found(fmt.Sprintf("after %s", by.Round(time.Second)))
		s.stop()
	}
}
