package mem0

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/storage"
)

// locate returns a memory by its id. A request need not say whose it is. What is
// not shown in lists can't be had by its id.
func (c *call) locate(id string) (api.Memory, error) {
	m, err := c.service.Get(c.r.Context(), c.p, c.base, id, false)
	if err != nil || m.Kind != string(storage.KindEpisode) {
		return m, err
	}
	v, err := c.space(c.r.Context(), &m)
	if err != nil {
		return m, err
	}
	if !v.shows(&m) {
		return api.Memory{}, api.ErrNotFound
	}
	return m, nil
}

func (c *call) get() error {
	m, err := c.locate(c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, recordOf(&m))
}

// updateRequest changes a memory; what is not there stays.
type updateRequest struct {
	Text           *string         `json:"text"`
	Metadata       json.RawMessage `json:"metadata"`
	Timestamp      json.RawMessage `json:"timestamp"`
	ExpirationDate json.RawMessage `json:"expiration_date"`
}

// updating changes a memory and answers with it, or with a message.
func updating(message string) verb {
	return func(c *call) error {
		var q updateRequest
		if err := c.decode(&q); err != nil {
			return err
		}
		m, err := c.update(c.r.PathValue("id"), &q)
		if err != nil {
			return err
		}
		if message != "" {
			return c.say(message)
		}
		return c.write(http.StatusOK, recordOf(&m))
	}
}

func (q *updateRequest) check() error {
	if len(q.Timestamp) > 0 && string(q.Timestamp) != "null" {
		return invalid("timestamp", "is not supported: when something was said does not change")
	}
	if err := noExpiry(q.ExpirationDate); err != nil {
		return err
	}
	if q.Text == nil && (len(q.Metadata) == 0 || string(q.Metadata) == "null") {
		return invalid("body", "changes nothing: give text or metadata")
	}
	return nil
}

// update changes a memory. Metadata that is given replaces what was there.
func (c *call) update(id string, q *updateRequest) (api.Memory, error) {
	if err := q.check(); err != nil {
		return api.Memory{}, err
	}
	before, err := c.locate(id)
	if err != nil {
		return api.Memory{}, err
	}
	patch := api.Patch{Text: q.Text}
	if q.Text != nil && *q.Text != "" && audited(&before) {
		// In quotation marks, as audits write it: of a paraphrase it would be
		// unknown which words it was made of, and it would go with any of them.
		text := `"` + *q.Text + `"`
		patch.Text = &text
	}
	if len(q.Metadata) > 0 && string(q.Metadata) != "null" {
		l := readLabels(before.Tags)
		if l.metadata, err = metadataOf(q.Metadata); err != nil {
			return api.Memory{}, err
		}
		tags, err := tags(c, l)
		if err != nil {
			return api.Memory{}, err
		}
		patch.Tags = &tags
	}
	after, err := c.service.Update(c.r.Context(), c.p, ownerOf(&before), id, 0, patch)
	if err != nil || after.Text == before.Text {
		return after, err
	}
	return after, withdraw(c, c.r.Context(), &before, whyChanged)
}

// maxLinked bounds the memories that one deletion follows to what they
// superseded.
const maxLinked = 50

func (c *call) delete() error {
	m, err := c.locate(c.r.PathValue("id"))
	if err != nil {
		return err
	}
	ids := []string{m.ID}
	if v := c.r.URL.Query().Get("delete_linked"); v == "true" || v == "1" {
		if ids, err = c.linked(&m); err != nil {
			return err
		}
	}
	if err := c.remove(&m, ids); err != nil {
		return err
	}
	answer := map[string]any{"message": "Memory deleted successfully!"}
	if len(ids) > 1 {
		answer["cascade_count"] = len(ids) - 1
	}
	return c.write(http.StatusOK, answer)
}

// linked returns the ids of a memory and of those that it superseded.
func (c *call) linked(m *api.Memory) ([]string, error) {
	h, err := c.service.History(c.r.Context(), c.p, ownerOf(m), m.ID)
	if err != nil {
		return nil, err
	}
	ids := []string{m.ID}
	for i := 0; i < len(ids) && len(ids) < maxLinked; i++ {
		for k := range h.Chain {
			if older := &h.Chain[k]; older.SupersededBy == ids[i] && !slices.Contains(ids, older.ID) {
				ids = append(ids, older.ID)
			}
		}
	}
	return ids, nil
}

