package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
)

// States of a memory.
const (
	StateCurrent     = "current"
	StateSuperseded  = "superseded"  // a later statement holds
	StateQuarantined = "quarantined" // kept for review, never recalled
	StateDeleted     = "deleted"     // can be brought back for a day
)

// States lists them.
func States() []string {
	return []string{StateCurrent, StateSuperseded, StateQuarantined, StateDeleted}
}

// Memory is a memory as the control plane shows it. Times are RFC 3339, UTC,
// with milliseconds.
type Memory struct {
	ID           string   `json:"id"`
	Tenant       string   `json:"tenant"`
	App          string   `json:"app"`
	Project      string   `json:"project"`
	User         string   `json:"user"`
	Conversation string   `json:"conversation,omitempty"`
	Kind         string   `json:"kind"`
	Text         string   `json:"text"`
	Tags         []string `json:"tags"`
	Entities     []string `json:"entities,omitempty"`
	Priority     float64  `json:"priority"`
	Confidence   float64  `json:"confidence"`
	Trust        float64  `json:"trust"`
	State        string   `json:"state"`
	Source       string   `json:"source,omitempty"`
	Turn         string   `json:"turn,omitempty"`
	Role         string   `json:"role,omitempty"`
	Speaker      string   `json:"speaker,omitempty"`
	Model        string   `json:"model,omitempty"`
	ResourceURI  string   `json:"resource_uri,omitempty"`
	Directory    string   `json:"directory,omitempty"` // hash of the directory that the agent worked in
	Redacted     int      `json:"redacted,omitempty"`  // originals of personal data that are kept
	SupersededBy string   `json:"supersededBy,omitempty"`
	EventTime    string   `json:"eventTime,omitempty"`
	ValidFrom    string   `json:"validFrom,omitempty"`
	ValidTo      string   `json:"validTo,omitempty"`
	ExpiresAt    string   `json:"expiresAt,omitempty"`
	DeletedAt    string   `json:"deletedAt,omitempty"`
	CreatedAt    string   `json:"createdAt"`
	UpdatedAt    string   `json:"updatedAt"`
	Version      uint64   `json:"version"`
	Unwanted     int      `json:"unwanted,omitempty"` // kinds of questions that it is not recalled for
	Uses         *Uses    `json:"uses,omitempty"`
}

// Uses is how often a memory was inserted into requests since receipts are
// kept.
type Uses struct {
	Count int    `json:"count"`
	Last  string `json:"last,omitempty"`
}

// timeLayout is RFC 3339 with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

func stamp(t storage.Time) string {
	if t == 0 {
		return ""
	}
	return t.Std().Format(timeLayout)
}

// parseTime reads a time as RFC 3339, or a day.
func parseTime(field, v string) (storage.Time, error) {
	if v == "" {
		return 0, nil
	}
	for _, layout := range [...]string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, v); err == nil && t.Year() > 1970 && t.Year() < 10_000 {
			return storage.TimeOf(t), nil
		}
	}
	return 0, invalid(field, "must be a time as RFC 3339, or a day as YYYY-MM-DD")
}

// internalTags are the prefixes of tags that the engines read.
var internalTags = []string{"said:", "last:", "supersedes:", "contradicts:", storage.ProjectTag, storage.ResourceTag, storage.UnwantedTag}

// internalTag reports whether a tag is the engines' own: callers neither see
// nor set it.
func internalTag(tag string) bool {
	return slices.ContainsFunc(internalTags, func(prefix string) bool { return strings.HasPrefix(tag, prefix) })
}

// checkPlainTags refuses tags that redaction would change: they are shown and
// searched as they are.
func (s *access) checkPlainTags(field string, tags []string) error {
	for i, tag := range tags {
		if s.HidesSecret(tag) || s.Redact(tag) != tag {
			return invalid(fmt.Sprintf("%s[%d]", field, i), "holds a secret or personal data")
		}
	}
	return nil
}

// ownTags returns the tags that callers see.
func ownTags(tags []string) []string {
	out := make([]string, 0, len(tags))
	for _, tag := range tags {
		if !internalTag(tag) {
			out = append(out, tag)
		}
	}
	return out
}

// withTags returns a memory's tags with those of the caller replaced.
func withTags(all, own []string) []string {
	var out []string
	for _, tag := range own {
		if !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	for _, tag := range all {
		if internalTag(tag) || strings.HasPrefix(tag, fileTag) && !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}

func taggedWith(tags []string, prefix string) string {
	for _, tag := range tags {
		if v, ok := strings.CutPrefix(tag, prefix); ok {
			return v
		}
	}
	return ""
}

func stateOf(m *storage.Memory) string {
	switch {
	case m.DeletedAt != 0:
		return StateDeleted
	case m.Trust == 0:
		return StateQuarantined
	case m.SupersededBy != "" || m.ValidTo != 0:
		return StateSuperseded
	}
	return StateCurrent
}

// show returns a memory for a caller, redacted once more.
func (s *access) show(m *storage.Memory) Memory {
	p := &m.Provenance
	return Memory{
		ID: m.ID, Tenant: identity.Show(m.Scope.Tenant), App: identity.Show(m.Scope.App), Project: identity.Show(m.Scope.Project), User: identity.Show(m.Scope.User),
		Conversation: m.Conversation, Kind: string(m.Kind), Text: s.Redact(m.Text), Tags: ownTags(m.Tags), Entities: m.Entities,
		Priority: m.Priority, Confidence: m.Confidence, Trust: m.Trust, State: stateOf(m), Source: m.Source,
		Turn: p.Turn, Role: string(p.Role), Speaker: p.Speaker, Model: p.Model,
		ResourceURI: taggedWith(m.Tags, storage.ResourceTag), Directory: taggedWith(m.Tags, storage.ProjectTag), Redacted: len(m.Redactions),
		SupersededBy: m.SupersededBy, EventTime: stamp(m.EventTime), ValidFrom: stamp(m.ValidFrom), ValidTo: stamp(m.ValidTo),
		ExpiresAt: stamp(m.ExpiresAt), DeletedAt: stamp(m.DeletedAt), CreatedAt: stamp(m.CreatedAt), UpdatedAt: stamp(m.UpdatedAt), Version: m.Version,
		Unwanted: countUnwanted(m.Tags),
	}
}

func (s *access) showAll(ms []storage.Memory) []Memory {
	out := make([]Memory, len(ms))
	for i := range ms {
		out[i] = s.show(&ms[i])
	}
	return out
}
