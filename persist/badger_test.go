package persist

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
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

func openBadger(t testing.TB, dir string) *badger.Store {
	t.Helper()
	s, err := openStore(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openStore(dir string, log *slog.Logger) (*badger.Store, error) {
	cfg := badger.DefaultConfig()
	cfg.Dir, cfg.KeyFile = filepath.Join(dir, "store"), filepath.Join(dir, "key")
	s := badger.New(cfg, log)
	return s, s.Open(context.Background())
}

// Planted secrets and personal data are nowhere on the disk, in the log, or in the spool of a store that never came back.
func TestCanaries(t *testing.T) {
	canaries := []string{
		"sk-proj-q7Zk2mXv9Lr4Tb8Nw3Hs6Jd1Pc5Fg0YyA1B2C3D4", "ghp_q7Zk2mXv9Lr4Tb8Nw3Hs6Jd1Pc5Fg0YyA1B2", "canary.bird@example.org",
		"4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00", "123-45-6789", "86.121.97.248", "+41 44 668 18 00", "tr0ub4dor&3",
	}
	text := fmt.Sprintf("keys %s and %s, mail %s, card %s, account %s, SSN %s, host %s, phone %s, postgres://app:%s@db/x, home /home/canaryuser/x",
		canaries[0], canaries[1], canaries[2], canaries[3], canaries[4], canaries[5], canaries[6], canaries[7], canaries[8])
	canaries = append(canaries, "canaryuser")

	dir := t.TempDir()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	store, err := openStore(dir, logger)
	if err != nil {
		t.Fatal(err)
	}
	index := &indexed{panic: "poison"}
	p := start(t, New(DefaultConfig(), store, store, index, redactor(t), logger, nil))
	for i := range 50 {
		turn := turnOf(userScope(i%3), fmt.Sprint("t", i), text, "You said: "+text)
		turn.Messages[0].Speaker = canaries[2]
		mustEnqueue(t, p.Pipeline, turn)
	}
	mustEnqueue(t, p.Pipeline, turnOf(testScope, "poison", text, text))
	mustFlush(t, p.Pipeline)
	p.stop()
	kept := append(texts(t, store, userScope(0)), fmt.Sprint(index.turns))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s.Indexed != 50 || s.Quarantined != 1 || len(kept) < 2 {
		t.Fatalf("stats: %+v", s)
	}

	look := func(where string, raw []byte) {
		for _, c := range canaries {
			if bytes.Contains(raw, []byte(c)) {
				t.Errorf("%q stands in %s", c, where)
			}
		}
	}
	look("the log", log.Bytes())
	look("the memories", []byte(strings.Join(kept, "\n")))
	files := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		files++
		look(path, raw)
		if bytes.Contains(raw, []byte("You said")) {
			t.Errorf("text in the clear in %s", path)
		}
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("looked at %d files: %v", files, err)
	}
}

// killDir is set for the child of TestKilledProcessLosesNothing.
const killDir = "REMORA_PERSIST_KILL_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		if err := persistUntilKilled(dir, os.Getenv(killDir+"_ROUND")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// acknowledging tells on stdout which turns a returned spool commit made durable.
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

// persistUntilKilled hands in turns without end; now and then an earlier one again, as clients do.
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
	cfg.TurnsPerSecond, cfg.BatchInterval = 0, 10*time.Millisecond
	p := New(cfg, store, &acknowledging{Local: store, out: os.Stdout}, nil, red, nil, nil)
	go p.Run(context.Background())
	fmt.Println("ready")
	for i := 0; ; i++ {
		n := i
		if i%7 == 6 {
			n = rand.IntN(i)
		}
		id := fmt.Sprintf("r%s.%d", round, n)
		_ = p.Enqueue(turnOf(userScope(n%killUsers), id, "question "+id, "answer "+id)) // refused ones are not acknowledged
		if i%16 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

func TestKilledProcessLosesNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no kill -9 on Windows")
	}
	loops := 10
	if os.Getenv("CI") == "true" {
		loops = 50
	}
	if n, err := strconv.Atoi(os.Getenv("KILL_LOOPS")); err == nil {
		loops = n
	}
	if testing.Short() {
		loops = min(loops, 2)
	}
	dir := t.TempDir()
	acknowledged := make(map[string]bool)
	for round := range loops {
		for _, id := range runAndKill(t, dir, round) {
			acknowledged[id] = true
		}
	}
	if len(acknowledged) < loops {
		t.Fatalf("only %d turns were acknowledged in %d rounds", len(acknowledged), loops)
	}

	store := openBadger(t, dir)
	defer store.Close()
	index := &indexed{}
	p := start(t, New(DefaultConfig(), store, store, index, redactor(t), nil, nil))
	mustEnqueue(t, p.Pipeline, turnOf(testScope, "last", "q", "a")) // comes after all that is recovered
	mustFlush(t, p.Pipeline)
	stored := make(map[string]int)
	for user := range killUsers {
		for _, text := range texts(t, store, userScope(user)) {
			stored[text]++
		}
	}
	for id := range acknowledged {
		for _, text := range []string{"question " + id, "answer " + id} {
			if stored[text] == 0 {
				t.Errorf("lost: %s", text)
			}
		}
	}
	for text, n := range stored {
		if n != 1 {
			t.Errorf("%q is stored %d times", text, n)
		}
	}
	p.stop()
	if left := spooledTurns(t, store); left > 0 {
		t.Errorf("left in the spool: %d records", left)
	}
	t.Logf("%d kills, %d turns acknowledged, %d passages stored, %d turns recovered at the end", loops, len(acknowledged), len(stored), p.Stats().Recovered)
}

