package imports

import (
	"encoding/json"
	"io"
	"path"
	"strings"
)

// openMemory reads the backups of OpenMemory, mem0's server: memories.json with
// its tables, and memories.jsonl.gz with the same memories again.
type openMemory struct {
	*reading
	user       string
	apps       map[string]string // names by id
	categories map[string]string
	seen       *memo // ids of memories, also of those that were left out
}

// openMemoryRecord is a memory in either file.
type openMemoryRecord struct {
	ID          string         `json:"id"`
	Content     *string        `json:"content"`
	State       string         `json:"state"`
	AppID       string         `json:"app_id"`
	App         string         `json:"app"`
	CategoryIDs list[string]   `json:"category_ids"`
	Categories  list[named]    `json:"categories"`
	Metadata    map[string]any `json:"metadata"`
	CreatedAt   moment         `json:"created_at"`
	UpdatedAt   moment         `json:"updated_at"`
}

// named is a row of the tables, or the name alone.
type named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// UnmarshalJSON takes an object or a string.
func (n *named) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &n.Name)
	}
	type row named
	return decode(b, (*row)(n))
}

// owner is who the backup is of: an object or a name.
type owner struct {
	UserID string `json:"user_id"`
}

// UnmarshalJSON takes an object or a string.
func (o *owner) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &o.UserID)
	}
	type row owner
	return decode(b, (*row)(o))
}

// readOpenMemory reads each folder's memories.json first: only that has the
// state of a memory in every version.
func readOpenMemory(r *reading, names []string) error {
	o := &openMemory{
		reading: r, apps: map[string]string{}, categories: map[string]string{},
		seen: newMemo(r.bounds.maxKnown),
	}
	for _, name := range names { // sorted: .json before .jsonl.gz
		var err error
		if base := path.Base(name); strings.Contains(base, ".jsonl") || strings.HasSuffix(base, ".ndjson") {
			err = r.lines(name, r.bounds.maxRecord, func(line []byte) error { return o.record(line) })
		} else if err = o.tables(name); err == nil {
			err = o.memories(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tables reads what the memories of a file refer to, which may come after them.
func (o *openMemory) tables(name string) error {
	s, err := o.stream(name, o.bounds.maxRecord)
	if err != nil {
		return err
	}
	defer s.close()
	if s.array {
		return nil // memories alone
	}
	if t, err := s.token(); err != nil || t != json.Delim('{') {
		return nil // memories will see the same
	}
	names := func(of map[string]string) error {
		return s.list(func(raw json.RawMessage) error {
			var n named
			if err := decode(raw, &n); err != nil {
				return err
			}
			if of[n.ID] = n.Name; len(of) > maxElements {
				return errMany
			}
			return nil
		})
	}
	return s.members(func(key string) error {
		switch key {
		case "user":
			var u owner
			err := s.member(&u)
			o.user = u.UserID
			return err
		case "apps":
			return names(o.apps)
		case "categories":
			return names(o.categories)
		}
		return s.skip()
	})
}

func (o *openMemory) memories(name string) error {
	s, err := o.file(name, o.bounds.maxRecord)
	if err != nil {
		return err
	}
	defer s.close()
	if s.array {
		return s.each(o.record)
	}
	t, err := s.token()
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		o.reject(reasonUnknownType)
		return nil
	}
	err = s.members(func(key string) error {
		if key == "memories" {
			return s.list(o.record)
		}
		return s.skip()
	})
	if err != nil {
		return err
	}
	return s.end()
}

func (o *openMemory) record(raw json.RawMessage) error {
	var m openMemoryRecord
	is, err := object(raw, &m)
	if err != nil {
		return err
	}
	if !is || m.Content == nil {
		o.reject(reasonUnknownType)
		return nil
	}
	if m.ID != "" {
		fresh, err := o.seen.add(m.ID)
		if err != nil {
			return err
		}
		if !fresh {
			o.reject(reasonDuplicate)
			return nil
		}
	}
	if m.State != "" && m.State != "active" {
		o.reject(reasonNotActive)
		return nil
	}
	var tags []string
	for _, c := range m.Categories {
		tags = append(tags, c.Name)
	}
	for _, id := range m.CategoryIDs {
		if name := o.categories[id]; name != "" {
			tags = append(tags, name)
		}
	}
	return o.memory(Memory{
		ID: m.ID, Text: *m.Content, Tags: tags,
		CreatedAt: m.CreatedAt.Time, UpdatedAt: m.UpdatedAt.Time,
		User: o.user, App: first(o.apps[m.AppID], m.App), Metadata: m.Metadata,
	})
}
