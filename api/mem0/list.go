package mem0

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

// Limits of a page.
const (
	defaultPage = 100
	maxPage     = 1000
)

// listRequest asks for memories, in a body or in the query.
type listRequest struct {
	ids
	Filters    json.RawMessage `json:"filters"`
	Categories []string        `json:"categories"`
	Fields     []string        `json:"fields"`
	StartDate  json.RawMessage `json:"start_date"`
	EndDate    json.RawMessage `json:"end_date"`
	Keywords   string          `json:"keywords"`
	Metadata   json.RawMessage `json:"metadata"`
	Page       int             `json:"page"`
	PageSize   int             `json:"page_size"`
}

// page is a page of mem0's lists.
type page struct {
	Count    int     `json:"count"`
	Next     *string `json:"next"`
	Previous *string `json:"previous"`
	Results  []any   `json:"results"`
}

// listing answers with the memories that a request selects.
func listing(as shape) verb {
	return func(c *call) error {
		var q listRequest
		if c.r.Method != http.MethodGet {
			if err := c.decode(&q); err != nil {
				return err
			}
		}
		paged, err := q.parameters(c.r)
		if err != nil {
			return err
		}
		s, err := q.selection()
		if err != nil {
			return err
		}
		out := page{Results: []any{}}
		from := (q.Page - 1) * q.PageSize
		err = c.each(c.r.Context(), s, func(_ *space, m *api.Memory) error {
			if out.Count++; out.Count <= from || len(out.Results) >= q.PageSize {
				return nil
			}
			r := recordOf(m)
			shown, err := r.chosen(q.Fields)
			out.Results = append(out.Results, shown)
			return err
		})
		if err != nil {
			return err
		}
		switch {
		case as == shapeList && !paged:
			return c.write(http.StatusOK, out.Results)
		case as == shapeResults:
			return c.write(http.StatusOK, map[string]any{"results": out.Results})
		}
		out.link(c.r, q.Page, q.PageSize)
		return c.write(http.StatusOK, out)
	}
}

// link sets the links of a page: paths, without the server.
func (p *page) link(r *http.Request, number, size int) {
	to := func(n int) *string {
		path, query, _ := strings.Cut(r.RequestURI, "?")
		v, _ := url.ParseQuery(query) // what can't be read is left out
		v.Set("page", strconv.Itoa(n))
		v.Set("page_size", strconv.Itoa(size))
		link := path + "?" + v.Encode()
		return &link
	}
	if number*size < p.Count {
		p.Next = to(number + 1)
	}
	if number > 1 {
		p.Previous = to(number - 1)
	}
}

// parameters reads what the query says and fills in the defaults. It reports
// whether the request asks for a page.
func (q *listRequest) parameters(r *http.Request) (paged bool, err error) {
	v := r.URL.Query()
	if r.Method == http.MethodGet {
		q.ids = queryIDs(v)
		q.Keywords, q.Categories, q.Fields = v.Get("keywords"), v["categories"], v["fields"]
		if s := v.Get("start_date"); s != "" {
			q.StartDate, _ = json.Marshal(s) // a string always encodes
		}
		if s := v.Get("end_date"); s != "" {
			q.EndDate, _ = json.Marshal(s)
		}
		if s := v.Get("metadata"); s != "" {
			q.Metadata = json.RawMessage(s)
		}
		for _, name := range [...]string{"limit", "top_k"} {
			n, err := number(r, name, maxPage)
			if err != nil {
				return false, err
			}
			q.PageSize = max(q.PageSize, n)
		}
	}
	for name, to := range map[string]*int{"page": &q.Page, "page_size": &q.PageSize} {
		limit := maxPage
		if name == "page" {
			limit = 1_000_000
		}
		n, err := number(r, name, limit)
		if err != nil {
			return false, err
		}
		if n != 0 {
			*to, paged = n, true
		}
		if *to < 0 || *to > limit {
			return false, invalid(name, "must be 1.."+strconv.Itoa(limit))
		}
		paged = paged || *to != 0 && r.Method != http.MethodGet
	}
	if q.Page == 0 {
		q.Page = 1
	}
	if q.PageSize == 0 {
		q.PageSize = defaultPage
	}
	return paged, nil
}

// number reads a parameter from 1 to limit; 0 if it is not there.
func number(r *http.Request, name string, limit int) (int, error) {
	if r.URL.Query().Get(name) == "" {
		return 0, nil
	}
	n, err := request.Number(r, name)
	if err == nil && (n < 1 || n > limit) {
		err = invalid(name, "must be 1.."+strconv.Itoa(limit))
	}
	return n, err
}

func queryIDs(v url.Values) ids {
	return ids{v.Get("user_id"), v.Get("agent_id"), v.Get("app_id"), v.Get("run_id")}
}

func (q *listRequest) selection() (*selection, error) {
	s := &selection{}
	if err := s.byIDs(q.ids); err != nil {
		return nil, err
	}
	if err := s.filters("filters", q.Filters); err != nil {
		return nil, err
	}
	if len(q.Categories) > 0 {
		s.inCategories(q.Categories)
	}
	if len(q.Metadata) > 0 && string(q.Metadata) != "null" && string(q.Metadata) != "{}" {
		if err := s.metadataCondition("metadata", q.Metadata); err != nil {
			return nil, err
		}
	}
	if q.Keywords != "" {
		operand, _ := json.Marshal(map[string]string{"icontains": q.Keywords}) // strings always encode
		if err := s.keywordCondition("keywords", operand); err != nil {
			return nil, err
		}
	}
	for _, bound := range [...]struct {
		field, op string
		raw       json.RawMessage
	}{{"start_date", "gte", q.StartDate}, {"end_date", "lte", q.EndDate}} {
		if len(bound.raw) == 0 || string(bound.raw) == "null" {
			continue
		}
		if _, _, err := span(bound.field, bound.raw); err != nil {
			return nil, err
		}
		condition, err := json.Marshal(map[string]json.RawMessage{bound.op: bound.raw})
		if err != nil {
			return nil, err
		}
		if err := s.timeCondition(bound.field, "created_at", condition); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// each calls found for all memories that a selection takes, space by space, the
// newest first in each.
func (c *call) each(ctx context.Context, s *selection, found func(*space, *api.Memory) error) error {
	targets, err := c.spaces(s)
	if err != nil {
		return err
	}
	for _, t := range targets {
		v, err := c.open(ctx, t)
		if err != nil {
			return err
		}
		err = c.pages(ctx, t, api.Filter{Conversation: s.run()}, func(m *api.Memory) error {
			if !v.shows(m) || !s.takes(m) {
				return nil
			}
			return found(v, m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
