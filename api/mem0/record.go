package mem0

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
)

// record is a memory as mem0 shows it.
type record struct {
	ID             string                     `json:"id"`
	Memory         string                     `json:"memory"`
	UserID         *string                    `json:"user_id"`
	AgentID        *string                    `json:"agent_id"`
	AppID          *string                    `json:"app_id"`
	RunID          *string                    `json:"run_id"`
	Hash           string                     `json:"hash"`
	Metadata       map[string]json.RawMessage `json:"metadata"`
	Categories     []string                   `json:"categories"`
	MemoryType     string                     `json:"memory_type"`
	CreatedAt      string                     `json:"created_at"`
	UpdatedAt      string                     `json:"updated_at"`
	ExpirationDate *string                    `json:"expiration_date"`
	ReplacedBy     *string                    `json:"replaced_by,omitempty"`
	Score          *float64                   `json:"score,omitempty"`
}

func recordOf(m *api.Memory) record {
	text := statementOf(m)
	sum := sha256.Sum256([]byte(text))
	l := readLabels(m.Tags)
	day, _, _ := strings.Cut(m.ExpiresAt, "T")
	return record{
		ID: m.ID, Memory: text, UserID: orNull(userName(m.User)), AgentID: orNull(partName(m.Project)), AppID: orNull(partName(m.App)),
		RunID: orNull(runName(m.Conversation)), Hash: hex.EncodeToString(sum[:16]), Metadata: l.metadata, Categories: l.categories,
		MemoryType: m.Kind, CreatedAt: createdAt(m), UpdatedAt: m.UpdatedAt, ExpirationDate: orNull(day), ReplacedBy: orNull(m.SupersededBy),
	}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// createdAt returns when a memory's words were said: a client can give that
// time, and means it by created_at.
func createdAt(m *api.Memory) string { return cmp.Or(m.EventTime, m.CreatedAt) }

// statementOf returns the text of a memory without the quotation marks that
// audits put around the user's own words.
func statementOf(m *api.Memory) string {
	if audited(m) {
		if quote, dates, quoted := extract.Quotation(m.Text); quoted {
			return quote + dates
		}
	}
	return m.Text
}

// audited reports whether a memory is a fact that an audit has made of what was
// said.
func audited(m *api.Memory) bool { return m.Kind == string(storage.KindFact) && m.Turn != "" }

// ownerOf returns the target that a memory is in.
func ownerOf(m *api.Memory) api.Target {
	return api.Target{Tenant: m.Tenant, App: identity.Show(m.App), Project: identity.Show(m.Project), User: m.User}
}

// chosen returns a record with the fields that a request asks for, or all of
// them.
func (r *record) chosen(fields []string) (any, error) {
	if len(fields) == 0 {
		return r, nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	for name := range all {
		if name != "id" && !slices.Contains(fields, name) {
			delete(all, name)
		}
	}
	return all, nil
}

// change is an entry of a memory's history as mem0 shows it.
type change struct {
	ID         string   `json:"id"`
	MemoryID   string   `json:"memory_id"`
	Input      []string `json:"input"` // what was said is not kept with it
	OldMemory  *string  `json:"old_memory"`
	NewMemory  *string  `json:"new_memory"`
	UserID     *string  `json:"user_id"`
	Categories []string `json:"categories"`
	Event      string   `json:"event"` // ADD, UPDATE or DELETE
	CreatedAt  string   `json:"created_at"`
	UpdatedAt  string   `json:"updated_at"`
	IsDeleted  bool     `json:"is_deleted"`
	ActorID    *string  `json:"actor_id"`
}
