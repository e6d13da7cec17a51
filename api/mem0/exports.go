package mem0

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/proxy/identity"
)

// maxExports bounds the exports that are remembered; beyond it the oldest are
// forgotten.
const maxExports = 1000

// exports remembers what exports were asked for. It holds no memories: they are
// read, with the rights of who fetches them, and sent as they are read. So what
// was erased meanwhile is not in an export.
type exports struct {
	mu  sync.Mutex
	all []export // oldest first
}

type export struct {
	id        string
	tenant    string // whose caller asked for it
	selection *selection
	base      api.Target
}

func newExports() *exports { return &exports{} }

// exportRequest asks for an export, or for one that was asked for.
type exportRequest struct {
	Filters  json.RawMessage `json:"filters"`
	ExportID string          `json:"memory_export_id"`
	ids
}

func (q *exportRequest) selection() (*selection, error) {
	s := &selection{}
	if err := s.byIDs(q.ids); err != nil {
		return nil, err
	}
	return s, s.filters("filters", q.Filters)
}

// createExport remembers an export. The schema of the request is ignored: an
// export has the records that a list of memories has.
func (c adminCall) createExport() error {
	var q exportRequest
	if err := c.decode(&q); err != nil {
		return err
	}
	s, err := q.selection()
	if err != nil {
		return err
	}
	if !s.named() {
		return invalid("filters", "must have a user_id, agent_id, app_id or run_id")
	}
	if _, err := c.spaces(s); err != nil {
		return err
	}
	tenant, err := c.tenant()
	if err != nil {
		return err
	}
	c.base.Tenant = tenant
	e := export{newID(), tenant, s, c.base}
	c.exports.mu.Lock()
	c.exports.all = append(c.exports.all, e)
	if extra := len(c.exports.all) - maxExports; extra > 0 {
		c.exports.all = slices.Delete(c.exports.all, 0, extra)
	}
	c.exports.mu.Unlock()
	return c.write(http.StatusCreated, map[string]string{"message": "Memory export request received. It can be fetched at once.", "id": e.id})
}

// find returns an export of the caller's by its id.
func (x *exports) find(p api.Principal, id string) (export, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.all {
		if e.id == id && (p.Admin || e.tenant == identity.Show(p.Tenant)) {
			return e, nil
		}
	}
	return export{}, api.ErrNotFound
}

// getExport answers with {"results": [...]}: all memories of an export, or of
// filters. Once the first is sent, an error cuts the answer short.
func (c adminCall) getExport() error {
	var q exportRequest
	if err := c.decode(&q); err != nil {
		return err
	}
	s, err := q.selection()
	if err != nil {
		return err
	}
	if q.ExportID != "" {
		e, err := c.exports.find(c.p, q.ExportID)
		if err != nil {
			return err
		}
		s, c.base = e.selection, e.base
	} else if !s.named() {
		return invalid("filters", "must have a user_id, agent_id, app_id or run_id, unless memory_export_id is given")
	}
	if _, err := c.spaces(s); err != nil {
		return err
	}
	sent := 0
	send := func(text []byte) error {
		if sent == 0 {
			c.w.Header().Set("Content-Type", "application/json")
		}
		sent++
		_, err := c.w.Write(text)
		return err
	}
	err = c.each(c.r.Context(), s, func(_ *space, m *api.Memory) error {
		r := recordOf(m)
		line, err := request.Encode(&r)
		if err != nil {
			return err
		}
		lead := ",\n"
		if sent == 0 {
			lead = `{"results":[`
		}
		return send(append([]byte(lead), line[:len(line)-1]...))
	})
	switch {
	case err != nil && sent > 0:
		c.log.Warn("an export was cut short", "error", err)
		panic(http.ErrAbortHandler)
	case err != nil:
		return err
	case sent == 0:
		return send([]byte(`{"results":[]}` + "\n"))
	}
	return send([]byte("]}\n"))
}
