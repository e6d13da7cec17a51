package persist

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

// embedder gives every text a direction of its own.
type embedder struct{}

func (embedder) Model() string { return "m" }

func (embedder) Query(_ context.Context, text string) ([]float32, error) {
	h := fnv.New64a()
	h.Write([]byte(text))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	v := make([]float32, 32)
	for i := range v {
		v[i] = r.Float32() - .5
	}
	return v, nil
}

func (e embedder) Documents(ctx context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for _, t := range texts {
		v, err := e.Query(ctx, t)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// TestForgottenEverywhere forgets a passage, a conversation, a user and
// everybody from a real store with a real index, its snapshot and vectors, and
// searches all that the store returns, and its files, for the words.
func TestForgottenEverywhere(t *testing.T) {
	dir := t.TempDir()
	store := openBadger(t, dir)
	cfg := DefaultConfig()
	cfg.TurnsPerSecond = 0
	rc := recall.DefaultConfig()
	rc.Vectors = recall.VectorConfig{Embedder: embedder{}, Redact: func(s string) string { return s }, Weight: .5}
	rc.FirstDeadline, rc.Deadline = time.Minute, time.Minute
	var p running
	var engine *recall.Engine
	open := func() {
		engine = recall.New(rc, store, nil, nil)
		p = start(t, New(cfg, store, store, engine, newRedactor(t), nil, nil))
		for user := range 2 {
			if _, err := engine.Recall(t.Context(), recall.Request{Scope: userScope(user), Newest: "Which fruit may the dinner guests have?"}); err != nil {
				t.Fatal(err)
			}
		}
		for since := time.Now(); engine.Stats().Vectors.Waiting > 0; time.Sleep(time.Millisecond) {
			if time.Since(since) > time.Minute {
				t.Fatal("no vectors")
			}
		}
	}
	leave := func() { p.stop(); engine.Close() }
	// held lists where the store has a word, and counts the records of the
	// index and the rest.
	held := func(scope storage.Scope, word string) (where []string, records int) {
		t.Helper()
		for _, text := range texts(t, store, scope) {
			if strings.Contains(text, word) {
				where = append(where, "memory "+text)
			}
		}
		for _, b := range storage.Buckets() {
			page, err := store.Records(t.Context(), b, scope, "", 0)
			if err != nil {
				t.Fatal(err)
			}
			records += len(page.Records)
			for _, r := range page.Records {
				if bytes.Contains(bytes.ToLower(r.Value), []byte(word)) {
					where = append(where, fmt.Sprint(b, " ", r.Key))
				}
			}
		}
		return where, records
	}
	vectors := func() int64 { return engine.Stats().Vectors.Vectors }
	say := func(user int, conversation, id, fruit string) Turn {
		turn := turnAt(id, fmt.Sprintf("I'm allergic to %s. Remember that my %s tree is in Porto. Please forget the %s recipe.", fruit, fruit, fruit),
			"I see, no "+fruit+" for the guests of the dinner on Saturday.", time.Now())
		turn.Scope, turn.Conversation = userScope(user), conversation
		return turn
	}

	open()
	for i := range 520 { // an index of a thousand memories has a snapshot
		turn := turnAt(fmt.Sprint("filler", i), fmt.Sprintf("What about number %d?", i), fmt.Sprintf("It is %d.", i*i), time.Now())
		turn.Scope, turn.Conversation = userScope(0), "c0"
		mustEnqueue(t, p.Pipeline, turn)
	}
	p.settle(t, say(0, "c1", "t1", "quince"), say(0, "c1", "t2", "medlar"), say(0, "c2", "t3", "kumquat"), say(1, "c3", "t4", "durian"))
	leave()
	open()
	leave() // snapshots
	for user, fruits := range map[int][]string{0: {"quince", "medlar", "kumquat"}, 1: {"durian"}} {
		for _, fruit := range fruits {
			where, _ := held(userScope(user), fruit)
			for _, what := range []string{"memory I'm allergic to " + fruit, `memory "`, "summary ", "audit forget-", "index recall-"} {
				if user == 1 && what == "index recall-" {
					continue
				}
				if !slices.ContainsFunc(where, func(s string) bool { return strings.HasPrefix(s, what) }) {
					t.Fatalf("%s: nothing to forget in %q: %q", fruit, what, where)
				}
			}
		}
	}
	open()
	gone := func(user int, fruit string) {
		t.Helper()
		leave() // snapshots are written now at the latest
		if where, _ := held(userScope(user), fruit); len(where) > 0 {
			t.Errorf("%s: left in %q", fruit, where)
		}
		open()
	}
	had := vectors()
	if _, err := p.ForgetMemories(t.Context(), userScope(0), "t1.0", "t1.1"); err != nil {
		t.Fatal(err)
	}
	if where, _ := held(userScope(0), "quince"); len(where) > 0 {
		t.Errorf("quince: right after it left in %q", where)
	}
	gone(0, "quince")
	if n := vectors(); n >= had {
		t.Errorf("vectors: %d of %d left", n, had)
	}
	if _, err := p.ForgetConversation(t.Context(), userScope(0), "c2"); err != nil {
		t.Fatal(err)
	}
	gone(0, "kumquat")
	if where, _ := held(userScope(0), "medlar"); len(where) == 0 {
		t.Error("medlar was deleted, too")
	}
	if _, err := p.ForgetUser(t.Context(), userScope(1)); err != nil {
		t.Fatal(err)
	}
	if where, n := held(userScope(1), "durian"); len(where) > 0 || n > 0 {
		t.Errorf("durian: left in %q, %d records", where, n)
	}
	gone(1, "durian")
	if _, err := p.ForgetUser(t.Context(), userScope(0)); err != nil {
		t.Fatal(err)
	}
	gone(0, "medlar")
	leave()
	for user := range 2 {
		if _, n := held(userScope(user), "medlar"); n > 0 {
			t.Errorf("user %d: %d records left", user, n)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, fruit := range []string{"quince", "medlar", "kumquat", "durian"} {
			if bytes.Contains(bytes.ToLower(content), []byte(fruit)) {
				t.Errorf("%s is in %s", fruit, filepath.Base(path))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
