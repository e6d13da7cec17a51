package badger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// fileSums returns the checksums of all files of a tree, to see that nothing
// was changed.
func fileSums(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	sums := make(map[string][32]byte)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		sums[path] = sha256.Sum256(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRefusals guards that each failure to open says what is wrong and where,
// and changes nothing.
func TestRefusals(t *testing.T) {
	remove := func(t *testing.T, path string) {
		t.Helper()
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name     string
		newStore bool // change before there is a store
		spoil    func(t *testing.T, cfg *Config)
		want     []string
	}{
		{"file in place of the directory", true, func(t *testing.T, cfg *Config) { write(t, cfg.Dir, "") },
			[]string{"is not a directory"}},
		{"file on the way to the directory", true, func(t *testing.T, cfg *Config) {
			write(t, cfg.Dir, "")
			cfg.Dir = filepath.Join(cfg.Dir, "below")
		}, []string{"not a directory"}},
		{"wrong key", false, func(t *testing.T, cfg *Config) { cfg.Key = bytes.Repeat([]byte{7}, KeySize) },
			[]string{"wrong key", "nothing was changed"}},
		{"wrong key file", false, func(t *testing.T, cfg *Config) { write(t, cfg.KeyFile, strings.Repeat("0a", KeySize)) },
			[]string{"wrong key", "KEYFILE"}},
		{"key file missing", false, func(t *testing.T, cfg *Config) { remove(t, cfg.KeyFile) },
			[]string{"key missing", "KEYFILE", "no new one is made"}},
		{"key file not a key", false, func(t *testing.T, cfg *Config) { write(t, cfg.KeyFile, "hunter2") },
			[]string{"KEYFILE is not a key"}},
		{"key file not read", false, func(t *testing.T, cfg *Config) {
			remove(t, cfg.KeyFile)
			write(t, filepath.Join(cfg.KeyFile, "below"), "")
		}, []string{"key file KEYFILE is not a regular file"}},
		{"key file not named", true, func(t *testing.T, cfg *Config) { cfg.KeyFile = "" }, []string{"storage.keyFile"}},
		{"newer schema", false, func(t *testing.T, cfg *Config) {
			write(t, filepath.Join(cfg.Dir, "VERSION"), "remora store 99\n")
		}, []string{"newer Remora", "schema 99"}},
		{"older schema", false, func(t *testing.T, cfg *Config) {
			write(t, filepath.Join(cfg.Dir, "VERSION"), "remora store 1\n")
		}, []string{"older Remora", "schema 1,"}},
		{"damaged version", false, func(t *testing.T, cfg *Config) { write(t, filepath.Join(cfg.Dir, "VERSION"), "\x00\x00") },
			[]string{"damaged", "VERSION"}},
		{"missing version", false, func(t *testing.T, cfg *Config) { remove(t, filepath.Join(cfg.Dir, "VERSION")) },
			[]string{"damaged", "VERSION is missing"}},
		{"damaged keyring", false, func(t *testing.T, cfg *Config) {
			path := filepath.Join(cfg.Dir, "keyring", "secrets")
			content := mustRead(t, path)
			content[len(content)-1] ^= 1
			write(t, path, string(content))
		}, []string{"damaged", "keyring secrets"}},
		{"no space", false, func(t *testing.T, cfg *Config) {
			cfg.FreeBytes = func(string) (uint64, error) { return 63 << 20, nil }
		}, []string{"no space", "63 MiB are free", "64 MiB must stay free"}},
		{"no space for a new store", true, func(t *testing.T, cfg *Config) {
			cfg.FreeBytes = func(string) (uint64, error) { return 63 << 20, nil }
		}, []string{"no space", "63 MiB are free"}},
		{"free space unknown", false, func(t *testing.T, cfg *Config) {
			cfg.FreeBytes = func(string) (uint64, error) { return 0, errors.New("some reason") }
		}, []string{"measure free space: some reason"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := testConfig(t)
			root := filepath.Dir(cfg.Dir)
			if !test.newStore {
				s := mustOpen(t, cfg)
				mustPut(t, s, scopeOf("u"), memory("id", "text"))
				mustClose(t, s)
			}
			test.spoil(t, &cfg)
			before := fileSums(t, root)
			s := New(cfg, nil)
			err := s.Open(t.Context())
			if !errors.Is(err, storage.ErrUnavailable) {
				t.Fatalf("Open: got %v, want ErrUnavailable", err)
			}
			for _, want := range append(test.want, cfg.Dir) {
				want = strings.ReplaceAll(want, "KEYFILE", cfg.KeyFile)
				if want == cfg.Dir && strings.Contains(test.name, "key file not") {
					continue
				}
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Open: got %q, want %q in it", err, want)
				}
				if strings.Contains(test.name, "key file not") && strings.Contains(err.Error(), "damaged") {
					t.Errorf("Open: got %q, which blames the store for its key file", err)
				}
			}
			if got := s.Health(); got.Open || !strings.HasSuffix(err.Error(), got.Reason) || got.Reason == "" {
				t.Errorf("Health: got %+v, want the reason %q", got, err)
			}
			_, callErr := s.Memory(t.Context(), scopeOf("u"), "id")
			if callErr == nil || callErr.Error() != err.Error() {
				t.Errorf("a call: got %v, want %v", callErr, err)
			}
			after := fileSums(t, root)
			delete(after, filepath.Join(cfg.Dir, "VERSION")) // all that a new store may have before it fails
			delete(before, filepath.Join(cfg.Dir, "VERSION"))
			if !maps.Equal(before, after) {
				t.Errorf("files were changed: had %d, have %d", len(before), len(after))
			}
		})
	}
}

func TestKeyringMissing(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	mustPut(t, s, scopeOf("u"), memory("id", "text"))
	mustClose(t, s)
	moved := cfg.Dir + "-keyring"
	if err := os.Rename(s.dir.keyring(), moved); err != nil {
		t.Fatal(err)
	}
	err := s.Open(t.Context())
	if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "keyring missing") || !strings.Contains(err.Error(), s.dir.keyring()) {
		t.Fatalf("Open: got %v, want a missing keyring", err)
	}
	if err := os.Rename(moved, s.dir.keyring()); err != nil {
		t.Fatalf("put the keyring back: %v", err)
	}
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Memory(t.Context(), scopeOf("u"), "id"); err != nil {
		t.Errorf("Memory after the keyring is back: %v", err)
	}
}

