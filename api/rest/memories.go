package rest

import (
	"net/http"
	"strconv"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/persist"
)

func (c *call) filter() (f api.Filter, err error) {
	q := c.r.URL.Query()
	f = api.Filter{
		ID: q.Get("id"), Conversation: q.Get("conversation"), Kinds: c.listed("kind"), Tags: q["tag"], Query: q.Get("q"), Since: q.Get("since"), Until: q.Get("until"),
		States: c.listed("state"), ResourceURI: q.Get("resource_uri"), Source: q.Get("source"),
	}
	if f.Conversation == "" {
		f.Conversation = q.Get("threadId")
	}
	for name, to := range map[string]*float64{"minPriority": &f.MinPriority, "maxPriority": &f.MaxPriority} {
		if v := q.Get(name); v != "" {
			if *to, err = strconv.ParseFloat(v, 64); err != nil {
				return f, &api.FieldError{Field: name, Why: "must be a number, 0..1"}
			}
		}
	}
	used, known, err := c.flag("used")
	if err != nil {
		return f, err
	}
	if known {
		f.Used = &used
	}
	switch q.Get("order") {
	case "", "newest":
	case "oldest":
		f.Oldest = true
	default:
		return f, &api.FieldError{Field: "order", Why: "must be newest or oldest"}
	}
	return f, nil
}

func (c *call) list() error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	limit, err := request.Number(c.r, "limit")
	if err != nil {
		return err
	}
	page, err := c.service.List(c.r.Context(), c.p, c.t, f, c.r.URL.Query().Get("cursor"), limit)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}

func (c *call) add() error {
	return c.once(func(body []byte) (int, any, error) {
		var d api.Draft
		if err := request.DecodeBytes(body, true, &d); err != nil {
			return 0, nil, err
		}
		added, err := c.service.Add(c.r.Context(), c.p, c.t, d, "api")
		if err != nil {
			return 0, nil, err
		}
		if added.Event == "known" || added.Event == "forgotten" { // nothing was made
			return http.StatusOK, added, nil
		}
		return http.StatusCreated, added, nil
	})
}

func (c *call) get() error {
	deleted, _, err := c.flag("deleted")
	if err != nil {
		return err
	}
	m, err := c.service.Get(c.r.Context(), c.p, c.t, c.r.PathValue("id"), deleted)
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", etag(m.Version))
	return c.write(http.StatusOK, m)
}

func (c *call) update() error {
	version, err := c.ifMatch()
	if err != nil {
		return err
	}
	var d api.Patch
	if err := c.decode(&d); err != nil {
		return err
	}
	m, err := c.service.Update(c.r.Context(), c.p, c.t, c.r.PathValue("id"), version, d)
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", etag(m.Version))
	return c.write(http.StatusOK, m)
}

func (c *call) delete() error {
	version, err := c.ifMatch()
	if err != nil {
		return err
	}
	id, why := c.r.PathValue("id"), c.r.URL.Query().Get("why")
	if version != 0 {
		m, err := c.service.Get(c.r.Context(), c.p, c.t, id, false)
		if err != nil {
			return err
		}
		if m.Version != version {
			return persist.ErrChanged
		}
	}
	gone, err := c.service.Delete(c.r.Context(), c.p, c.t, why, id)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, gone)
}

func (c *call) deleteMany() error {
	var d struct {
		IDs []string `json:"ids"`
		Why string   `json:"why"`
	}
	if err := c.decode(&d); err != nil {
		return err
	}
	gone, err := c.service.Delete(c.r.Context(), c.p, c.t, d.Why, d.IDs...)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, gone)
}

func (c *call) history() error {
	h, err := c.service.History(c.r.Context(), c.p, c.t, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, h)
}

func (c *call) originals() error {
	list, err := c.service.Originals(c.r.Context(), c.p, c.t, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, map[string]any{"originals": list})
}

func (c *call) undo() error {
	var d struct {
		Why string `json:"why"`
	}
	if c.r.ContentLength != 0 {
		if err := c.decode(&d); err != nil {
			return err
		}
	}
	restored, err := c.service.Undo(c.r.Context(), c.p, c.t, c.r.PathValue("id"), d.Why)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, map[string]any{"memories": restored})
}

func (c *call) feedback() error {
	var d struct {
		Helped *bool  `json:"helped"`
		Why    string `json:"why"`
	}
	if err := c.decode(&d); err != nil {
		return err
	}
	if d.Helped == nil {
		return &api.FieldError{Field: "helped", Why: "is required: true or false"}
	}
	m, err := c.service.Feedback(c.r.Context(), c.p, c.t, c.r.PathValue("id"), *d.Helped, d.Why)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, m)
}

// unwanted names the example by its words, or by the exchange in which it was
// asked.
func (c *call) unwanted() error {
	var d struct {
		Question string `json:"question"`
		Exchange string `json:"exchange"`
		Why      string `json:"why"`
	}
	if err := c.decode(&d); err != nil {
		return err
	}
	var m api.Memory
	var err error
	switch id := c.r.PathValue("id"); {
	case (d.Question == "") == (d.Exchange == ""):
		return &api.FieldError{Field: "question", Why: "is required, or exchange instead"}
	case d.Question != "":
		m, err = c.service.Unwanted(c.r.Context(), c.p, c.t, id, d.Question, d.Why)
	default:
		m, err = c.service.UnwantedIn(c.r.Context(), c.p, c.t, id, d.Exchange, d.Why)
	}
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, m)
}

func (c *call) wantedAgain() error {
	m, err := c.service.WantedAgain(c.r.Context(), c.p, c.t, c.r.PathValue("id"), c.r.URL.Query().Get("why"))
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, m)
}

func (c *call) search() error {
	var q api.Search
	if err := c.decode(&q); err != nil {
		return err
	}
	res, err := c.service.Search(c.r.Context(), c.p, c.t, q)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, res)
}

func (c *call) try() error {
	var q api.Question
	if err := c.decode(&q); err != nil {
		return err
	}
	answer, err := c.service.Try(c.r.Context(), c.p, c.t, q)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, answer)
}

func (c *call) context() error {
	var q api.ContextRequest
	if c.r.ContentLength != 0 {
		if err := c.decode(&q); err != nil {
			return err
		}
	}
	out, err := c.service.Context(c.r.Context(), c.p, c.t, q)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, out)
}
