package rest

import (
	"net/http"

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

// export streams what is remembered.
func (c *call) export() error {
	format := c.r.URL.Query().Get("format")
	if format == "" {
		format = api.FormatRemora
	}
	return request.Stream(c.w, c.log, request.ExportType(format), func(write func([]byte) error) error {
		return c.service.Export(c.r.Context(), c.p, c.t, format, write)
	})
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
	file, err := request.SaveUpload(q.Get("name"), c.r.Body)
	if err != nil {
		return err
	}
	defer func() { _ = file.Remove() }()
	fsys, closer, err := imports.Open(file.Path)
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
