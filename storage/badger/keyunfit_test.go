//go:build unix

package badger

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestKeyFileWithoutEnd guards that only regular files are read, and no more of
// them than a key can take.
func TestKeyFileWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	pipe, large, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "large"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, large, strings.Repeat(" ", maxKeyFile)+strings.Repeat("0f", KeySize))
	for file, want := range map[string]string{
		pipe: "is not a regular file", "/dev/zero": "is not a regular file", dir: "is not a regular file", large: "is larger than 4096 bytes",
	} {
		if _, err := readKEK(file); err == nil || !strings.Contains(err.Error(), "key file "+file) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
	write(t, filepath.Join(dir, "..data", "key"), strings.Repeat("0f", KeySize))
	if err := os.Symlink(filepath.Join("..data", "key"), link); err != nil {
		t.Fatal(err)
	}
	if _, err := readKEK(link); err != nil {
		t.Errorf("a link to a key, like a mounted secret: %v", err)
	}
}

// TestReasonWithoutKey guards that the reason why no key can be made is the
// same at each attempt, so that it is logged once. The file's name leaves no
// room for that of a temporary file.
func TestReasonWithoutKey(t *testing.T) {
	for _, place := range []NewKeyPlace{NewKeyInFile, NewKeyOnMount, NewKeyBeside} {
		cfg := testConfig(t)
		cfg.NewKey = place
		cfg.KeyFile = filepath.Join(filepath.Dir(cfg.Dir), strings.Repeat("k", 245))
		var reasons []string
		for range 2 {
			s := New(cfg, nil)
			if err := s.Open(t.Context()); err == nil {
				mustClose(t, s)
				t.Fatal("it opened")
			}
			reasons = append(reasons, s.Health().Reason)
		}
		if reasons[0] != reasons[1] || !strings.HasPrefix(reasons[0], "key file "+cfg.KeyFile) || !strings.HasSuffix(reasons[0], syscall.ENAMETOOLONG.Error()) {
			t.Errorf("%d: got %q", place, reasons)
		}
	}
}

// TestCheckNewKey guards that CheckNewKey reports what opening would, makes
// nothing and does not speak of damage.
func TestCheckNewKey(t *testing.T) {
	key := strings.Repeat("0f", KeySize)
	for _, test := range []struct {
		name  string
		place NewKeyPlace
		make  func(t *testing.T, file string)
		want  string // of the error
		makes bool   // a key would be made
	}{
		{"a key", NewKeyOnMount, func(t *testing.T, file string) { write(t, file, key) }, "", false},
		{"none yet", NewKeyInFile, nil, "", true},
		{"none yet, of its own", NewKeyBeside, nil, "", true},
		{"none yet, on a mount", NewKeyOnMount, func(t *testing.T, file string) { write(t, file+".other", "") }, "", true},
		{"no mount", NewKeyOnMount, nil, "its directory is missing", false},
		{"no place", NewKeyNowhere, nil, "none is made there", false},
		{"empty", NewKeyOnMount, func(t *testing.T, file string) { write(t, file, "\n") }, "it is empty", false},
		{"no key", NewKeyInFile, func(t *testing.T, file string) { write(t, file, "hunter2") }, "is not a key", false},
		{"a directory", NewKeyInFile, func(t *testing.T, file string) { write(t, filepath.Join(file, "x"), "") }, "is not a regular file", false},
		{"below a file", NewKeyInFile, func(t *testing.T, file string) { write(t, filepath.Dir(file), "") }, "not a directory", false},
		{"a link to nothing", NewKeyInFile, func(t *testing.T, file string) {
			write(t, file+".other", "")
			if err := os.Symlink(file+".gone", file); err != nil {
				t.Fatal(err)
			}
		}, "dangling link", false},
	} {
		cfg := testConfig(t)
		cfg.NewKey = test.place
		if test.make != nil {
			test.make(t, cfg.KeyFile)
		}
		before := countFiles(t, filepath.Dir(cfg.Dir))
		makeIn, err := CheckNewKey(cfg)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), cfg.KeyFile)) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
		if want := filepath.Dir(cfg.KeyFile); (makeIn == want) != test.makes {
			t.Errorf("%s: a key would be made in %q, want %v", test.name, makeIn, test.makes)
		}
		if after := countFiles(t, filepath.Dir(cfg.Dir)); after != before {
			t.Errorf("%s: files: got %d, want %d", test.name, after, before)
		}
		s := New(cfg, nil)
		openErr := s.Open(t.Context())
		if openErr == nil {
			mustClose(t, s)
		}
		if got := s.Health().Reason; (openErr == nil) != (err == nil) || err != nil && got != err.Error() || strings.Contains(got, "damaged") {
			t.Errorf("%s: opening reports %q, checking %v", test.name, got, err)
		}
	}
}

// countFiles counts files, including dangling links.
func countFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, _ os.DirEntry, err error) error { n++; return err })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRotateWithoutMount guards that no new key is made in a directory that is
// missing because it is not mounted.
func TestRotateWithoutMount(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	file := filepath.Join(filepath.Dir(cfg.Dir), "volume", "new.key")
	if _, err := s.RotateKey(t.Context(), file); err == nil || !strings.Contains(err.Error(), "its directory is missing") {
		t.Errorf("RotateKey: got %v, want a refusal", err)
	}
	if _, err := os.Stat(filepath.Dir(file)); err == nil {
		t.Error("the directory was made")
	}
}
