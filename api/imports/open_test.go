package imports

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

const oneRemora = `{"id":"1","kind":"fact","text":"a"}`

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("folder/deep/a.jsonl", []byte(oneRemora))
	for name, path := range map[string]string{
		"folder":              filepath.Join(dir, "folder"),
		"file":                write("b.jsonl", []byte(oneRemora)),
		"file without a type": write("b", []byte(oneRemora)),
		"zip":                 write("c.zip", zipped(t, map[string]string{"x/a.jsonl": oneRemora})),
		"zip of another name": write("d.bin", zipped(t, map[string]string{"a.jsonl": oneRemora})),
	} {
		t.Run(name, func(t *testing.T) {
			fsys, closer, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			report, err := Read(fsys, "", nothing)
			if err != nil || report.Memories != 1 || report.Format != "remora" {
				t.Errorf("%+v, %v", report, err)
			}
			if err := closer.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want ErrNotExist", err)
	}
	cut := zipped(t, map[string]string{"a.jsonl": oneRemora})[:30]
	path := filepath.Join(dir, "cut.zip")
	if err := os.WriteFile(path, cut, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(path); err == nil || !strings.Contains(err.Error(), "cut.zip") {
		t.Errorf("error %v", err)
	}
	if _, err := OpenBytes("cut.zip", cut); err == nil || !strings.Contains(err.Error(), "cut.zip") {
		t.Errorf("error %v", err)
	}
	if runtime.GOOS != "windows" {
		if _, _, err := Open(os.DevNull); err == nil {
			t.Error("opened a device")
		}
	}
}

// A link in the folder of an export does not lead to other files.
func TestOpenFollowsNoLinks(t *testing.T) {
	dir := t.TempDir()
	export := filepath.Join(dir, "export")
	if err := os.Mkdir(export, 0o700); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret.jsonl")
	if err := os.WriteFile(secret, []byte(oneRemora), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(export, "a.jsonl")); err != nil {
		t.Skip("needs symbolic links: ", err)
	}
	fsys, closer, err := Open(export)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	if _, err := Read(fsys, "remora", nothing); !errors.Is(err, ErrNothing) {
		t.Errorf("error %v, want ErrNothing", err)
	}
	if f, err := fsys.Open("a.jsonl"); err == nil {
		f.Close()
		t.Error("opened a file outside")
	}
}

func TestOpenBytes(t *testing.T) {
	for name, body := range map[string][]byte{
		"a.jsonl":         []byte(oneRemora),
		"":                []byte(oneRemora),
		"..":              []byte(oneRemora),
		"/":               []byte(oneRemora),
		"../../etc/x":     []byte(oneRemora),
		`C:\x\a.jsonl`:    []byte(oneRemora),
		"bad\xffname":     []byte(oneRemora),
		"a.json":          zipped(t, map[string]string{"a.jsonl": oneRemora}),
		"rollout-1.jsonl": []byte(`{"type":"event_msg","payload":{"type":"user_message","message":"a"}}`),
	} {
		fsys, err := OpenBytes(name, body)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if report, err := Read(fsys, "", nothing); err != nil || report.Memories+report.Conversations != 1 {
			t.Errorf("%q: %+v, %v", name, report, err)
		}
	}
	empty, err := OpenBytes("a.zip", zipped(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(empty, "", nothing); !errors.Is(err, ErrFormat) {
		t.Errorf("empty zip: %v, want ErrFormat", err)
	}
}

// The file systems of this package keep the contract of fs.FS.
func TestSingleIsAFileSystem(t *testing.T) {
	fsys, err := OpenBytes("x/a.jsonl", []byte(oneRemora))
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(fsys, "a.jsonl"); err != nil {
		t.Error(err)
	}
}

// What is in a zip may be damaged, which shows in its checksums.
func TestDamagedZip(t *testing.T) {
	body := zipped(t, map[string]string{"a.jsonl": strings.Repeat(oneRemora+"\n", 100)})
	body[60] ^= 0xff
	fsys, err := OpenBytes("a.zip", body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(fsys, "remora", nothing); err == nil || !strings.Contains(err.Error(), "a.jsonl") {
		t.Errorf("error %v", err)
	}
}

func TestNamesInErrors(t *testing.T) {
	for name, want := range map[string]string{
		"a\nb":                         `"a\nb"`,
		strings.Repeat("é", 150):       `"` + strings.Repeat("é", 100) + `..."`,
		"x" + strings.Repeat("é", 150): `"x` + strings.Repeat("é", 99) + `..."`,
	} {
		if got := quoted(name); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
