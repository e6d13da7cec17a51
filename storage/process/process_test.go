//go:build unix

package process

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

const testBuild = "test build"

// childMode is the environment variable that makes this binary serve a store in
// memory, as a child process.
const childMode = "REMORA_PROCESS_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		if err := serveChild(mode); err != nil {
			slog.New(slog.NewJSONHandler(os.Stderr, nil)).Error("child failed", "error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func serveChild(mode string) error {
	conn, boot, err := Inherit()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	log.Info("child serves", "boot", string(boot))
	s := serverOf(storagetest.Memory())
	s.Log = log
	switch mode {
	case "opening":
		s.Status = func() Status { return Status{Opening: true} }
	case "crash":
		s.Status = func() Status { return Status{Opening: true} }
		time.AfterFunc(50*time.Millisecond, func() { panic("damaged") })
	case "replaced": // each child has set another store aside before it crashes
		s.Status = func() Status { return Status{Opening: true, SetAside: make([]string, len(boot))} }
		time.AfterFunc(50*time.Millisecond, func() { panic("damaged") })
	}
	return s.ServeConn(context.Background(), conn)
}

func serverOf(m *storagetest.Mem) *Server {
	return &Server{
		Store: m, Local: m, Build: testBuild, Log: slog.New(slog.DiscardHandler),
		Status: func() Status { return Status{Open: true, FreeBytes: 77} },
		Admin: func(ctx context.Context, name string, args []byte, out io.Writer) ([]byte, error) {
			switch name {
			case "repeat": // args, as many bytes as 20 MiB
				for n := 0; n < 20<<20; n += len(args) {
					if _, err := out.Write(args); err != nil {
						return nil, err
					}
				}
				return []byte("done"), nil
			case "wait":
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, errors.New("unknown name")
		},
	}
}

// connected returns a client of a server in this process.
func connected(t *testing.T, s *Server) *Remote {
	t.Helper()
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	return connectedTo(t, s, ours, theirs)
}

func connectedTo(t testing.TB, s *Server, ours net.Conn, theirs *os.File) *Remote {
	t.Helper()
	conn, err := net.FileConn(theirs)
	if err := errors.Join(err, theirs.Close()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.ServeConn(context.Background(), conn) }()
	r, err := connect(ours, testBuild)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Close()
		if err := <-served; err != nil {
			t.Errorf("ServeConn: %v", err)
		}
	})
	return r
}

func TestContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Opened {
		m := storagetest.Memory()
		var open func(t *testing.T) storagetest.Opened
		open = func(t *testing.T) storagetest.Opened {
			m.Fail(false)
			r := connected(t, serverOf(m))
			return storagetest.Opened{Store: r, Local: r, Close: r.Close, Reopen: open}
		}
		return open(t)
	})
}

// running returns a client whose process runs the test binary.
func running(t *testing.T, mode string, change func(*Config)) *Client {
	t.Helper()
	if !Supported {
		t.Skip("no second process on " + runtime.GOOS)
	}
	cfg := DefaultConfig()
	cfg.Build = testBuild
	cfg.FirstWait, cfg.LastWait = time.Millisecond, 100*time.Millisecond
	cfg.Command = func() (*exec.Cmd, error) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childMode+"="+mode)
		return cmd, nil
	}
	cfg.Boot = func(int) ([]byte, error) { return []byte("boot"), nil }
	if change != nil {
		change(&cfg)
	}
	c := New(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		if s := c.Status(); s.Open || s.PID != 0 {
			t.Errorf("after Run: %+v", s)
		}
		wantErr(t, "after Run", c.PutRecords(context.Background(), nil), storage.ErrUnavailable)
	})
	return c
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for start := time.Now(); !done(); time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("timed out waiting: %s", what)
		}
	}
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// TestContractOverProcesses runs the suite on a store in another process. It is
// in memory, so tests that reopen it are skipped.
func TestContractOverProcesses(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Opened {
		ctx, stop := context.WithCancel(context.Background())
		c := running(t, "store", func(cfg *Config) {
			command := cfg.Command
			cfg.Command = func() (*exec.Cmd, error) {
				if ctx.Err() != nil {
					return nil, errors.New("closed")
				}
				return command()
			}
		})
		await(t, "open", func() bool { return c.Status().Open })
		return storagetest.Opened{Store: c, Local: c,
			Close: func() error {
				stop()
				pid := 0
				await(t, "a process", func() bool { pid = c.Status().PID; return pid > 0 })
				err := syscall.Kill(pid, syscall.SIGKILL)
				await(t, "gone", func() bool { return !c.Status().Open })
				return err
			},
			Reopen: func(t *testing.T) storagetest.Opened {
				stop()
				t.Skip("the store of this test is in memory")
				return storagetest.Opened{}
			},
		}
	})
}

