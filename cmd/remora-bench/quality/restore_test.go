package quality

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
	storeprocess "github.com/remora-proxy/remora/storage/process"
)

// BenchmarkRestore loads an index of 10,000 memories from the real store: from
// its snapshot, and from the records that it was made of. Reading, unsealing
// and a first question are in it.
func BenchmarkRestore(b *testing.B) {
	for _, set := range []string{"locomo_a", "beam100k_a"} {
		path := "../../../../shared/data/recall/" + set + ".json"
		if _, err := os.Stat(path); err != nil {
			if os.Getenv("CI") == "true" {
				b.Fatalf("the scripted run must have the data: %v", err)
			}
			b.Skip("skipped: the conversations are not here")
		}
		said, err := newSpeech(path)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(set, func(b *testing.B) { benchmarkRestore(b, said) })
	}
}

func benchmarkRestore(b *testing.B, said *speech) {
	cfg := badger.DefaultConfig()
	cfg.Dir, cfg.KeyFile = filepath.Join(b.TempDir(), "data"), filepath.Join(b.TempDir(), "key")
	store := badger.New(cfg, nil)
	if err := store.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	for i := 0; i < 10_000; {
		var ms []storage.Memory
		for ; len(ms) < 500; i++ {
			ms = append(ms, said.memory(userScope(1), i))
		}
		if err := store.Put(b.Context(), []storage.Write{{Scope: userScope(1), Memories: ms}}); err != nil {
			b.Fatal(err)
		}
	}
	src := recall.Source(store)
	load := func(cfg recall.Config) recall.Stats {
		e := recall.New(cfg, src, nil, nil)
		if _, err := e.Recall(b.Context(), recall.Request{Scope: userScope(1), Newest: "Where does the cat sleep?"}); err != nil {
			b.Fatal(err)
		}
		e.Close()
		return e.Stats()
	}
	b.Run("records", func(b *testing.B) {
		cfg := patientConfig()
		cfg.SnapshotAfter = 0
		for b.Loop() {
			load(cfg)
		}
	})
	if got := load(patientConfig()); got.Saved != 1 {
		b.Fatalf("got %+v, want a snapshot written", got)
	}
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			if got := load(patientConfig()); got.Restored != 1 {
				b.Fatalf("got %+v, want a load from the snapshot", got)
			}
		}
	})
	// As where the store is a process of its own, but for its processors.
	server := &storeprocess.Server{Store: store, Local: store, Status: func() storeprocess.Status { return storeprocess.Status{Open: true} }, Build: "bench"}
	dir := b.TempDir()
	go func() { _ = server.Listen(b.Context(), dir, storeprocess.StoreSocket) }()
	remote, err := storeprocess.Dial(dir, storeprocess.StoreSocket, "bench")
	for range 1000 {
		if err == nil {
			break
		}
		time.Sleep(time.Millisecond)
		remote, err = storeprocess.Dial(dir, storeprocess.StoreSocket, "bench")
	}
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = remote.Close() }()
	src = remote
	b.Run("socket", func(b *testing.B) {
		for b.Loop() {
			if got := load(patientConfig()); got.Restored != 1 {
				b.Fatalf("got %+v, want a load from the snapshot", got)
			}
		}
	})
}