// remove deletes a memory and the others of its owner that go with it, and what
// they say from where else it is said.
func (c *call) remove(m *api.Memory, ids []string) error {
	ctx := c.r.Context()
	if m.Kind == string(storage.KindEpisode) {
		return discard(c, ctx, m)
	}
	gone := []api.Memory{*m}
	for _, id := range ids[1:] {
		linked, err := c.service.Get(ctx, c.p, ownerOf(m), id, false)
		if err != nil {
			return err
		}
		gone = append(gone, linked)
	}
	if _, err := c.service.Delete(ctx, c.p, ownerOf(m), "", ids...); err != nil {
		return err
	}
	for i := range gone {
		if err := withdraw(c, ctx, &gone[i], whyDeleted); err != nil {
			return err
		}
	}
	return nil
}

// deletingAll deletes what a request selects in its query, all kinds of
// memories of it. With named it must say of whom.
func deletingAll(message string, named bool) verb {
	return func(c *call) error {
		s := &selection{}
		if err := s.byIDs(queryIDs(c.r.URL.Query())); err != nil {
			return err
		}
		if named && !s.named() {
			return invalid("user_id", "or agent_id, app_id or run_id is required")
		}
		targets, err := c.spaces(s)
		if err != nil {
			return err
		}
		c.flush()
		deleted := 0
		for _, t := range targets {
			gone, err := c.service.DeleteAll(c.r.Context(), c.p, t, api.Filter{Conversation: s.run()}, "")
			if err != nil {
				return err
			}
			deleted += len(gone.Deleted)
		}
		return c.write(http.StatusOK, map[string]any{"message": message, "deleted": deleted})
	}
}

// history answers with what happened to a memory, the oldest first.
func (c *call) history() error {
	h, err := c.service.History(c.r.Context(), c.p, c.base, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	l := readLabels(h.Memory.Tags)
	out := []change{}
	after := &h.Memory // newest first: what the memory was after each change
	for i := range h.Changes {
		ch := &h.Changes[i]
		entry := change{
			MemoryID: h.Memory.ID, Input: []string{}, UserID: orNull(userName(h.Memory.User)), Categories: l.categories,
			CreatedAt: ch.At, UpdatedAt: ch.At, ActorID: orNull(ch.By),
		}
		switch {
		case ch.Op == "created":
			entry.Event, entry.NewMemory = "ADD", orNull(statementOf(after))
		case ch.Before == nil, ch.Op == "edit" && !told(ch.Before, after, ch.Why):
			if ch.Before != nil {
				after = ch.Before
			}
			continue
		case ch.Before.State == api.StateDeleted: // it was brought back
			entry.Event, entry.NewMemory = "ADD", orNull(statementOf(after))
		case ch.Op == "delete":
			entry.Event, entry.OldMemory, entry.IsDeleted = "DELETE", orNull(statementOf(ch.Before)), true
		default:
			entry.Event, entry.OldMemory, entry.NewMemory = "UPDATE", orNull(statementOf(ch.Before)), orNull(statementOf(after))
		}
		if out = append(out, entry); ch.Before != nil {
			after = ch.Before
		}
	}
	slices.Reverse(out)
	for i := range out {
		out[i].ID = fmt.Sprintf("%s-%d", h.Memory.ID, i+1)
	}
	return c.write(http.StatusOK, out)
}

// told reports whether an edit is one for mem0's clients: it changes the text
// or the metadata of a memory that was there.
func told(before, after *api.Memory, why string) bool {
	return before.Text != after.Text || why != whyLabelled && !slices.Equal(before.Tags, after.Tags)
}

// flushTimeout bounds how long a deletion waits for turns that are not memories
// yet.
const flushTimeout = 5 * time.Second

// flush lets what is on its way become memories, so that it can be deleted.
func (c *call) flush() {
	ctx, cancel := context.WithTimeout(c.r.Context(), flushTimeout)
	defer cancel()
	if err := c.service.Pipeline.Flush(ctx); err != nil {
		c.log.Warn("what was handed in last may outlive a deletion", "error", err)
	}
}