func someone(user string) storage.Scope {
	return storage.Scope{Tenant: "t", App: "a", Project: "p", User: user}
}

func TestKilledProcessIsRestarted(t *testing.T) {
	c := running(t, "store", func(cfg *Config) { cfg.Hang = time.Minute })
	for round := range 5 {
		var got Status
		await(t, "open", func() bool { got = c.Status(); return got.Open })
		if got.Restarts != uint64(round) || got.FreeBytes != 77 {
			t.Errorf("status: %+v", got)
		}
		await(t, "a call", func() bool { _, err := c.InstallSecret(t.Context()); return err == nil })
		pid := got.PID
		waiting := make(chan error)
		go func() { _, err := c.Admin(t.Context(), "wait", nil, nil); waiting <- err }()
		time.Sleep(10 * time.Millisecond)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		wantErr(t, "a call under way", <-waiting, storage.ErrUnavailable)
		await(t, "another one", func() bool { s := c.Status(); return s.PID != pid })
	}
}

// TestStoppedProcess guards that calls end while a stopped process holds its
// socket open, also those under way.
func TestStoppedProcess(t *testing.T) {
	c := running(t, "store", func(cfg *Config) {
		cfg.Ping, cfg.Suspect, cfg.Hang = 20*time.Millisecond, 100*time.Millisecond, time.Minute
	})
	pid := 0
	await(t, "stopped", func() bool {
		s := c.Status()
		pid = s.PID
		return s.Open && pid > 0 && syscall.Kill(pid, syscall.SIGSTOP) == nil
	})
	// More bytes than the socket's buffers hold, from several callers.
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			big := storage.Record{Bucket: storage.BucketSpool, Scope: someone("u"), Key: "k", Value: make([]byte, 8<<20)}
			wantErr(t, "a call under way", c.PutRecords(t.Context(), []storage.Record{big}), storage.ErrUnavailable)
		})
	}
	callers.Wait()
	for range 1000 { // each returns immediately
		_, err := c.Memory(t.Context(), someone("u"), "id")
		wantErr(t, "a call", err, storage.ErrUnavailable)
	}
	if s := c.Status(); s.Open || !strings.Contains(s.Reason, "does not answer") {
		t.Errorf("status: %+v", s)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(t, "open again", func() bool { return c.Status().Open })
	// A call that was canceled before it began has no effect.
	var page storage.RecordPage
	await(t, "records", func() bool { // on a busy machine the process may be suspected again
		var err error
		page, err = c.AllRecords(t.Context(), storage.BucketSpool, "", 0)
		return err == nil
	})
	if len(page.Records) > 1 {
		t.Errorf("%d records", len(page.Records))
	}
	if s := c.Status(); s.PID != pid || s.Restarts != 0 {
		t.Errorf("status: %+v", s)
	}
}

