package badger

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// TestMissingScopeKey guards that a scope with data and without its key is
// neither read nor written and gets no new key, that other scopes are
// unaffected, that the loss is reported, and that putting the key back is
// enough.
func TestMissingScopeKey(t *testing.T) {
	for _, c := range []struct {
		name string
		fill func(s *Store, scope storage.Scope) error
	}{
		{"memories", func(s *Store, scope storage.Scope) error {
			return s.Put(t.Context(), []storage.Write{{Scope: scope, Memories: []storage.Memory{memory("a", "text")}}})
		}},
		{"a record alone", func(s *Store, scope storage.Scope) error {
			return s.PutRecords(t.Context(), []storage.Record{{Bucket: storage.BucketSummary, Scope: scope, Key: "a", Value: []byte("text")}})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(t)
			var log lockedBuffer
			s := New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
			open := func() {
				t.Helper()
				if err := s.Open(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			open()
			t.Cleanup(func() { mustClose(t, s) })
			lost, kept := scopeOf("lost"), scopeOf("kept")
			for _, scope := range []storage.Scope{lost, kept} {
				if err := c.fill(s, scope); err != nil {
					t.Fatal(err)
				}
			}
			path := s.session.keys.scopePath(s.session.keys.scope(lost))
			content := mustRead(t, path)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			wantDamaged := func(want int) {
				t.Helper()
				if page, err := s.Scopes(t.Context(), "", 0); err != nil || page.Damaged != want {
					t.Errorf("Scopes: %d damaged, %v, want %d", page.Damaged, err, want)
				}
			}
			wantDamaged(1) // even though the key is cached
			mustClose(t, s)
			open()
			toldBefore := strings.Count(log.String(), "key is missing")

			record := storage.Record{Bucket: storage.BucketSpool, Scope: lost, Key: "k"}
			for name, do := range map[string]func() error{
				"Put": func() error {
					return s.Put(t.Context(), []storage.Write{{Scope: lost, Memories: []storage.Memory{memory("b", "new")}}})
				},
				"PutRecords": func() error { return s.PutRecords(t.Context(), []storage.Record{record}) },
				"Memory":     func() error { _, err := s.Memory(t.Context(), lost, "a"); return err },
				"Scan":       func() error { _, err := s.Scan(t.Context(), lost, storage.Query{}); return err },
				"Digest":     func() error { _, err := s.Digest(t.Context(), lost); return err },
				"Record":     func() error { _, err := s.Record(t.Context(), record.Ref()); return err },
				"Records": func() error {
					_, err := s.Records(t.Context(), storage.BucketSummary, lost, "", 0)
					return err
				},
			} {
				before := s.Health().Damaged
				if err := do(); !errors.Is(err, storage.ErrDamaged) {
					t.Errorf("%s: got %v, want ErrDamaged", name, err)
				}
				if s.Health().Damaged == before {
					t.Errorf("%s: not counted", name)
				}
			}
			if there, err := exists(path); there || err != nil {
				t.Errorf("a key was made although there is data: %t, %v", there, err)
			}
			if n := strings.Count(log.String(), "key is missing") - toldBefore; n != 1 {
				t.Errorf("logged %d times, want once:\n%s", n, log.String())
			}
			wantDamaged(1)
			mustPut(t, s, kept, memory("b", "new"))
			mustPut(t, s, scopeOf("new"), memory("b", "new"))

			write(t, path, string(content))
			mustPut(t, s, lost, memory("b", "new"))
			wantDamaged(0)
			if v, err := storage.Verify(t.Context(), s, lost); err != nil || !v.Whole() {
				t.Errorf("Verify with the key back: got %+v, %v", v, err)
			}
		})
	}
}

// TestComingBackAfterErasure guards that an erased user is not taken for one
// whose key is missing, whatever interrupted the erasure.
func TestComingBackAfterErasure(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	scope := scopeOf("u")
	back := func(what string) {
		t.Helper()
		if page, err := s.Scan(t.Context(), scope, storage.Query{}); err != nil || len(page.Memories)+page.Damaged != 0 {
			t.Errorf("%s: got %+v, %v, want nothing", what, page, err)
		}
		fillScope(t, s, scope, "needle")
	}
	erase := func() {
		t.Helper()
		if _, err := s.Erase(t.Context(), scope); err != nil {
			t.Fatal(err)
		}
	}
	back("new")
	erase()
	back("erased")

	keys := s.session.keys
	h := keys.scope(scope)
	if err := errors.Join(keys.mark(h), keys.destroy(h)); err != nil {
		t.Fatal(err)
	}
	if page, err := s.Scan(t.Context(), scope, storage.Query{}); err != nil || len(page.Memories)+page.Damaged != 0 {
		t.Errorf("while it is being erased: got %+v, %v, want nothing", page, err)
	}
	mustClose(t, s)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	back("erasure interrupted")

	mustClose(t, s)
	if err := os.Remove(keys.scopePath(h)); err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Scan(t.Context(), scope, storage.Query{}); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("without its key: got %v, want ErrDamaged", err)
	}
	erase()
	back("erased without its key")
}

// TestReapWithoutItsKey guards that expired memories are removed even if their
// key is missing, and are not missed when it is back.
func TestReapWithoutItsKey(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	scope := scopeOf("u")
	short := memory("short", "text")
	short.ExpiresAt = now() + 1
	mustPut(t, s, scope, short, memory("long", "text"))
	path := s.session.keys.scopePath(s.session.keys.scope(scope))
	mustClose(t, s)
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Reap(t.Context(), now()+1000); err != nil || n == 0 {
		t.Errorf("Reap: %d, %v", n, err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if v, err := storage.Verify(t.Context(), s, scope); err != nil || !v.Whole() || v.Memories != 1 {
		t.Errorf("Verify: got %+v, %v, want the one that does not expire", v, err)
	}
}

// TestForeignScopeKey guards that a key file of another store counts as damage
// of that user. As a passing error it would make writers retry forever.
func TestForeignScopeKey(t *testing.T) {
	var files [2]string
	var cfgs [2]Config
	for i := range cfgs {
		cfgs[i] = testConfig(t)
		s := mustOpen(t, cfgs[i])
		mustPut(t, s, scopeOf("u"), memory("id", "text"))
		files[i] = s.session.keys.scopePath(s.session.keys.scope(scopeOf("u")))
		mustClose(t, s)
	}
	foreign := mustRead(t, files[1])
	write(t, files[0], string(foreign))
	s := mustOpen(t, cfgs[0])
	err := s.Put(t.Context(), []storage.Write{{Scope: scopeOf("u"), Memories: []storage.Memory{memory("more", "text")}}})
	if !errors.Is(err, storage.ErrDamaged) || errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("Put: got %v, want ErrDamaged", err)
	}
	mustPut(t, s, scopeOf("v"), memory("id", "text"))
}
