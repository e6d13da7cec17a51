package main

import (
	"bufio"
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

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/process"
	"github.com/remora-proxy/remora/storage/storagetest"
)

const (
	smallMachine = 128 << 20 // bytes, both processes and the page cache that they use
	smallPart    = 120 << 20 // of it, what is not of files, at most
	millionChats = 16        // users who talk at a time
	// millionLag is how many of a user's turns may be on their way to the
	// store, and millionCheck how often that is looked at: people wait for one
	// another's answers, this test would not. Together the users stay below
	// what the queue of a container takes, 2 MiB or some 2,600 turns, while the
	// store stands still.
	millionLag   = 64
	millionCheck = 50
	// standstill is how long a machine may be stopped.
	standstill = time.Hour
)

// TestMillionTurns has REMORA_TURNS turns (3,000 if it is not set) go through a
// Remora whose two processes are in one control group of 128 MiB, page cache
// included, as a container's are, with nothing set for it. Users come and go, a
// thousand turns each, and now and then one of before is back. None of it may
// be lost without being counted, no process may end, and what was said must be
// found at the end.
func TestMillionTurns(t *testing.T) {
	turns := 3000
	if n, err := strconv.Atoi(os.Getenv("REMORA_TURNS")); err == nil {
		turns = n
	} else if testing.Short() {
		turns = 300
	}
	m, serve, child := newMillion(t, "container", turns)
	ctx, stop := context.WithCancel(t.Context())
	var watching, talking sync.WaitGroup
	watching.Go(func() { m.watch(ctx, serve.Process.Pid, child) })
	began := time.Now()
	for range millionChats {
		talking.Go(m.talk)
	}
	talking.Wait()
	if m.over.Load() {
		stop()
		watching.Wait()
		t.Fatalf("the store's process ended after %d turns; MiB at most: %d not of files in both, proxy %d resident, store %d resident; %d killed by the kernel; %s",
			m.said.Load(), m.anon>>20, m.proxy>>20, m.store>>20, m.group.Kills(), m.group)
	}
	took := time.Since(began)
	m.stored()
	m.searchable()
	stop()
	watching.Wait()

	if now := childOf(serve.Process.Pid); now != child {
		t.Errorf("the store's process was %d and is %d", child, now)
	}
	if n := m.group.Kills(); n != 0 {
		t.Errorf("the kernel killed %d processes for memory", n)
	}
	if m.anon > m.part {
		t.Errorf("%d MiB not of files, want at most %d", m.anon>>20, m.part>>20)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-m.read // Wait closes what is not read yet
	if err := serve.Wait(); err != nil {
		t.Errorf("serve: %v", err)
	}
	m.account()
	t.Logf("%d turns of %d users in %s (%.0f a second), %d requests failed; MiB at most: %d not of files in both, proxy %d resident, store %d resident; %s",
		turns, m.users(), took.Round(time.Second), float64(turns)/took.Seconds(), m.failed.Load(), m.anon>>20, m.proxy>>20, m.store>>20, m.group)
}

// million is the traffic of TestMillionTurns.
type million struct {
	t       *testing.T
	dir     string
	url     string
	turns   int
	files   int   // that the proxy may open; 0 = as many as this process
	part    int64 // bytes, what is not of files, at most
	group   *storagetest.Group
	remote  *process.Remote
	next    atomic.Int64 // user
	said    atomic.Int64
	failed  atomic.Int64
	found   atomic.Int64
	asked   int
	ended   lockedBuffer  // the proxy's last line
	read    chan struct{} // closed when all that it wrote is read
	anon    int64         // bytes, the most that was seen
	proxy   int64
	store   int64
	returns atomic.Int64
	over    atomic.Bool // a process has ended
}

const turnsPerUser = 1000

// inSmallMachine returns a Remora that is not started yet, in a control group of
// that name with a small machine's memory.
func inSmallMachine(t *testing.T, group string) *million {
	t.Helper()
	m := &million{t: t, dir: rigDir(t), part: smallPart}
	limit := int64(smallMachine)
	if storagetest.Raced() {
		limit, m.part = 8*limit, 8*m.part
	}
	m.group = storagetest.NewGroup(t, group, limit)
	return m
}

// newMillion starts a Remora in a group of that name with a small machine's
// memory. child is its store's process.
func newMillion(t *testing.T, group string, turns int, env ...string) (m *million, serve *exec.Cmd, child int) {
	t.Helper()
	m = inSmallMachine(t, group)
	m.turns = turns
	model := httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(model.Close)
	serve = m.launch(model.URL, env...)
	m.remote = dialServe(t, m.dir)
	t.Cleanup(func() { _ = m.remote.Close() })
	if child = childOf(serve.Process.Pid); child == 0 { // it listens, so it is there
		t.Fatal("the store's process is not found")
	}
	return m, serve, child
}

func (m *million) users() int { return (m.turns + turnsPerUser - 1) / turnsPerUser }

// launch starts Remora in the group.
func (m *million) launch(upstream string, env ...string) *exec.Cmd {
	m.t.Helper()
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	address, err := freeAddress()
	if err != nil {
		m.t.Fatal(err)
	}
	m.url = "http://" + address
	link := filepath.Join(m.t.TempDir(), "remora") // by this name the binary is remora
	if err := os.Symlink(self, link); err != nil {
		m.t.Fatal(err)
	}
	line := []string{"sh", "-c", `[ "$0" -eq 0 ] || ulimit -n "$0"; exec "$@"`, strconv.Itoa(m.files), link, "serve", "--listen", address, "--upstream", upstream, "--data", m.dir}
	serve := m.group.Command(line...)
	serve.Env = append([]string{
		"REMORA_IDENTITY_TENANT=tests", "REMORA_STORAGE_KEY_FILE=" + m.dir + ".key", "REMORA_STORAGE_RESERVE_BYTES=0",
		"REMORA_PERSIST_TURNS_PER_SECOND=0", "REMORA_LOG_FORMAT=json", "HOME=" + filepath.Dir(m.dir),
	}, append(os.Environ(), env...)...)
	pipe, err := serve.StderrPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = serve.Process.Kill() })
	m.read = make(chan struct{})
	go func() {
		defer close(m.read)
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			switch line := lines.Bytes(); {
			case !bytes.HasPrefix(line, []byte("{")):
				fmt.Fprintln(m.t.Output(), string(line))
			case bytes.Contains(line, []byte(`"msg":"stopped"`)):
				_, _ = m.ended.Write(line)
			case bytes.Contains(line, []byte(`"level":"ERROR"`)), bytes.Contains(line, []byte(`"level":"WARN"`)):
				fmt.Fprintln(m.t.Output(), string(line))
			}
		}
	}()
	if err := await(m.url+"/.remora/livez", patience); err != nil {
		m.t.Fatal(err)
	}
	return serve
}

