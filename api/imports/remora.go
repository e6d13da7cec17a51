package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// remora reads Remora's own export.
type remora struct{ *reading }

// remoraLine is one line of Remora's own export. Members that are not here are
// in Memory.Raw.
type remoraLine struct {
	ID           string         `json:"id"`
	Kind         string         `json:"kind"`
	Text         *string        `json:"text"`
	Tags         []string       `json:"tags"`
	User         string         `json:"user"`
	Conversation string         `json:"conversation"`
	App          string         `json:"app"`
	Project      string         `json:"project"`
	CreatedAt    *time.Time     `json:"createdAt"`
	UpdatedAt    *time.Time     `json:"updatedAt"`
	Metadata     map[string]any `json:"metadata"`
}

var (
	errNotMemory = errors.New("the line is no memory: it has to be an object with a text, and its times have to be RFC 3339")
	remoraKinds  = []string{"", "fact", "curated", "resource", "episode"}
)

// readRemora reads JSON Lines of memories. It is strict, as Remora wrote them:
// a line that is not a memory is an error.
func readRemora(r *reading, names []string) error {
	for _, name := range names {
		if err := r.lines(name, r.bounds.maxRecord, (&remora{r}).line); err != nil {
			return err
		}
	}
	return nil
}

func (r *remora) line(line []byte) error {
	var l remoraLine
	if err := json.Unmarshal(line, &l); err != nil {
		if p := plain(err); errors.Is(p, errCut) || errors.Is(p, errMalformed) {
			return err
		}
		return errNotMemory // other errors quote the line
	}
	if line[0] != '{' || l.Text == nil {
		return errNotMemory
	}
	if !slices.Contains(remoraKinds, l.Kind) {
		r.reject(reasonUnknownType)
		return nil
	}
	m := Memory{
		ID: l.ID, Text: *l.Text, Kind: l.Kind, Tags: l.Tags,
		User: l.User, Conversation: l.Conversation, App: l.App, Project: l.Project,
		Metadata: l.Metadata, Raw: bytes.Clone(line),
	}
	if l.CreatedAt != nil {
		m.CreatedAt = *l.CreatedAt
	}
	if l.UpdatedAt != nil {
		m.UpdatedAt = *l.UpdatedAt
	}
	return r.memory(m)
}