func TestLocked(t *testing.T) {
	cfg := testConfig(t)
	first := mustOpen(t, cfg)
	second := New(cfg, nil)
	err := second.Open(t.Context())
	if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "locked: another process (pid ") || !strings.Contains(err.Error(), cfg.Dir) {
		t.Errorf("Open of a locked store: got %v", err)
	}
	mustPut(t, first, scopeOf("u"), memory("id", "text")) // the first one is unaffected
	if err := first.Open(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("Open of an open store: got %v, want ErrUnavailable", err)
	}
	if got := first.Health(); !got.Open || got.Reason != "" || got.FreeBytes == 0 {
		t.Errorf("Health: got %+v, want open", got)
	}
	mustClose(t, first)
	if err := second.Open(t.Context()); err != nil {
		t.Errorf("Open after the first was closed: %v", err)
	}
	mustClose(t, second)
}

// lockedBuffer is written and read by different goroutines.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestRun guards that Run logs a reason once, keeps trying, opens when the
// cause is gone, and closes when its context ends.
func TestRun(t *testing.T) {
	cfg := testConfig(t)
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		version := filepath.Join(cfg.Dir, "VERSION")
		write(t, version, "remora store 99\n")
		s := New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()

		time.Sleep(time.Hour)
		synctest.Wait()
		if got := strings.Count(log.String(), "newer Remora"); got != 1 {
			t.Errorf("one reason was logged %d times in an hour, want once:\n%s", got, &log)
		}
		write(t, version, "nonsense")
		time.Sleep(maxRetry + time.Second)
		synctest.Wait()
		if got := strings.Count(log.String(), "damaged"); got != 1 {
			t.Errorf("a new reason was logged %d times, want once:\n%s", got, &log)
		}
		if err := os.Remove(version); err != nil {
			t.Fatal(err)
		}
		time.Sleep(maxRetry + time.Second)
		synctest.Wait()
		if got := s.Health(); !got.Open {
			t.Errorf("Health after the cause is gone: got %+v, want open", got)
		}
		mustPut(t, s, scopeOf("u"), memory("id", "text"))
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if got := s.Health(); got.Open || got.Reason != "closed" {
			t.Errorf("Health after Run: got %+v, want closed", got)
		}
	})
}

