package request

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/api"
)

// Upload is a file that a client has sent. It is in a temporary directory of its
// own, which only this user of the machine can read.
type Upload struct {
	Path string
	Size int64 // in bytes
	dir  string
}

// SaveUpload saves what a client sends as a file of that name, of which the last
// part is kept: the format of an export may be detected by it. More than
// api.MaxImport bytes are api.ErrTooLarge. The caller removes it.
func SaveUpload(name string, body io.Reader) (*Upload, error) {
	name, err := fileName(name)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "remora-import-")
	if err != nil {
		return nil, err
	}
	u := &Upload{Path: filepath.Join(dir, name), dir: dir}
	if u.Size, err = saveFile(u.Path, body); err != nil {
		return nil, errors.Join(err, u.Remove())
	}
	return u, nil
}

// Name returns the name of the file.
func (u *Upload) Name() string { return filepath.Base(u.Path) }

// Remove removes the file and its directory. It may be called again.
func (u *Upload) Remove() error { return os.RemoveAll(u.dir) }

// maxFileName bounds the name of an upload, in bytes.
const maxFileName = 200

// fileName returns the last part of the name that a client gives a file.
func fileName(given string) (string, error) {
	if !utf8.ValidString(given) || strings.ContainsFunc(given, unicode.IsControl) {
		return "", &api.FieldError{Field: "name", Why: "must be printable UTF-8"}
	}
	name := filepath.Base(filepath.Clean("/" + given))
	switch {
	case len(name) > maxFileName:
		return "", &api.FieldError{Field: "name", Why: fmt.Sprintf("must have at most %d bytes", maxFileName)}
	case name == "/":
		return "export", nil
	}
	return name, nil
}

func saveFile(path string, body io.Reader) (int64, error) {
	f, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	return copyUpload(f, body)
}

// copyUpload copies what a client sends to a file, and closes it.
func copyUpload(f io.WriteCloser, body io.Reader) (int64, error) {
	from := &source{Reader: io.LimitReader(body, api.MaxImport+1)}
	n, err := io.Copy(f, from)
	err = errors.Join(err, f.Close())
	switch {
	case n > api.MaxImport:
		return n, api.ErrTooLarge
	case from.failed:
		return n, &api.FieldError{Field: "body", Why: "broke off"}
	}
	return n, err
}

// source tells what the client does not send from what the disk does not take.
type source struct {
	io.Reader
	failed bool
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.failed = s.failed || err != nil && !errors.Is(err, io.EOF)
	return n, err
}

// ExportType returns the media type of an export in one of api.ExportFormats.
func ExportType(format string) string {
	switch format {
	case api.FormatMem0:
		return "application/json"
	case api.FormatMarkdown:
		return "text/markdown; charset=utf-8"
	}
	return "application/jsonl"
}

// Stream answers with what export writes, as it comes. What fails before the
// first byte is returned. What fails after it cuts the connection, so that a
// part is not mistaken for the whole.
func Stream(w http.ResponseWriter, log *slog.Logger, mediaType string, export func(write func([]byte) error) error) error {
	begun := false
	begin := func() {
		begun = true
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(http.StatusOK)
	}
	err := export(func(p []byte) error {
		if !begun {
			begin()
		}
		_, err := w.Write(p)
		return err
	})
	switch {
	case err != nil && begun:
		log.Warn("an export was cut short", "error", err)
		panic(http.ErrAbortHandler)
	case err != nil:
		return err
	case !begun:
		begin()
	}
	return nil
}
