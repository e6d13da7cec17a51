package request

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/remora-proxy/remora/api"
)

func TestSaveUpload(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for given, want := range map[string]string{
		"": "export", "/": "export", "a.zip": "a.zip", "../../etc/passwd": "passwd", "C/é.json": "é.json", "..": "export",
	} {
		u, err := SaveUpload(given, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(u.Path)
		if u.Name() != want || u.Size != 2 || string(content) != "{}" || err != nil {
			t.Errorf("%q: %q with %d bytes, %q, %v", given, u.Name(), u.Size, content, err)
		}
		for range 2 {
			if err := u.Remove(); err != nil {
				t.Error(err)
			}
		}
	}
	for name, refused := range map[string]struct {
		name  string
		body  io.Reader
		field string
	}{
		"control":  {"a\nb", strings.NewReader(""), "name"},
		"no UTF-8": {"a\xff", strings.NewReader(""), "name"},
		"long":     {strings.Repeat("a", maxFileName+1), strings.NewReader(""), "name"},
		"broken":   {"a", io.MultiReader(strings.NewReader("{"), iotest.ErrReader(errors.New("the client left"))), "body"},
	} {
		_, err := SaveUpload(refused.name, refused.body)
		if field, ok := errors.AsType[*api.FieldError](err); !ok || field.Field != refused.field {
			t.Errorf("%s: %v, want a problem with %s", name, err, refused.field)
		}
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 || err != nil {
		t.Errorf("%v are left, %v", left, err)
	}
}

// A disk that is full is no fault of the client.
func TestUploadWithoutADisk(t *testing.T) {
	_, err := saveFile(filepath.Join(t.TempDir(), "missing", "file"), strings.NewReader("{}"))
	if _, ok := errors.AsType[*api.FieldError](err); ok || err == nil {
		t.Errorf("%v, want an error of the disk", err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("/dev/full can't be written to")
	}
	_, err = copyUpload(full, strings.NewReader("{}"))
	if _, ok := errors.AsType[*api.FieldError](err); ok || err == nil {
		t.Errorf("%v, want an error of the disk", err)
	}
}

func TestStream(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		export func(write func([]byte) error) error
		err    error
		cut    bool
		body   string
	}{
		"nothing": {func(func([]byte) error) error { return nil }, nil, false, ""},
		"text":    {func(write func([]byte) error) error { return errors.Join(write([]byte("a")), write([]byte("b"))) }, nil, false, "ab"},
		"early":   {func(func([]byte) error) error { return broken }, broken, false, ""},
		"late":    {func(write func([]byte) error) error { return errors.Join(write([]byte("a")), broken) }, nil, true, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			defer func() {
				if got := recover(); (got != nil) != test.cut || test.cut && got != http.ErrAbortHandler {
					t.Errorf("it ends with %v, want the connection to be cut: %t", got, test.cut)
				}
				if w.Body.String() != test.body {
					t.Errorf("got %q, want %q", w.Body, test.body)
				}
			}()
			err := Stream(w, log, "text/plain", test.export)
			if !errors.Is(err, test.err) {
				t.Errorf("got %v, want %v", err, test.err)
			}
			if err == nil && w.Header().Get("Content-Type") != "text/plain" {
				t.Errorf("the type is %q", w.Header().Get("Content-Type"))
			}
		})
	}
}
