package persist

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	return openStoreWithin(dir, log, 0)
}

func openStoreWithin(dir string, log *slog.Logger, memory int64) (*badger.Store, error) {
	cfg := badger.DefaultConfig()
	cfg.MemoryBytes = memory
	cfg.Dir, cfg.KeyFile = filepath.Join(dir, "store"), filepath.Join(dir, "key")
	s := badger.New(cfg, log)
	return s, s.Open(context.Background())
}

// TestCanaries checks that planted secrets and personal data are nowhere on the
// disk, in the log, or in the spool of a store that never came back.
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
	p := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), logger, nil))
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
				t.Errorf("%q is in %s", c, where)
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

// TestMissingKey drops turns of a user whose key is missing, and stores and
// audits those of others in the same batches.
func TestMissingKey(t *testing.T) {
	dir := t.TempDir()
	store := openBadger(t, dir)
	run := func(turn string) Stats {
		t.Helper()
		p := start(t, New(DefaultConfig(), store, store, &indexed{}, newRedactor(t), nil, nil))
		for i := range 3 {
			mustEnqueue(t, p.Pipeline, turnOf(userScope(i), turn, "My dog is called "+turn+".", "Nice."))
		}
		mustFlush(t, p.Pipeline)
		p.stop()
		return p.Stats()
	}
	run("Rex")
	reopen := func() {
		t.Helper()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if err := store.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := filepath.Glob(filepath.Join(dir, "store", "keyring", "scopes", "*", "*"))
	if err != nil || len(keys) != 3 {
		t.Fatalf("keys: %v, %v", keys, err)
	}
	content, err := os.ReadFile(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(keys[0]); err != nil {
		t.Fatal(err)
	}
	reopen()
	if s := run("Bello"); s.Indexed != 2 || s.Dropped[DropPoison] != 1 {
		t.Errorf("indexed %d, dropped %v, want 2, and 1 as poison", s.Indexed, s.Dropped)
	}
	if err := os.WriteFile(keys[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	reopen()
	first, both := 0, 0
	for i := range 3 {
		of := strings.Join(texts(t, store, userScope(i)), " ")
		switch {
		case strings.Contains(of, "Rex") && strings.Contains(of, "Bello"):
			both++
		case strings.Contains(of, "Rex"):
			first++
		}
	}
	if first != 1 || both != 2 {
		t.Errorf("%d users with the first turn alone and %d with both, want 1 and 2", first, both)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
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
		if i++; i%4096 == 0 { // nothing runs, so drop what is queued
			p.queue = newQueue(cfg.QueueTurns, cfg.QueueBytes)
		}
	}
}

// BenchmarkTurns measures durable turns a second over 64 users: Enqueue to
// searchable, with redaction, spool and store.
func BenchmarkTurns(b *testing.B) {
	store := openBadger(b, b.TempDir())
	defer store.Close()
	cfg := DefaultConfig()
	cfg.TurnsPerSecond, cfg.QueueTurns = 0, 1024 // so that Enqueue keeps the pace of persisting
	p := start(b, New(cfg, store, store, &indexed{}, newRedactor(b), nil, nil))
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