// answer is the model's. It says whether it was given what it is asked for.
func (m *million) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	asked := []byte("Where does item ")
	if at := bytes.LastIndex(body, asked); at >= 0 { // the last: what was asked before is recalled, too
		item, _, _ := bytes.Cut(body[at+len(asked):], []byte(" "))
		if bytes.Contains(body, fmt.Appendf(nil, "Item %s lies on shelf", item)) {
			m.found.Add(1)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"id":"a","object":"chat.completion","model":"fake-1","choices":[{"index":0,"message":{"role":"assistant","content":"Noted."},"finish_reason":"stop"}]}`))
}

func (m *million) ask(client *http.Client, user int, text string) error {
	body, err := json.Marshal(map[string]any{"model": "fake-1", "messages": []any{demoMessage{"user", text}}})
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, m.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-Remora-User", "u"+strconv.Itoa(user))
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%d, %w", response.StatusCode, err)
	}
	return nil
}

// item is the name of the thing that the nth turn of a user tells of.
func item(user, n int) string { return fmt.Sprintf("zk%dq%d", user, n) }

// talk is one user after the other.
func (m *million) talk() {
	client := &http.Client{Timeout: standstill, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for {
		user := int(m.next.Add(1)) - 1
		if user >= m.users() {
			return
		}
		for n := range min(turnsPerUser, m.turns-user*turnsPerUser) {
			if m.over.Load() {
				return
			}
			text := fmt.Sprintf("Item %s lies on shelf %d.", item(user, n), n%97)
			if n%50 == 17 {
				text = fmt.Sprintf("I have %d cats. Item %s lies on shelf %d.", n%89, item(user, n), n%97)
			}
			if err := m.ask(client, user, text); err != nil {
				m.failed.Add(1)
				m.t.Errorf("user %d: %v", user, err)
			}
			m.said.Add(1)
			if n%millionCheck == millionCheck-1 {
				m.keepPace(user, n+1)
			}
			if n%100 == 99 && user > 0 { // somebody is back
				back := rand.IntN(user)
				m.returns.Add(1)
				if err := m.ask(client, back, fmt.Sprintf("What about number %s-%d?", item(user, n), back)); err != nil {
					m.failed.Add(1)
				}
			}
		}
	}
}

// keepPace waits while the store is more than millionLag turns of a user
// behind.
func (m *million) keepPace(user, n int) {
	for try := 0; ; time.Sleep(5 * time.Millisecond) { // tries and not time, of which a machine that stands still has none
		try++
		d, err := m.remote.Digest(m.t.Context(), m.scope(user))
		if err == nil && d.Memories/2 > n-millionLag {
			return
		}
		if m.over.Load() {
			return
		}
		if try > 20_000 {
			m.t.Errorf("user %d: %d memories of %d turns are stored, %v", user, d.Memories, n, err)
			return
		}
	}
}

func (m *million) scope(user int) storage.Scope {
	return storage.Scope{Tenant: "name:tests", App: "default", Project: "default", User: "u" + strconv.Itoa(user)}
}

// stored waits until the last turns are in the store, and counts those of some
// users.
func (m *million) stored() {
	m.t.Helper()
	for i := range min(64, m.users()) {
		user := i * m.users() / min(64, m.users())
		want := min(turnsPerUser, m.turns-user*turnsPerUser)
		got := 0
		for began := time.Now(); got < want && time.Since(began) < patience; time.Sleep(20 * time.Millisecond) {
			got = m.count(user)
		}
		if got != want {
			m.t.Errorf("user %d: %d of %d turns are stored", user, got, want)
		}
	}
}

func (m *million) count(user int) (n int) {
	for q := (storage.Query{}); ; {
		page, err := m.remote.Scan(m.t.Context(), m.scope(user), q)
		if err != nil || page.Damaged > 0 {
			m.t.Fatalf("%d damaged, %v", page.Damaged, err)
		}
		for _, e := range page.Memories {
			if e.Kind == storage.KindEpisode && e.Provenance.Role == storage.RoleUser && strings.Contains(e.Text, " lies on shelf ") {
				n++
			}
		}
		if q.After = page.Next; q.After == "" {
			return n
		}
	}
}

// searchable asks users of all times for what they said at some time. The first
// request of a user may go out before the index is loaded.
func (m *million) searchable() {
	m.t.Helper()
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	for range 200 {
		user := rand.IntN(m.users())
		n := rand.IntN(min(turnsPerUser, m.turns-user*turnsPerUser))
		m.asked++
		before := m.found.Load()
		for began, try := time.Now(), 0; m.found.Load() == before; try++ {
			// The same words again would be a retry, which is given what the
			// first was, perhaps nothing, because time ran out.
			if err := m.ask(client, user, fmt.Sprintf("Where does item %s lie? Try %d.", item(user, n), try)); err != nil {
				m.t.Error(err)
			}
			if time.Since(began) > patience {
				m.t.Errorf("user %d: item %s is not found", user, item(user, n))
				break
			}
		}
	}
}

// told is what the proxy says at its end.
type told struct {
	Proxy struct {
		Exchanges, Assembled, Lost, Undecoded, Panics int64
		NotCopied                                     int64 `json:"not_copied"`
	}
	Persist struct {
		Enqueued, Persisted, Indexed, Duplicates, Memories, Quarantined, Retries, Damaged, Left int64
		Dropped                                                                                 map[string]int64
	}
}

func (t told) dropped() (n int64) {
	for _, why := range t.Persist.Dropped {
		n += why
	}
	return n
}

func (m *million) farewell() (t told) {
	m.t.Helper()
	text := m.ended.String()
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		m.t.Errorf("last line: %v: %s", err, text)
	}
	m.t.Logf("%d requests; the proxy says %+v", m.said.Load()+m.returns.Load(), t)
	return t
}

// account holds what the proxy says at its end against what was asked of it.
func (m *million) account() {
	m.t.Helper()
	told := m.farewell()
	p := told.Proxy
	if p.Lost+p.NotCopied+p.Undecoded+p.Panics > 0 || p.Assembled < m.said.Load() {
		m.t.Errorf("turns were not assembled: %+v", p)
	}
	if s := told.Persist; p.Assembled > s.Persisted+told.dropped() || s.Persisted > s.Indexed+s.Duplicates+s.Left || s.Quarantined+s.Damaged > 0 {
		m.t.Errorf("turns are gone that nothing counts: %+v", told)
	}
}

// watch notes the most memory that was seen, until ctx ends.
func (m *million) watch(ctx context.Context, proxy, store int) {
	began, last := time.Now(), time.Now()
	for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		anon := m.group.Anonymous()
		m.anon, m.proxy, m.store = max(m.anon, anon), max(m.proxy, storagetest.Resident(proxy)), max(m.store, storagetest.Resident(store))
		if storagetest.Resident(store) == 0 {
			m.over.Store(true)
		}
		if time.Since(last) > 30*time.Second {
			last = time.Now()
			m.t.Logf("%s: %d turns; MiB: %d not of files in both, proxy %d, store %d", time.Since(began).Round(time.Second), m.said.Load(), anon>>20, storagetest.Resident(proxy)>>20, storagetest.Resident(store)>>20)
		}
	}
}