func TestLowSpace(t *testing.T) {
	cfg := testConfig(t)
	synctest.Test(t, func(t *testing.T) {
		free := uint64(1 << 30)
		cfg.FreeBytes = func(string) (uint64, error) { return free, nil }
		s := New(cfg, nil)
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer mustClose(t, s)
		scope := scopeOf("u")
		mustPut(t, s, scope, memory("id", "text"), memory("other", "text"))
		free = cfg.MinFreeBytes - 1
		time.Sleep(2 * time.Second) // longer than a measurement is used
		err := s.Put(t.Context(), []storage.Write{{Scope: scope, Memories: []storage.Memory{memory("new", "text")}}})
		if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "no space") {
			t.Errorf("Put: got %v, want no space", err)
		}
		err = s.PutRecords(t.Context(), []storage.Record{{Bucket: storage.BucketSpool, Scope: scope, Key: "k"}})
		if !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("PutRecords: got %v, want ErrUnavailable", err)
		}
		if got := s.Health(); !got.Open || !strings.Contains(got.Reason, "no space") {
			t.Errorf("Health: got %+v, want open without space", got)
		}
		if _, err := s.Memory(t.Context(), scope, "id"); err != nil {
			t.Errorf("Memory: %v, want reads to continue", err)
		}
		if n, err := s.Delete(t.Context(), scope, "id"); err != nil || n != 1 {
			t.Errorf("Delete: got %d, %v, want deletes to continue", n, err)
		}
		free = cfg.MinFreeBytes/4 - 1
		time.Sleep(2 * time.Second)
		if _, err := s.Erase(t.Context(), scope); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("Erase: got %v, want ErrUnavailable", err)
		}
		free = 1 << 30
		time.Sleep(2 * time.Second)
		mustPut(t, s, scope, memory("new", "text"))

		// Between two measurements, what was written is subtracted.
		free = cfg.MinFreeBytes + 3<<20
		time.Sleep(2 * time.Second)
		for i := range 8 {
			err = s.PutRecords(t.Context(), []storage.Record{{Bucket: storage.BucketSpool, Scope: scope, Key: "k", Value: make([]byte, 1<<20)}})
			if (err != nil) != (i >= 2) {
				t.Errorf("record %d with 3 MiB free: got %v", i, err)
			}
		}
	})
}

func TestPanicIsUnavailable(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	db := s.session.db
	s.session.db = nil
	_, err := s.Memory(t.Context(), scopeOf("u"), "id")
	if !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("Memory: got %v, want ErrUnavailable", err)
	}
	err = s.Put(t.Context(), []storage.Write{{Scope: scopeOf("u"), Memories: []storage.Memory{memory("id", "text")}}})
	if !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("Put: got %v, want ErrUnavailable", err)
	}
	if got := s.Health().Panics; got != 2 {
		t.Errorf("Panics: got %d, want 2", got)
	}
	s.session.db = db
	mustPut(t, s, scopeOf("u"), memory("id", "text")) // no lock is left
}

func TestConfigValidate(t *testing.T) {
	err := Config{Key: []byte("short")}.Validate()
	for _, want := range []string{"dir: must be set", "key: must be 32 bytes long, not 5"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate: got %v, want %q in it", err, want)
		}
	}
	if err := (Config{Dir: "d"}).Validate(); err == nil || !strings.Contains(err.Error(), "keyFile: must be set") {
		t.Errorf("Validate without a key: got %v", err)
	}
	if err := testConfig(t).Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
}

// TestExplain covers errors that a test cannot cause if it runs as root.
func TestExplain(t *testing.T) {
	cfg := testConfig(t)
	s := New(cfg, nil)
	for _, test := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "open", Path: "p", Err: syscall.EACCES}, "permission denied in " + cfg.Dir},
		{&fs.PathError{Op: "open", Path: "p", Err: syscall.EROFS}, cfg.Dir + " is on a read-only file system"},
		{&fs.PathError{Op: "open", Path: "p", Err: syscall.ENOSPC}, "no space left for " + cfg.Dir},
		{errors.New("write p: no space left on device"), "no space left for " + cfg.Dir},
		{errors.New("MANIFEST has unsupported version"), "cannot open " + cfg.Dir + ", it may be damaged: MANIFEST"},
		{refuse("unchanged"), "unchanged"},
	} {
		if got := explain(s.dir, test.err).Error(); !strings.HasPrefix(got, test.want) {
			t.Errorf("explain %v: got %q, want %q", test.err, got, test.want)
		}
	}
}

// TestDamagedManifest guards that what Badger itself refuses is reported as
// damage.
func TestDamagedManifest(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	mustPut(t, s, scopeOf("u"), memory("id", "text"))
	mustClose(t, s)
	write(t, filepath.Join(s.dir.data(), "MANIFEST"), "not a manifest")
	err := s.Open(t.Context())
	if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), s.cfg.Dir) {
		t.Errorf("Open: got %v, want damage", err)
	}
}