func TestHungProcessIsKilled(t *testing.T) {
	c := running(t, "store", func(cfg *Config) {
		cfg.Ping, cfg.Suspect, cfg.Hang = 10*time.Millisecond, 20*time.Millisecond, time.Second
	})
	pid := 0
	await(t, "stopped", func() bool { // on a busy machine it may be gone already; pid 0 is this process's group
		s := c.Status()
		pid = s.PID
		return s.Open && pid > 0 && syscall.Kill(pid, syscall.SIGSTOP) == nil
	})
	await(t, "another one", func() bool {
		s := c.Status()
		if s.PID == pid { // it may have been continued with its whole session
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		return s.Open && s.PID != pid
	})
}

// TestCrashesWhileOpeningAreCounted guards that only faults of the process
// itself, while it opens the store, count against the store.
func TestCrashesWhileOpeningAreCounted(t *testing.T) {
	for mode, want := range map[string]int{"crash": 3, "opening": 0, "replaced": 1} {
		t.Run(mode, func(t *testing.T) {
			var mu sync.Mutex
			var boots []int
			c := running(t, mode, func(cfg *Config) {
				cfg.Boot = func(crashes int) ([]byte, error) {
					mu.Lock()
					defer mu.Unlock()
					boots = append(boots, crashes)
					return make([]byte, len(boots)), nil
				}
			})
			count := func() int { mu.Lock(); defer mu.Unlock(); return len(boots) }
			for count() < 4 {
				if pid := c.Status().PID; mode == "opening" && pid != 0 {
					_ = syscall.Kill(pid, syscall.SIGKILL) // as the kernel does at a memory limit
				}
				time.Sleep(time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			if boots[3] != want {
				t.Errorf("crashes counted at each start: %v, want %d at the last", boots, want)
			}
		})
	}
}

func TestStreams(t *testing.T) {
	r := connected(t, serverOf(storagetest.Memory()))
	var out bytes.Buffer
	got, err := r.Admin(t.Context(), "repeat", bytes.Repeat([]byte("0123456789abcdef"), 1000), &out)
	if err != nil || string(got) != "done" || out.Len() < 20<<20 {
		t.Errorf("got %q, %d bytes, %v", got, out.Len(), err)
	}
	for i, b := range out.Bytes() {
		if b != "0123456789abcdef"[i%16] {
			t.Fatalf("byte %d is %q", i, b)
		}
	}
	// A reader that does not consume its stream delays no other call.
	ctx, cancel := context.WithCancel(t.Context())
	slow := make(chan error)
	go func() {
		_, err := r.Admin(ctx, "repeat", make([]byte, 1000), writer(func(p []byte) (int, error) { <-ctx.Done(); return len(p), nil }))
		slow <- err
	}()
	for range 100 {
		if _, err := r.InstallSecret(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	wantErr(t, "slow reader", <-slow, context.Canceled)
	full := errors.New("disk full")
	_, err = r.Admin(t.Context(), "repeat", make([]byte, 1000), writer(func([]byte) (int, error) { return 0, full }))
	wantErr(t, "failing writer", err, full)
	if _, err := r.Admin(t.Context(), "other", nil, nil); err == nil || err.Error() != "unknown name" {
		t.Errorf("got error %v", err)
	}
	if _, err := r.InstallSecret(t.Context()); err != nil {
		t.Error(err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestDeadlinesAndCancels(t *testing.T) {
	m := storagetest.Memory()
	r := connected(t, serverOf(m))
	m.Delay(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	wantErr(t, "deadline", r.PutRecords(ctx, nil), context.DeadlineExceeded)
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	wantErr(t, "cancel", r.PutRecords(ctx, nil), context.Canceled)
	m.Delay(0)
	// The calls before must have ended at the server too, since writes are done
	// in order.
	if err := r.PutRecords(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestBusy(t *testing.T) {
	m := storagetest.Memory()
	r := connected(t, serverOf(m))
	m.Delay(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range maxCalls {
		all.Go(func() { _, _ = r.Memory(ctx, someone("u"), "id") })
	}
	await(t, "all under way", func() bool { r.conn.mu.Lock(); defer r.conn.mu.Unlock(); return len(r.conn.calls) == maxCalls })
	_, err := r.Memory(t.Context(), someone("u"), "id")
	wantErr(t, "one more", err, storage.ErrUnavailable)
	cancel()
	all.Wait()
	m.Delay(0)
	_, err = r.Memory(t.Context(), someone("u"), "id")
	wantErr(t, "later", err, storage.ErrNotFound)

	huge := make([]storage.Record, 5)
	for i := range huge {
		huge[i] = storage.Record{Bucket: storage.BucketSpool, Scope: someone("u"), Key: "k", Value: make([]byte, storage.MaxRecord)}
	}
	wantErr(t, "too large", r.PutRecords(t.Context(), huge), storage.ErrInvalid)
}

func TestOptionalInterfaces(t *testing.T) {
	s := serverOf(storagetest.Memory())
	s.Store = struct{ storage.Store }{s.Store} // hides the optional interfaces
	r := connected(t, s)
	for name, call := range map[string]func() error{
		"Digest":    func() error { _, err := r.Digest(t.Context(), someone("u")); return err },
		"Scopes":    func() error { _, err := r.Scopes(t.Context(), "", 0); return err },
		"Reap":      func() error { _, err := r.Reap(t.Context(), 1); return err },
		"Newest":    func() error { _, err := r.Newest(t.Context()); return err },
		"RotateKey": func() error { _, err := r.RotateKey(t.Context(), ""); return err },
	} {
		wantErr(t, name, call(), errors.ErrUnsupported)
		wantErr(t, name, call(), storage.ErrUnavailable)
	}
	s = serverOf(storagetest.Memory())
	s.Store = withOptions{s.Store}
	r = connected(t, s)
	rotated, err := r.RotateKey(t.Context(), "b")
	if want := (storage.KeyRotation{From: "a", To: "b", Keys: 7, Pending: true, Unreadable: 2, NewFile: "new", OldFile: "old"}); err != nil || rotated != want {
		t.Errorf("got %v, %v", rotated, err)
	}
	got, err := r.Digest(t.Context(), someone("u"))
	if want := (storage.Digest{Memories: 3, Sum: 1<<64 - 1}); err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
}

type withOptions struct{ storage.Store }

func (withOptions) RotateKey(_ context.Context, file string) (storage.KeyRotation, error) {
	return storage.KeyRotation{From: "a", To: file, Keys: 7, Pending: true, Unreadable: 2, NewFile: "new", OldFile: "old"}, nil
}

func (withOptions) Digest(context.Context, storage.Scope) (storage.Digest, error) {
	return storage.Digest{Memories: 3, Sum: 1<<64 - 1}, nil
}

func TestOtherBuildsAreRefused(t *testing.T) {
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.FileConn(theirs)
	if err := errors.Join(err, theirs.Close()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serverOf(storagetest.Memory()).ServeConn(t.Context(), conn) }()
	_, err = connect(ours, "another build")
	for _, err := range []error{err, <-served} {
		if err == nil || !strings.Contains(err.Error(), "both must be the same build") {
			t.Errorf("got %v", err)
		}
	}
}

func TestListenAndDial(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("a-long-name/", 12))
	for name, dir := range map[string]string{"short": t.TempDir(), "long": deep} {
		t.Run(name, func(t *testing.T) {
			if name == "long" && runtime.GOOS != "linux" {
				t.Skip("only Linux can use a longer path than a socket address holds")
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := Dial(dir, StoreSocket, testBuild); err == nil {
				t.Error("dialed a socket without a server")
			}
			for range 2 { // the second time, a file is in the way
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- serverOf(storagetest.Memory()).Listen(ctx, dir, StoreSocket) }()
				var r *Remote
				await(t, "socket", func() (ok bool) {
					var err error
					r, err = Dial(dir, StoreSocket, testBuild)
					return err == nil
				})
				info, err := os.Stat(filepath.Join(dir, StoreSocket))
				if err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("socket: %v, %v", info, err)
				}
				if got := r.Status(); !got.Open {
					t.Errorf("status: %+v", got)
				}
				if _, err := r.InstallSecret(t.Context()); err != nil {
					t.Error(err)
				}
				stop()
				if err := <-ended; err != nil {
					t.Errorf("Listen: %v", err)
				}
				_ = r.Close()
				if err := os.WriteFile(filepath.Join(dir, StoreSocket), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestStatusRoundTrip(t *testing.T) {
	want := Status{Open: true, Opening: true, Reason: "r", FailedOpens: 4, FreeBytes: 1 << 60, Damaged: 5, Panics: 6, SetAside: []string{"a", "b"}}
	got, ok := decodeStatus(want.encode())
	if !ok || !cmp.Equal(got, want) {
		t.Errorf("got %+v, %v", got, ok)
	}
}
