package mem0

import (
	"encoding/json"
	"fmt"

	"github.com/remora-proxy/remora/api"
)

// batchRequest names memories to change or delete.
type batchRequest struct {
	Memories []struct {
		MemoryID string          `json:"memory_id"`
		Text     *string         `json:"text"`
		Metadata json.RawMessage `json:"metadata"`
	} `json:"memories"`
}

// read returns the memories that a batch names. If one of them is not the
// caller's, nothing is done.
func (q *batchRequest) read(c *call) ([]api.Memory, error) {
	if err := c.decode(q); err != nil {
		return nil, err
	}
	if n := len(q.Memories); n == 0 || n > api.MaxIDs {
		return nil, invalid("memories", fmt.Sprintf("must have 1 to %d memories", api.MaxIDs))
	}
	out := make([]api.Memory, len(q.Memories))
	for i := range q.Memories {
		m, err := c.locate(q.Memories[i].MemoryID)
		if err != nil {
			return nil, err
		}
		out[i] = m
	}
	return out, nil
}

func (c adminCall) batchUpdate() error {
	var q batchRequest
	if _, err := q.read(c.call); err != nil {
		return err
	}
	changes := make([]updateRequest, len(q.Memories))
	for i := range q.Memories {
		changes[i] = updateRequest{Text: q.Memories[i].Text, Metadata: q.Memories[i].Metadata}
		if changes[i].check() != nil {
			return invalid(fmt.Sprintf("memories[%d]", i), "changes nothing: give text or metadata")
		}
	}
	for i := range changes {
		if _, err := c.update(q.Memories[i].MemoryID, &changes[i]); err != nil {
			return err
		}
	}
	return c.say(fmt.Sprintf("Successfully updated %d memories", len(changes)))
}

func (c adminCall) batchDelete() error {
	var q batchRequest
	memories, err := q.read(c.call)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for i := range memories {
		m := &memories[i]
		if done[m.ID] {
			continue
		}
		done[m.ID] = true
		// It may be gone with another one of them.
		if err := c.remove(m, []string{m.ID}); err != nil && !isNotFound(err) {
			return err
		}
	}
	return c.say(fmt.Sprintf("Successfully deleted %d memories", len(done)))
}
