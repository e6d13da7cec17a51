package badger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

func mustBackup(t *testing.T, s *Store) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func mustExport(t *testing.T, cfg Config) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := ExportKeyring(cfg, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func mustImport(t *testing.T, cfg Config, keyring []byte) Imported {
	t.Helper()
	done, err := ImportKeyring(cfg, bytes.NewReader(keyring))
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// elsewhere returns another directory with the same key file.
func elsewhere(t *testing.T, cfg Config) Config {
	cfg.Dir = filepath.Join(t.TempDir(), "restored")
	return cfg
}

// everything returns what some users have, and fails if any of it is
// unreadable.
func everything(t *testing.T, s *Store, users ...string) (all []string) {
	t.Helper()
	for _, u := range users {
		scope := scopeOf(u)
		page, err := s.Scan(t.Context(), scope, storage.Query{})
		if err != nil || page.Damaged != 0 {
			t.Errorf("Scan: %d damaged, %v", page.Damaged, err)
		}
		for _, m := range page.Memories {
			all = append(all, fmt.Sprint(u, " ", m.ID, " ", m.Text, " ", m.Version))
		}
		for _, b := range storage.Buckets() {
			page, err := s.Records(t.Context(), b, scope, "", 0)
			if err != nil || page.Damaged != 0 {
				t.Errorf("Records: %d damaged, %v", page.Damaged, err)
			}
			for _, r := range page.Records {
				all = append(all, fmt.Sprint(u, " ", r.Bucket, " ", r.Key, " ", len(r.Value)))
			}
		}
		if v, err := storage.Verify(t.Context(), s, scope); err != nil || !v.Whole() {
			t.Errorf("Verify: got %+v, %v", v, err)
		}
	}
	return all
}

// TestRestore guards that a backup and an exported keyring restore the whole
// store, and that neither holds a key in the clear.
func TestRestore(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	users := []string{"a", "b", "c"}
	for _, u := range users {
		fillScope(t, s, scopeOf(u), "needle "+u)
	}
	backup := mustBackup(t, s)
	keyring := mustExport(t, cfg)
	want := everything(t, s, users...)
	secret, err := s.InstallSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, scopeOf("a"), memory("later", "is not in the backup"))
	hidden := map[string][]byte{"content": []byte("needle"), "install secret": secret, "HMAC secret": s.session.keys.secret}
	for _, u := range users {
		_, key, err := s.session.keys.readLocked(s.session.keys.scope(scopeOf(u)))
		if err != nil {
			t.Fatal(err)
		}
		hidden["data key of "+u] = key
	}
	for name, secret := range hidden {
		if bytes.Contains(backup, secret) || bytes.Contains(keyring, secret) {
			t.Errorf("%s is in the backup or the keyring", name)
		}
	}
	for _, u := range users { // a backup holds no wrapped keys either
		content, err := os.ReadFile(s.session.keys.scopePath(s.session.keys.scope(scopeOf(u))))
		if err != nil || bytes.Contains(backup, content[12:]) {
			t.Errorf("the wrapped key of %s is in the backup, %v", u, err)
		}
	}

	to := elsewhere(t, cfg)
	if got, want := mustImport(t, to, keyring), (Imported{Added: 3}); got != want {
		t.Errorf("ImportKeyring: got %+v, want %+v", got, want)
	}
	done, err := Restore(t.Context(), to, bytes.NewReader(backup))
	if err != nil || done.Scopes != 3 || done.Erased != 0 || done.From == 0 {
		t.Errorf("Restore: got %+v, %v, want 3 scopes", done, err)
	}
	restored := mustOpen(t, to)
	if d := cmp.Diff(want, everything(t, restored, users...)); d != "" {
		t.Errorf("restored (-want +got):\n%s", d)
	}
	if got, err := restored.InstallSecret(t.Context()); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("InstallSecret: differs, %v", err)
	}
	if n := occurrences(t, cfg.Dir, []byte("restoring")); n != 0 {
		t.Errorf("the directory of the restore was left behind")
	}
	// The passage count of a turn is restored: a shorter one replaces it.
	turn := storage.Write{Scope: scopeOf("a"), Turn: "needle a"}
	if err := restored.Put(t.Context(), []storage.Write{turn}); err != nil {
		t.Fatal(err)
	}
	if _, err := restored.Memory(t.Context(), scopeOf("a"), "needle a.0"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Memory of a replaced turn: got %v", err)
	}
	if _, err := Restore(t.Context(), to, bytes.NewReader(backup)); err == nil || !strings.Contains(err.Error(), "there is data in") {
		t.Errorf("Restore over data: got %v", err)
	}
}

