package rest

import (
	"net/http"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

func (c *call) addResource() error {
	body, err := request.Body(c.r, api.MaxDocument)
	if err != nil {
		return err
	}
	q := c.r.URL.Query()
	res, err := c.service.AddResource(c.r.Context(), c.p, c.t, api.Document{
		URI: q.Get("resource_uri"), Name: q.Get("name"), MediaType: documentType(c.r.Header.Get("Content-Type")), Tags: q["tag"], Body: body,
	})
	if err != nil {
		return err
	}
	return c.write(http.StatusCreated, res)
}

// documentType returns the media type of a document, or "" for what clients send
// that know of none, such as curl with --data-binary.
func documentType(header string) string {
	switch base, _, _ := strings.Cut(header, ";"); strings.ToLower(strings.TrimSpace(base)) {
	case "application/octet-stream", "application/x-www-form-urlencoded":
		return ""
	}
	return header
}

func (c *call) resources() error {
	list, err := c.service.Resources(c.r.Context(), c.p, c.t)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, map[string]any{"resources": list})
}

func (c *call) deleteResource() error {
	q := c.r.URL.Query()
	gone, err := c.service.DeleteResource(c.r.Context(), c.p, c.t, q.Get("resource_uri"), q.Get("why"))
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, gone)
}

// namespace returns the namespace of entries that is asked for.
func (c *call) namespace() string {
	if v := c.r.URL.Query().Get("namespace"); v != "" {
		return v
	}
	return api.DefaultNamespace
}

func (c *call) putEntry() error {
	version, err := c.ifMatch()
	if err != nil {
		return err
	}
	var d api.EntryDraft
	if err := c.decode(&d); err != nil {
		return err
	}
	e, created, err := c.service.PutEntry(c.r.Context(), c.p, c.t, c.namespace(), c.r.PathValue("key"), version, d)
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", etag(e.Version))
	if created {
		return c.write(http.StatusCreated, e)
	}
	return c.write(http.StatusOK, e)
}

func (c *call) getEntry() error {
	e, err := c.service.GetEntry(c.r.Context(), c.p, c.t, c.namespace(), c.r.PathValue("key"))
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", etag(e.Version))
	return c.write(http.StatusOK, e)
}

func (c *call) deleteEntry() error {
	if err := c.service.DeleteEntry(c.r.Context(), c.p, c.t, c.namespace(), c.r.PathValue("key")); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *call) entries() error {
	limit, err := request.Number(c.r, "limit")
	if err != nil {
		return err
	}
	q := c.r.URL.Query()
	page, err := c.service.Entries(c.r.Context(), c.p, c.t, c.namespace(), q.Get("prefix"), q.Get("cursor"), limit)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}