// runAndKill runs a child for a random time and returns the turns that it acknowledged.
func runAndKill(t *testing.T, dir string, round int) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), killDir+"="+dir, killDir+"_ROUND="+strconv.Itoa(round))
	var errors bytes.Buffer
	child.Stderr = &errors
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		_ = child.Wait()
		t.Fatalf("child in round %d: %s", round, errors.String())
	}
	kill := time.AfterFunc(time.Duration(rand.IntN(250))*time.Millisecond, func() { _ = child.Process.Kill() })
	defer kill.Stop()
	var ids []string
	for lines.Scan() {
		ids = append(ids, lines.Text())
	}
	_ = child.Wait() // killed
	return ids
}

func BenchmarkEnqueue(b *testing.B) {
	cfg := DefaultConfig()
	cfg.QueueTurns, cfg.QueueBytes = 1<<40, 1<<50
	turns := make([]Turn, 64)
	for i := range turns {
		turns[i] = turnOf(userScope(i), fmt.Sprint("t", i), strings.Repeat("some words of a question ", 20), strings.Repeat("an answer ", 150))
	}
	p := New(cfg, nil, nil, nil, nil, nil, nil)
	i := 0
	for b.Loop() {
		_ = p.Enqueue(turns[i%64])
		if i++; i%4096 == 0 { // nothing runs, so let go of what is queued
			p.mu.Lock()
			p.queued, p.inFlight = nil, ledger{}
			p.mu.Unlock()
		}
	}
}

// BenchmarkTurns measures durable turns a second over 64 users: enqueue to searchable, with redaction, spool and store.
func BenchmarkTurns(b *testing.B) {
	store := openBadger(b, b.TempDir())
	defer store.Close()
	cfg := DefaultConfig()
	cfg.TurnsPerSecond, cfg.QueueTurns = 0, 1024 // so that handing in goes at the pace of persisting
	p := start(b, New(cfg, store, store, &indexed{}, redactor(b), nil, nil))
	question, answer := strings.Repeat("some words of a question ", 8), strings.Repeat("the words of an answer, ", 40)
	i := 0
	for b.Loop() {
		turn := turnOf(userScope(i%64), fmt.Sprint("t", i), question, answer)
		for p.Enqueue(turn) != nil {
			time.Sleep(time.Millisecond)
		}
		i++
	}
	mustFlush(b, p.Pipeline)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
	if got := p.Stats().Indexed; got != uint64(i) {
		b.Errorf("indexed %d of %d", got, i)
	}
}