// TestRestoreHonoursErasure guards that what was erased after a backup does not
// come back, whichever way the keys come.
func TestRestoreHonoursErasure(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	for _, u := range []string{"gone", "reborn", "kept"} {
		mustPut(t, s, scopeOf(u), memory("m", "before"))
	}
	backup, oldKeyring := mustBackup(t, s), mustExport(t, cfg)
	for _, u := range []string{"gone", "reborn"} {
		if _, err := s.Erase(t.Context(), scopeOf(u)); err != nil {
			t.Fatal(err)
		}
	}
	mustPut(t, s, scopeOf("reborn"), memory("new", "after"))
	newKeyring := mustExport(t, cfg)
	if st, err := ReadKeyStatus(cfg); err != nil || st.Scopes != 2 || st.Destroyed != 2 || st.Unreadable != 0 || st.RotatingTo != "" || st.WrappedBy[st.Key] != 3 {
		t.Errorf("ReadKeyStatus: got %+v, %v, want 2 scopes, 2 destroyed", st, err)
	}
	mustClose(t, s)

	want := []string{"kept m before 1"}
	check := func(t *testing.T, cfg Config, erased int) {
		t.Helper()
		done, err := Restore(t.Context(), cfg, bytes.NewReader(backup))
		if err != nil || done.Erased != erased {
			t.Errorf("Restore: got %+v, %v, want %d scopes left out", done, err, erased)
		}
		s := mustOpen(t, cfg)
		if d := cmp.Diff(want, everything(t, s, "gone", "reborn", "kept")); d != "" {
			t.Errorf("restored (-want +got):\n%s", d)
		}
		mustPut(t, s, scopeOf("gone"), memory("m", "a new beginning"))
	}
	t.Run("keyring exported after the erasure", func(t *testing.T) {
		to := elsewhere(t, cfg)
		mustImport(t, to, newKeyring)
		check(t, to, 2)
	})
	t.Run("older keyring imported into the newer one", func(t *testing.T) {
		to := elsewhere(t, cfg)
		mustImport(t, to, newKeyring)
		if got, want := mustImport(t, to, oldKeyring), (Imported{Kept: 1, Erased: 2}); got != want {
			t.Errorf("ImportKeyring: got %+v, want %+v", got, want)
		}
		check(t, to, 2)
	})
	t.Run("newer keyring imported into the older one", func(t *testing.T) {
		to := elsewhere(t, cfg)
		mustImport(t, to, oldKeyring)
		if got, want := mustImport(t, to, newKeyring), (Imported{Kept: 2, Condemned: 2}); got != want {
			t.Errorf("ImportKeyring: got %+v, want %+v", got, want)
		}
		check(t, to, 2)
	})
	t.Run("newer keyring imported after restoring with the older one", func(t *testing.T) {
		to := elsewhere(t, cfg)
		mustImport(t, to, oldKeyring)
		if _, err := Restore(t.Context(), to, bytes.NewReader(backup)); err != nil {
			t.Fatal(err)
		}
		mustImport(t, to, newKeyring)
		s := mustOpen(t, to)
		if d := cmp.Diff(want, everything(t, s, "gone", "reborn", "kept")); d != "" {
			t.Errorf("restored (-want +got):\n%s", d)
		}
	})
	t.Run("same directory, data lost", func(t *testing.T) {
		if err := os.RemoveAll(filepath.Join(cfg.Dir, "data")); err != nil {
			t.Fatal(err)
		}
		check(t, cfg, 2)
	})
}

// TestRestoreRefuses guards that a backup that is incomplete, altered or of
// another store is refused, and leaves nothing.
func TestRestoreRefuses(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	for i := range 5 {
		mustPut(t, s, scopeOf(fmt.Sprint(i)), memory("m", "text"))
	}
	backup, keyring := mustBackup(t, s), mustExport(t, cfg)
	foreign := mustOpen(t, testConfig(t))
	mustPut(t, foreign, scopeOf("0"), memory("m", "text"))
	foreignBackup := mustBackup(t, foreign)

	flipped := func(at int) []byte {
		b := bytes.Clone(backup)
		b[at] ^= 1
		return b
	}
	to := elsewhere(t, cfg)
	if _, err := Restore(t.Context(), to, bytes.NewReader(backup)); err == nil || !strings.Contains(err.Error(), "no keyring") {
		t.Errorf("Restore without a keyring: got %v", err)
	}
	mustImport(t, to, keyring)
	before := fileSums(t, to.Dir)
	refused := func(name string, content []byte, want string) {
		t.Helper()
		_, err := Restore(t.Context(), to, bytes.NewReader(content))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nothing was restored") {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
		if d := cmp.Diff(before, fileSums(t, to.Dir)); d != "" {
			t.Errorf("%s: something was left behind:\n%s", name, d)
		}
	}
	refused("nothing", nil, "not a backup")
	refused("something else", []byte("PK\x03\x04 and so on and so on and so on and so on and so on"), "not a backup")
	refused("another store's", foreignBackup, "another store")
	newer := flipped(0)
	copy(newer, backup)
	newer[len(backupMagic)+4] = 99
	refused("newer schema", newer, "newer Remora")
	older := flipped(0)
	copy(older, backup)
	older[len(backupMagic)+4] = 1
	refused("older schema", older, "older Remora")
	refused("something behind it", append(bytes.Clone(backup), 0), "damaged")
	for n := 1; n < len(backup); n += 1 + len(backup)/50 {
		refused(fmt.Sprintf("%d of %d bytes", n, len(backup)), backup[:n], "truncated")
	}
	for at := len(backupMagic) + 5; at < len(backup); at += 1 + len(backup)/50 {
		_, err := Restore(t.Context(), to, bytes.NewReader(flipped(at)))
		if err == nil || !strings.Contains(err.Error(), "nothing was restored") {
			t.Errorf("bit %d flipped: got %v", at, err)
		}
	}
	// One scope is removed, and the trailer kept.
	if _, err := Restore(t.Context(), to, io.MultiReader(bytes.NewReader(backup))); err != nil {
		t.Errorf("the backup itself: %v", err)
	}
}

