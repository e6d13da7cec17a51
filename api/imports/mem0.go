package imports

import (
	"encoding/json"
	"io"
	"slices"
)

// mem0 reads what mem0 lists.
type mem0 struct{ *reading }

// mem0Record is a memory as mem0 lists it.
type mem0Record struct {
	ID         string         `json:"id"`
	Memory     *string        `json:"memory"`
	Text       *string        `json:"text"`
	Data       *string        `json:"data"`
	UserID     string         `json:"user_id"`
	AgentID    string         `json:"agent_id"`
	AppID      string         `json:"app_id"`
	RunID      string         `json:"run_id"`
	Categories list[string]   `json:"categories"`
	Metadata   map[string]any `json:"metadata"`
	CreatedAt  moment         `json:"created_at"`
	UpdatedAt  moment         `json:"updated_at"`
}

// mem0Lists are the members of a page that hold its memories.
var mem0Lists = []string{"results", "memories"}

// readMem0 reads what mem0 lists: arrays of records, pages of them, and records
// alone, any number of each in a file.
func readMem0(r *reading, names []string) error {
	for _, name := range names {
		if err := (&mem0{r}).pages(name); err != nil {
			return err
		}
	}
	return nil
}

func (m *mem0) pages(name string) error {
	s, err := m.file(name, m.bounds.maxRecord)
	if err != nil {
		return err
	}
	defer s.close()
	if s.array {
		return s.each(m.record)
	}
	for {
		t, err := s.token()
		if err == io.EOF {
			return nil
		}
		switch {
		case err != nil:
		case t == json.Delim('{'):
			err = m.object(s)
		case t == json.Delim('['):
			err = s.elements(m.record)
		default:
			m.reject(reasonUnknownType)
		}
		if err != nil {
			return err
		}
	}
}

// object reads a page or a record, which is known only at its end.
func (m *mem0) object(s *stream) error {
	page, members, total := false, map[string]json.RawMessage{}, int64(0)
	err := s.members(func(key string) error {
		if slices.Contains(mem0Lists, key) {
			page = true
			return s.list(m.record)
		}
		raw, err := s.inner()
		if err != nil {
			return err
		}
		members[key] = slices.Clone(raw)
		if total += int64(len(key) + len(raw)); total > s.max {
			return s.fail(s.in.tooLarge("a value", s.max))
		}
		return nil
	})
	if err != nil || page {
		return err
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return s.fail(errMalformed)
	}
	return s.placed(m.record(raw))
}

func (m *mem0) record(raw json.RawMessage) error {
	var in mem0Record
	is, err := object(raw, &in)
	if err != nil {
		return err
	}
	text, has := "", false
	for _, t := range []*string{in.Memory, in.Text, in.Data} {
		if t != nil {
			has = true
			text = first(text, *t)
		}
	}
	if !is || !has {
		m.reject(reasonUnknownType)
		return nil
	}
	return m.memory(Memory{
		ID: in.ID, Text: text, Tags: in.Categories,
		CreatedAt: in.CreatedAt.Time, UpdatedAt: in.UpdatedAt.Time,
		User: in.UserID, Conversation: in.RunID, App: first(in.AppID, in.AgentID),
		Metadata: in.Metadata,
	})
}
