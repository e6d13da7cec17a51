package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/imports"
	"github.com/remora-proxy/remora/api/request"
)

func (c *call) event() error {
	var m api.Message
	if err := c.decode(&m); err != nil {
		return err
	}
	id, err := c.service.Report(c.r.Context(), c.p, c.t, m)
	if err != nil {
		return err
	}
	return c.write(http.StatusAccepted, map[string]string{"turn": id})
}

func (c *call) audits() error {
	list, err := c.service.Audits(c.r.Context(), c.p, c.t)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, map[string]any{"audits": auditsOf(list)})
}

func (c *call) users() error {
	limit, err := request.Number(c.r, "limit")
	if err != nil {
		return err
	}
	page, err := c.service.Users(c.r.Context(), c.p, c.t, c.r.URL.Query().Get("cursor"), limit)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}

// erase erases the user in the path.
func (c *call) erase() error {
	id := c.r.PathValue("id")
	if c.t.User != "" && c.t.User != id {
		return &api.FieldError{Field: "user", Why: "is another than the user in the path"}
	}
	c.t.User = id
	receipt, err := c.service.Erase(c.r.Context(), c.p, c.t)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, receipt)
}

func (c *call) eraseConversation() error {
	receipt, err := c.service.EraseConversation(c.r.Context(), c.p, c.t, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, receipt)
}

// mediaTypes are those of exports.
var mediaTypes = map[string]string{
	api.FormatRemora: "application/jsonl", api.FormatMem0: "application/json", api.FormatMarkdown: "text/markdown; charset=utf-8",
}

// export streams. What fails after the first byte cuts the connection, so that
// a part is not mistaken for the whole.
func (c *call) export() error {
	format := c.r.URL.Query().Get("format")
	if format == "" {
		format = api.FormatRemora
	}
	begun := false
	err := c.service.Export(c.r.Context(), c.p, c.t, format, func(p []byte) error {
		if !begun {
			begun = true
			c.w.Header().Set("Content-Type", mediaTypes[format])
			c.w.WriteHeader(http.StatusOK)
		}
		_, err := c.w.Write(p)
		return err
	})
	switch {
	case err != nil && begun:
		c.log.Warn("an export was cut short", "error", err)
		panic(http.ErrAbortHandler)
	case err != nil:
		return err
	case !begun:
		c.w.Header().Set("Content-Type", mediaTypes[format])
		c.w.WriteHeader(http.StatusOK)
	}
	return nil
}

// importFile reads an export of another tool from the body.
func (c *call) importFile() error {
	select {
	case c.importing <- struct{}{}:
		defer func() { <-c.importing }()
	default:
		return api.ErrBusy
	}
	dry, _, err := c.flag("dryRun")
	if err != nil {
		return err
	}
	if c.r.ContentLength > api.MaxImport {
		return api.ErrTooLarge
	}
	q := c.r.URL.Query()
	name, err := fileName(q.Get("name"))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "remora-import-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, name)
	if err := save(path, c.r.Body); err != nil {
		return err
	}
	fsys, closer, err := imports.Open(path)
	if err != nil {
		return &api.FieldError{Field: "body", Why: "is no export that can be read"}
	}
	defer func() { _ = closer.Close() }()
	report, err := c.service.Import(c.r.Context(), c.p, c.t, fsys, api.ImportOptions{Format: q.Get("format"), DryRun: dry}, nil)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, report)
}

// maxFileName bounds the name of an export's file, in bytes.
const maxFileName = 200

// fileName returns the last part of the name that a client gives an export, by
// which its format may be detected.
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

func save(path string, body io.Reader) error {
	f, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(body, api.MaxImport+1))
	err = errors.Join(err, f.Close())
	if n > api.MaxImport {
		return api.ErrTooLarge
	}
	if err != nil {
		return &api.FieldError{Field: "body", Why: "broke off"}
	}
	return nil
}
