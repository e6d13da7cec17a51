package api

import (
	"context"
	"errors"
	"slices"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// Draft is a memory that a caller adds.
type Draft struct {
	Text         string   `json:"text"`
	Kind         string   `json:"kind,omitempty"` // fact; "" = fact
	Tags         []string `json:"tags,omitempty"`
	Conversation string   `json:"conversation,omitempty"`
	Priority     float64  `json:"priority,omitempty"`  // 0 = that of what is asked to be remembered
	EventTime    string   `json:"eventTime,omitempty"` // "" = now
}

// Added is what became of a draft.
type Added struct {
	Memory Memory `json:"memory"`
	// Event is added, known (it says what is known, which is reinforced) or
	// superseded (it was added, and an older statement gave way), or forgotten
	// (it is dated before it was forgotten, and was not added).
	Event string `json:"event"`
}

// Add saves a fact of a user. source names the face that it came in through.
func (s *memories) Add(ctx context.Context, p Principal, t Target, d Draft, source string) (Added, error) {
	scope, err := s.scope(p, t)
	if err != nil {
		return Added{}, err
	}
	m, err := d.memory(source)
	if err != nil {
		return Added{}, err
	}
	if err := s.checkPlainTags("tags", d.Tags); err != nil {
		return Added{}, err
	}
	if err := s.available(ctx, scope); err != nil {
		return Added{}, err
	}
	saved, err := s.Pipeline.Remember(ctx, scope, m)
	if err != nil {
		return Added{}, err
	}
	return s.added(scope, &saved[0]), nil
}

func (s *memories) added(scope storage.Scope, saved *persist.Saved) Added {
	s.places.note(scope, saved.Memory.ID)
	out := Added{Memory: s.show(&saved.Memory), Event: "added"}
	switch {
	case saved.Forgotten:
		out.Event, out.Memory.ID = "forgotten", ""
	case saved.Known:
		out.Event = "known"
	case saved.Superseded:
		out.Event = "superseded"
	}
	return out
}

func (d *Draft) memory(source string) (m storage.Memory, err error) {
	if err := checkText("text", d.Text); err != nil {
		return m, err
	}
	if d.Kind != "" && d.Kind != string(storage.KindFact) {
		return m, invalid("kind", "must be fact: documents have routes of their own")
	}
	if err := checkTags("tags", d.Tags); err != nil {
		return m, err
	}
	if slices.ContainsFunc(d.Tags, internalTag) {
		return m, invalid("tags", "one of them begins like a tag of the engine")
	}
	if err := checkShare("priority", d.Priority); err != nil {
		return m, err
	}
	if err := checkLength("conversation", d.Conversation, storage.MaxScopePart); err != nil {
		return m, err
	}
	at, err := parseTime("eventTime", d.EventTime)
	if err != nil {
		return m, err
	}
	return storage.Memory{
		Kind: storage.KindFact, Text: d.Text, Tags: withTags(nil, d.Tags), Conversation: d.Conversation, Priority: d.Priority, EventTime: at, Source: source,
	}, nil
}

// Patch changes fields of a memory; nil fields stay.
type Patch struct {
	Text     *string   `json:"text,omitempty"`
	Tags     *[]string `json:"tags,omitempty"`
	Priority *float64  `json:"priority,omitempty"`
	// State is current, to release a memory from quarantine, or quarantined.
	State *string `json:"state,omitempty"`
	// Deleted discards the memory, which can be undone for a day.
	Deleted *bool  `json:"deleted,omitempty"`
	Why     string `json:"why,omitempty"`
}

// trustUser is the trust of what a person has released from quarantine.
const trustUser = 1

func (d *Patch) check() error {
	if d.Text == nil && d.Tags == nil && d.Priority == nil && d.State == nil && d.Deleted == nil {
		return invalid("body", "changes nothing: give text, tags, priority, state or deleted")
	}
	if d.Text != nil {
		if err := checkText("text", *d.Text); err != nil {
			return err
		}
	}
	if d.Tags != nil {
		if err := checkTags("tags", *d.Tags); err != nil {
			return err
		}
		if slices.ContainsFunc(*d.Tags, internalTag) {
			return invalid("tags", "one of them begins like a tag of the engine")
		}
	}
	if d.Priority != nil {
		if err := checkShare("priority", *d.Priority); err != nil {
			return err
		}
	}
	if d.State != nil && *d.State != StateCurrent && *d.State != StateQuarantined {
		return invalid("state", "must be current or quarantined")
	}
	return checkLength("why", d.Why, MaxReason)
}

// Update changes a memory. version is what the caller has seen, 0 = any.
func (s *memories) Update(ctx context.Context, p Principal, t Target, id string, version uint64, d Patch) (Memory, error) {
	if err := d.check(); err != nil {
		return Memory{}, err
	}
	if d.Tags != nil {
		if err := s.checkPlainTags("tags", *d.Tags); err != nil {
			return Memory{}, err
		}
	}
	m, err := s.locate(ctx, p, t, id)
	if err != nil {
		return Memory{}, err
	}
	cause := persist.Cause{By: p.By, Why: d.Why}
	if d.Text != nil || d.Tags != nil || d.Priority != nil || d.State != nil {
		if m, err = s.edit(ctx, &m, version, cause, d.apply); err != nil {
			return Memory{}, err
		}
		version = 0
	}
	if d.Deleted != nil && *d.Deleted {
		if version != 0 && version != m.Version {
			return Memory{}, persist.ErrChanged
		}
		if _, err := s.Pipeline.Discard(ctx, m.Scope, cause, id); err != nil {
			return Memory{}, err
		}
		if m, err = s.Store.Memory(ctx, m.Scope, id); err != nil {
			return Memory{}, err
		}
	} else if d.Deleted != nil && m.DeletedAt != 0 {
		return Memory{}, invalid("deleted", "undo brings back what was deleted")
	}
	return s.show(&m), nil
}

// edit changes a memory. If that gives it the tag private, or takes it away, it
// does the same to all memories of its turn.
func (s *memories) edit(ctx context.Context, before *storage.Memory, version uint64, cause persist.Cause, change func(*storage.Memory) error) (storage.Memory, error) {
	private := slices.Contains(before.Tags, storage.PrivateTag)
	m, err := s.Pipeline.Edit(ctx, before.Scope, before.ID, version, cause, change)
	if err != nil {
		return m, err
	}
	if now := slices.Contains(m.Tags, storage.PrivateTag); now != private {
		return m, s.spreadPrivate(ctx, &m, now, cause)
	}
	return m, nil
}

func (d *Patch) apply(m *storage.Memory) error {
	if d.Text != nil {
		m.Text = *d.Text
	}
	if d.Tags != nil {
		m.Tags = withTags(m.Tags, *d.Tags)
	}
	if d.Priority != nil {
		m.Priority = *d.Priority
	}
	if d.State != nil {
		m.Trust = 0
		m.Tags = slices.DeleteFunc(m.Tags, func(tag string) bool { return tag == StateQuarantined })
		if *d.State == StateCurrent {
			m.Trust = trustUser
		} else {
			m.Tags = append(m.Tags, StateQuarantined) // which an export keeps
		}
	}
	return nil
}

// spreadPrivate gives all memories of a turn the tag private, or takes it from
// them: what a fact says, its passages say too.
func (s *memories) spreadPrivate(ctx context.Context, of *storage.Memory, private bool, cause persist.Cause) error {
	if of.Provenance.Turn == "" {
		return nil
	}
	var ids []string
	for page, err := range storage.ScanPages(ctx, s.Store, of.Scope, storage.Query{}) {
		if err != nil {
			return err
		}
		for i := range page.Memories {
			if m := &page.Memories[i]; m.Provenance.Turn == of.Provenance.Turn && m.ID != of.ID && m.DeletedAt == 0 &&
				slices.Contains(m.Tags, storage.PrivateTag) != private {
				ids = append(ids, m.ID)
			}
		}
	}
	for _, id := range ids {
		_, err := s.Pipeline.Edit(ctx, of.Scope, id, 0, cause, func(m *storage.Memory) error {
			m.Tags = slices.DeleteFunc(m.Tags, func(tag string) bool { return tag == storage.PrivateTag })
			if private {
				m.Tags = append(m.Tags, storage.PrivateTag)
			}
			return nil
		})
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	return nil
}

// Removed is what was deleted.
type Removed struct {
	Deleted []string `json:"deleted"` // ids, with those of what was made of them
	// UndoUntil is until when it can be brought back; "" = it is erased.
	UndoUntil string `json:"undoUntil,omitempty"`
}

// Delete discards memories, and what was made of them. It can be undone for a
// day.
func (s *memories) Delete(ctx context.Context, p Principal, t Target, why string, ids ...string) (Removed, error) {
	out := Removed{Deleted: []string{}}
	if err := checkIDs("ids", ids); err != nil {
		return out, err
	}
	if err := checkLength("why", why, MaxReason); err != nil {
		return out, err
	}
	byScope := map[storage.Scope][]string{}
	for _, id := range ids {
		m, err := s.locate(ctx, p, t, id)
		if err == nil && m.DeletedAt != 0 {
			err = ErrNotFound
		}
		if err != nil {
			return out, err
		}
		byScope[m.Scope] = append(byScope[m.Scope], id)
	}
	for scope, own := range byScope {
		gone, err := s.Pipeline.Discard(ctx, scope, persist.Cause{By: p.By, Why: why}, own...)
		if err != nil {
			return out, err
		}
		for i := range gone {
			out.Deleted = append(out.Deleted, gone[i].ID)
		}
	}
	out.UndoUntil = stamp(storage.TimeOf(s.Now().Add(persist.UndoTime)))
	return out, nil
}

// Undo takes back the last change of a memory, and what was deleted with it.
func (s *memories) Undo(ctx context.Context, p Principal, t Target, id, why string) ([]Memory, error) {
	if err := checkLength("why", why, MaxReason); err != nil {
		return nil, err
	}
	m, err := s.locate(ctx, p, t, id)
	if err != nil {
		return nil, err
	}
	restored, err := s.Pipeline.Undo(ctx, m.Scope, id, persist.Cause{By: p.By, Why: why})
	if err != nil {
		return nil, err
	}
	return s.showAll(restored), nil
}

// Feedback says that a memory helped or did not, which raises or lowers its
// priority.
func (s *memories) Feedback(ctx context.Context, p Principal, t Target, id string, helped bool, why string) (Memory, error) {
	if err := checkLength("why", why, MaxReason); err != nil {
		return Memory{}, err
	}
	m, err := s.locate(ctx, p, t, id)
	if err != nil {
		return Memory{}, err
	}
	m, err = s.Pipeline.Edit(ctx, m.Scope, id, 0, persist.Cause{By: p.By, Why: why}, func(m *storage.Memory) error {
		if helped {
			m.Priority += (1 - m.Priority) / 4
		} else {
			m.Priority *= 0.5
		}
		return nil
	})
	if err != nil {
		return Memory{}, err
	}
	return s.show(&m), nil
}

// Change is one entry of a memory's history.
type Change struct {
	At string `json:"at"`
	// Op is created, edit, delete, undo, prefer or superseded.
	Op  string `json:"op"`
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Before is the memory as it was; nil for created.
	Before *Memory `json:"before,omitempty"`
}

// History is what is known of how a memory came to be what it is.
type History struct {
	Memory  Memory   `json:"memory"`
	Changes []Change `json:"changes"` // newest first
	// Chain is what superseded it and what it superseded, oldest first, without
	// the memory itself.
	Chain []Memory `json:"chain"`
}

// maxChain bounds a history's chain.
const maxChain = 50

// History returns the changes of a memory.
func (s *memories) History(ctx context.Context, p Principal, t Target, id string) (History, error) {
	m, err := s.locate(ctx, p, t, id)
	if err != nil {
		return History{}, err
	}
	revisions, err := s.Pipeline.Revisions(ctx, m.Scope, id)
	if err != nil {
		return History{}, err
	}
	out := History{Memory: s.show(&m), Changes: []Change{}, Chain: []Memory{}}
	if m.ValidTo != 0 {
		out.Changes = append(out.Changes, Change{At: stamp(m.ValidTo), Op: "superseded", By: "audit"})
	}
	for i := range revisions {
		r := &revisions[i]
		before := s.show(&r.Before)
		out.Changes = append(out.Changes, Change{stamp(r.At), r.Op, r.By, r.Why, &before})
	}
	out.Changes = append(out.Changes, Change{At: stamp(m.CreatedAt), Op: "created", By: m.Source})
	if out.Chain, err = s.chain(ctx, &m); err != nil {
		return History{}, err
	}
	return out, nil
}

// chain follows what superseded a memory and what it superseded.
func (s *memories) chain(ctx context.Context, of *storage.Memory) ([]Memory, error) {
	seen := map[string]bool{of.ID: true}
	read := func(id string) (*storage.Memory, error) {
		if id == "" || seen[id] || len(seen) > maxChain {
			return nil, nil
		}
		seen[id] = true
		m, err := s.Store.Memory(ctx, of.Scope, id)
		if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) || err == nil && m.DeletedAt != 0 {
			return nil, nil
		}
		return &m, err
	}
	out := []Memory{}
	for at := of; at != nil; {
		next, err := read(at.SupersededBy)
		if err != nil {
			return nil, err
		}
		if at = next; at != nil {
			out = append(out, s.show(at))
		}
	}
	for at := of; at != nil; {
		id := taggedWith(at.Tags, "supersedes:")
		if id == "" {
			id = taggedWith(at.Tags, "contradicts:")
		}
		before, err := read(id)
		if err != nil {
			return nil, err
		}
		if at = before; at != nil {
			out = append([]Memory{s.show(at)}, out...)
		}
	}
	return out, nil
}

// Original is what a placeholder in a memory's text stands for.
type Original struct {
	Placeholder string `json:"placeholder"`
	Original    string `json:"original"`
	Type        string `json:"type"`
}

// Originals returns what the placeholders in a memory stand for, as far as that
// is kept. Originals of secrets never are.
func (s *memories) Originals(ctx context.Context, p Principal, t Target, id string) ([]Original, error) {
	m, err := s.locate(ctx, p, t, id)
	if err != nil {
		return nil, err
	}
	out := []Original{}
	for _, o := range redact.DecodeOriginals(m.Redactions) {
		out = append(out, Original{o.Placeholder, o.Text, o.Rule})
	}
	return out, nil
}
