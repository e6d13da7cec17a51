package mem0

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/remora-proxy/remora/api"
)

// eventRecord is an event as mem0 shows it.
type eventRecord struct {
	ID          string            `json:"id"`
	EventType   string            `json:"event_type"`
	Status      string            `json:"status"`
	Payload     map[string]string `json:"payload"`
	Metadata    map[string]string `json:"metadata"`
	Results     []eventResult     `json:"results"`
	CreatedAt   string            `json:"created_at"`
	UpdatedAt   string            `json:"updated_at"`
	StartedAt   string            `json:"started_at"`
	CompletedAt *string           `json:"completed_at"`
	Latency     *int64            `json:"latency,omitempty"` // milliseconds
	Error       string            `json:"error,omitempty"`
}

// eventResult is a memory that came of an event.
type eventResult struct {
	ID   string `json:"id"`
	Data struct {
		Memory string `json:"memory"`
	} `json:"data"`
	Event  string  `json:"event"` // ADD, or NOOP for what was known
	UserID *string `json:"user_id"`
}

// state returns an event without its results.
func (x *events) state(e *event) (out eventRecord, ids []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	begun := stamp(e.begun)
	out = eventRecord{
		ID: e.id, EventType: "ADD", Status: e.status, Payload: map[string]string{}, Metadata: map[string]string{}, Results: []eventResult{},
		CreatedAt: begun, UpdatedAt: begun, StartedAt: begun, Error: e.failure,
	}
	if !e.ended.IsZero() {
		ended, took := stamp(e.ended), e.ended.Sub(e.begun).Milliseconds()
		out.UpdatedAt, out.CompletedAt, out.Latency = ended, &ended, &took
		ids = slices.Clone(e.ids)
	}
	return out, ids
}

// showEvent returns an event with its results, as they are now.
func (c adminCall) showEvent(e *event) (eventRecord, error) {
	out, ids := c.events.state(e)
	for _, id := range ids {
		m, err := c.service.Get(c.r.Context(), c.p, e.owner, id, false)
		if errors.Is(err, api.ErrNotFound) {
			continue
		}
		if err != nil {
			return out, err
		}
		r := eventResult{ID: m.ID, Event: "ADD", UserID: orNull(userName(m.User))}
		r.Data.Memory = statementOf(&m)
		made, err := time.Parse(time.RFC3339, m.CreatedAt)
		if err == nil && made.Before(e.begun.Truncate(time.Millisecond)) || slices.Contains(e.known, m.ID) {
			r.Event = "NOOP"
		}
		out.Results = append(out.Results, r)
	}
	return out, nil
}

func (c adminCall) event() error {
	e, err := c.events.get(c.p, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	shown, err := c.showEvent(e)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, shown)
}

func (c adminCall) listEvents() error {
	var q listRequest
	if _, err := q.parameters(c.r); err != nil {
		return err
	}
	all := c.events.list(c.p)
	out := page{Count: len(all), Results: []any{}}
	from := min((q.Page-1)*q.PageSize, len(all))
	for _, e := range all[from:min(from+q.PageSize, len(all))] {
		shown, _ := c.events.state(e)
		out.Results = append(out.Results, shown)
	}
	out.link(c.r, q.Page, q.PageSize)
	return c.write(http.StatusOK, out)
}
