package rest

import (
	"net/http"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

func mergeMemories(c *call) error {
	var d struct {
		IDs  []string `json:"ids"`
		Text string   `json:"text"`
		Why  string   `json:"why"`
	}
	if err := c.decode(&d); err != nil {
		return err
	}
	merged, err := c.service.Merge(c.r.Context(), c.p, c.t, d.IDs, d.Text, d.Why)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, merged)
}

func preferMemory(c *call) error {
	var d struct {
		Why string `json:"why"`
	}
	if c.r.ContentLength != 0 {
		if err := c.decode(&d); err != nil {
			return err
		}
	}
	changed, err := c.service.Prefer(c.r.Context(), c.p, c.t, c.r.PathValue("id"), d.Why)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, map[string]any{"memories": changed})
}

func listSources(c *call) error {
	list, err := c.service.Sources(c.r.Context(), c.p, c.t)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, list)
}

func listContradictions(c *call) error {
	limit, err := request.Number(c.r, "limit")
	if err != nil {
		return err
	}
	page, err := c.service.Contradictions(c.r.Context(), c.p, c.t, c.r.URL.Query().Get("cursor"), limit)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}

func listForgetRequests(c *call) error {
	list, err := c.service.ForgetRequests(c.r.Context(), c.p, c.t)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, map[string]any{"requests": list})
}

func answerForgetRequest(c *call) error {
	var d struct {
		Forget *bool    `json:"forget"`
		IDs    []string `json:"ids"`
	}
	if err := c.decode(&d); err != nil {
		return err
	}
	if d.Forget == nil {
		return &api.FieldError{Field: "forget", Why: "is required: true or false"}
	}
	gone, err := c.service.AnswerForget(c.r.Context(), c.p, c.t, c.r.PathValue("id"), *d.Forget, d.IDs)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, gone)
}