// TestImportRefuses is TestRestoreRefuses for keyrings.
func TestImportRefuses(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	for i := range 3 {
		mustPut(t, s, scopeOf(fmt.Sprint(i)), memory("m", "text"))
	}
	keyring := mustExport(t, cfg)
	to := elsewhere(t, cfg)
	refused := func(name string, cfg Config, content []byte, want string) {
		t.Helper()
		_, err := ImportKeyring(cfg, bytes.NewReader(content))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
		if there, err := exists(to.Dir); there || err != nil {
			t.Fatalf("%s: something was left behind, %v", name, err)
		}
	}
	refused("nothing", to, nil, "not a keyring")
	refused("a backup", to, mustBackup(t, s), "not a keyring")
	for n := len(keyringFileMagic); n < len(keyring); n += 11 {
		refused(fmt.Sprintf("%d of %d bytes", n, len(keyring)), to, keyring[:n], "truncated")
	}
	for at := len(keyringFileMagic); at < len(keyring); at += 3 {
		b := bytes.Clone(keyring)
		b[at] ^= 1
		refused(fmt.Sprintf("bit %d flipped", at), to, b, "")
	}
	other := to
	other.Key = bytes.Repeat([]byte{9}, KeySize)
	refused("another key", other, keyring, "wrong key")
	missing := to
	missing.KeyFile = filepath.Join(t.TempDir(), "none")
	refused("no key", missing, keyring, "does not exist")

	foreign := testConfig(t)
	foreign.Key = bytes.Repeat([]byte{3}, KeySize)
	mustClose(t, mustOpen(t, foreign))
	same := cfg
	same.Key, same.Dir = foreign.Key, filepath.Join(t.TempDir(), "same")
	mustClose(t, mustOpen(t, same))
	if _, err := ImportKeyring(foreign, bytes.NewReader(mustExport(t, same))); err == nil || !strings.Contains(err.Error(), "another store") {
		t.Errorf("a keyring of another store: got %v", err)
	}
}

// TestBackupIsOfOneMoment guards that a backup holds what was written up to one
// moment, and nothing later.
func TestBackupIsOfOneMoment(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	const users = 6
	step := func(n int) {
		for u := range users { // in this order
			mustPut(t, s, scopeOf(fmt.Sprint(u)), memory("m", strings.Repeat(fmt.Sprintf("%06d ", n), 3000)), memory(fmt.Sprint("n", n%50), "x"))
		}
	}
	step(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
				step(n)
			}
		}
	}()
	var backups [][]byte
	for range 5 {
		backups = append(backups, mustBackup(t, s))
	}
	close(stop)
	<-stopped
	keyring := mustExport(t, cfg)
	for i, b := range backups {
		to := elsewhere(t, cfg)
		mustImport(t, to, keyring)
		if _, err := Restore(t.Context(), to, bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		restored := mustOpen(t, to)
		last := ""
		for u := range users {
			m, err := restored.Memory(t.Context(), scopeOf(fmt.Sprint(u)), "m")
			if err != nil {
				t.Fatal(err)
			}
			if at := m.Text[:6]; last != "" && at > last {
				t.Errorf("backup %d: user %d is at %s, the one written before at %s", i, u, at, last)
			}
			last = m.Text[:6]
			if v, err := storage.Verify(t.Context(), restored, scopeOf(fmt.Sprint(u))); err != nil || !v.Whole() {
				t.Errorf("backup %d: Verify: got %+v, %v", i, v, err)
			}
		}
		mustClose(t, restored)
	}
}

// TestBackupReturnsErrorsOfItsWriter guards that a failing output is not
// reported as an unavailable store.
func TestBackupReturnsErrorsOfItsWriter(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	mustPut(t, s, scopeOf("u"), memory("m", "text"))
	full := errors.New("no space left")
	r, w := io.Pipe()
	r.CloseWithError(full)
	if err := s.Backup(t.Context(), w); !errors.Is(err, full) || errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("Backup: got %v, want %v", err, full)
	}
}
