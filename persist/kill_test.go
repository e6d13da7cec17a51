package persist

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
)

// killDir is set for the child of these tests.
const killDir = "REMORA_PERSIST_KILL_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		work := func() error { return persistUntilKilled(dir, os.Getenv(killDir+"_ROUND")) }
		if turns, err := strconv.Atoi(os.Getenv(killDir + "_TURNS")); err == nil {
			work = func() error { return persistMany(dir, turns) }
		}
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// acknowledging prints which turns a returned spool commit made durable.
type acknowledging struct {
	storage.Local
	mu  sync.Mutex
	out *os.File
}

func (a *acknowledging) PutRecords(ctx context.Context, records []storage.Record) error {
	if err := a.Local.PutRecords(ctx, records); err != nil {
		return err
	}
	var lines strings.Builder
	for _, r := range records {
		if r.Bucket != storage.BucketSpool || strings.HasPrefix(r.Key, markPrefix) {
			continue // an audit's
		}
		_, id, _ := strings.Cut(r.Key, "-")
		lines.WriteString(id + "\n")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.out.WriteString(lines.String())
	return err
}

const killUsers = 4

// killTurn returns the turn of an id, the same in parent and child. Some state
// what an audit keeps, some have many passages, so that the store has tables to
// write and merge.
func killTurn(id string) Turn {
	_, number, _ := strings.Cut(id, ".")
	n, _ := strconv.Atoi(number)
	question, answer := "question "+id, "answer "+id
	switch {
	case n%5 == 0:
		question = fmt.Sprintf("I have %d cats and %d dogs, and my desk number is %s.", n%89, n%97, id)
	case n%11 == 0:
		question = "Remember that my locker has the number " + id + "."
	case n%13 == 0:
		for i := range 150 {
			answer += fmt.Sprintf(" Then comes number %d of %s.", i, id)
		}
	}
	return turnOf(userScope(n%killUsers), id, question, answer)
}

// persistUntilKilled hands in turns without end, and sometimes an earlier one
// again, as clients do. Audits run meanwhile.
func persistUntilKilled(dir, round string) error {
	store, err := openStore(dir, nil)
	if err != nil {
		return err
	}
	red, err := redact.New(redact.DefaultConfig())
	if err != nil {
		return err
	}
	cfg := DefaultConfig()
	cfg.TurnsPerSecond = 0
	cfg.Audit.Interval, cfg.Audit.Debounce = 20*time.Millisecond, 5*time.Millisecond
	p := New(cfg, store, &acknowledging{Local: store, out: os.Stdout}, nil, red, nil, nil)
	p.tuning.batchInterval = 10 * time.Millisecond
	go p.Run(context.Background())
	fmt.Println("ready")
	for i := 0; ; i++ {
		n := i
		if i%7 == 6 {
			n = rand.IntN(i)
		}
		_ = p.Enqueue(killTurn(fmt.Sprintf("r%s.%d", round, n))) // refused ones are not acknowledged
		if i%16 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

const millionUsers = 64

// millionTurn is short, like most of what people say, and sometimes has
// something for an audit.
func millionTurn(n int) Turn {
	text := fmt.Sprintf("Item zk%d lies on shelf %d.", n, n%97)
	if n%50 == 17 {
		text = fmt.Sprintf("I have %d cats. %s", n%89, text)
	}
	t := turnOf(userScope(n%millionUsers), fmt.Sprint("t", n), text, "Noted.")
	t.Conversation = fmt.Sprint("c", n/millionUsers/20)
	return t
}

// persistMany hands in turns as fast as they are accepted, and prints the
// result. Its limits are those of a container of 128 MiB.
func persistMany(dir string, turns int) error {
	own := badger.Config{MemoryBytes: 48 << 20}
	store, err := openStoreWithin(dir, nil, own.MemoryBytes)
	if err != nil {
		return err
	}
	red, err := redact.New(redact.DefaultConfig())
	if err != nil {
		return err
	}
	cfg := DefaultConfig()
	cfg.TurnsPerSecond, cfg.QueueTurns = 0, 2000 // it is full all the time
	cfg.QueueBytes, cfg.Audit.MaxBytes, cfg.Facts.CacheBytes, cfg.MaxWrite = 2<<20, 1<<20, 2<<20, own.MaxWrite()
	p := New(cfg, store, store, nil, red, nil, nil)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	refused := 0
	for n := range turns {
		for p.Enqueue(millionTurn(n)) != nil {
			refused++
			time.Sleep(2 * time.Millisecond)
		}
		if n%50_000 == 49_999 {
			fmt.Fprintln(os.Stderr, n+1)
		}
	}
	err = p.Flush(ctx)
	s := p.Stats()
	dropped := uint64(0)
	for _, n := range s.Dropped {
		dropped += n
	}
	b, _ := json.Marshal(map[string]uint64{"indexed": s.Indexed, "dropped": dropped, "refused": uint64(refused), "quarantined": s.Quarantined})
	fmt.Println(string(b))
	stop()
	return errors.Join(err, <-ended, store.Close())
}

// killRounds returns how often a test of this file kills: KILL_LOOPS, or the
// given default.
func killRounds(few, scripted int) int {
	if n, err := strconv.Atoi(os.Getenv("KILL_LOOPS")); err == nil {
		return n
	}
	switch {
	case testing.Short():
		return 2
	case os.Getenv("CI") == "true":
		return scripted
	}
	return few
}

// killsPerStore is the number of kills after which a store is checked and a new
// one begun, so that some kills hit its creation.
const killsPerStore = 50

// TestKilledProcessLosesNothing kills at any moment: while the store is created
// or opened, while tables are written and merged, while turns are stored and
// audited.
func TestKilledProcessLosesNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no kill -9 on Windows")
	}
	var all killReport
	rounds := killRounds(10, 50)
	for first := 0; first < rounds; first += killsPerStore {
		dir := t.TempDir()
		var k killReport
		for round := first; round < min(rounds, first+killsPerStore); round++ {
			k.run(t, dir, round, func(child *exec.Cmd) { _ = child.Process.Kill() })
		}
		k.nothingLost(t, dir)
		all.add(&k)
	}
	all.report(t, rounds, "kills")
}

// killReport counts what is known of a store whose process is killed
// repeatedly.
type killReport struct {
	acknowledged map[string]bool
	opening      int // kills before the pipeline ran
	turns        int
	passages     int
	facts        int
	recovered    uint64
	tables       int
}

func (k *killReport) add(other *killReport) {
	k.opening += other.opening
	k.turns += len(other.acknowledged)
	k.passages += other.passages
	k.facts += other.facts
	k.recovered += other.recovered
	k.tables += other.tables
}

func (k *killReport) report(t *testing.T, rounds int, what string) {
	t.Helper()
	if k.turns < rounds || rounds > 40 && (k.opening == 0 || k.facts == 0 || k.tables == 0) {
		t.Errorf("too few kills to show anything: %+v", *k)
	}
	t.Logf("%d %s, %d of them while opening; %d turns acknowledged, %d passages and %d facts stored, tables up to number %d, %d turns recovered at the last starts",
		rounds, what, k.opening, k.turns, k.passages, k.facts, k.tables, k.recovered)
}

// run runs a child for a random time, part of which it spends opening, and
// records which turns it acknowledged.
func (k *killReport) run(t *testing.T, dir string, round int, kill func(*exec.Cmd)) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), killDir+"="+dir, killDir+"_ROUND="+strconv.Itoa(round))
	var problem bytes.Buffer
	child.Stderr = &problem
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	strike := func() { defer close(done); kill(child) }
	opening := round%3 == 2 // time counts from the start then, and not from when it works
	timer := time.AfterFunc(time.Hour, strike)
	if opening {
		timer.Reset(rand.N(300 * time.Millisecond))
	}
	lines := bufio.NewReader(out)
	line := func() (string, bool) { // what a kill cut short is none
		text, err := lines.ReadString('\n')
		return strings.TrimSuffix(text, "\n"), err == nil
	}
	first, _ := line()
	ready := first == "ready"
	if ready && !opening {
		timer.Reset(rand.N(max(300*time.Millisecond, time.Since(began)))) // a slow machine needs longer to store a turn, too
	}
	if k.acknowledged == nil {
		k.acknowledged = make(map[string]bool)
	}
	for id, ok := line(); ok; id, ok = line() {
		k.acknowledged[id] = true
	}
	if timer.Stop() { // nobody struck
		_ = child.Wait()
		t.Fatalf("child in round %d ended without a signal: %s", round, problem.String())
	}
	<-done
	_ = child.Wait() // killed
	if !ready {
		k.opening++
	}
}

// nothingLost opens the store once more and checks that it has every
// acknowledged turn exactly once.
func (k *killReport) nothingLost(t *testing.T, dir string) {
	t.Helper()
	store := openBadger(t, dir)
	defer store.Close()
	p := start(t, New(DefaultConfig(), store, store, &indexed{}, newRedactor(t), nil, nil))
	mustEnqueue(t, p.Pipeline, turnOf(testScope, "last", "q", "a")) // comes after all that is recovered
	mustFlush(t, p.Pipeline)
	stored := make(map[string]int)
	for user := range killUsers {
		scope := userScope(user)
		for after := ""; ; {
			page, err := store.Scan(t.Context(), scope, storage.Query{After: after})
			if err != nil || page.Damaged > 0 {
				t.Fatalf("%d damaged, %v", page.Damaged, err)
			}
			for _, m := range page.Memories {
				stored[m.Text]++
				if m.Kind == storage.KindFact {
					k.facts++
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
		if v, err := storage.Verify(t.Context(), store, scope); err != nil || !v.Whole() {
			t.Errorf("user %d: %+v, %v", user, v, err)
		}
	}
	for id := range k.acknowledged {
		for _, m := range episodesOf(killTurn(id), time.Hour, nil, storage.MaxWrite) {
			if stored[m.Text] == 0 {
				t.Errorf("lost: %.60s", m.Text)
			}
		}
	}
	for text, n := range stored {
		if n != 1 {
			t.Errorf("stored %d times: %.60s", n, text)
		}
	}
	p.stop()
	if left := spooledTurns(t, store); left > 0 {
		t.Errorf("left in the spool: %d records", left)
	}
	k.passages, k.recovered = len(stored)-k.facts, p.Stats().Recovered
	tables, _ := filepath.Glob(filepath.Join(dir, "store", "data", "*.sst"))
	for _, name := range tables {
		n, _ := strconv.Atoi(strings.TrimSuffix(filepath.Base(name), ".sst"))
		k.tables = max(k.tables, n)
	}
}
