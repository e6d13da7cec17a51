package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// maxReviewed bounds the memories that one call of Sources or Contradictions
// reads. Those beyond it are left out, and the answer says so.
const maxReviewed = 100_000

// SourceCount counts the memories of one source, without those that are
// deleted.
type SourceCount struct {
	Source      string         `json:"source"`
	Memories    int            `json:"memories"`
	Kinds       map[string]int `json:"kinds"`
	Quarantined int            `json:"quarantined"`     // of Memories
	First       string         `json:"first,omitempty"` // of the event times
	Last        string         `json:"last,omitempty"`
}

// Sources are those of a user's memories, the one with the most first.
type Sources struct {
	Sources []SourceCount `json:"sources"`
	// Truncated reports that there are more memories than were counted.
	Truncated bool `json:"truncated,omitempty"`
}

// Sources counts a user's memories by their source: the surface that they came
// in through. It reads them all, 100,000 at most.
func (s *memories) Sources(ctx context.Context, p Principal, t Target) (Sources, error) {
	out := Sources{Sources: []SourceCount{}}
	scope, err := s.scope(p, t)
	if err != nil {
		return out, err
	}
	type count struct {
		SourceCount
		first, last storage.Time
	}
	bySource := map[string]*count{}
	out.Truncated, err = s.review(ctx, scope, storage.Query{}, func(m *storage.Memory) {
		if m.DeletedAt != 0 {
			return
		}
		c := bySource[m.Source]
		if c == nil {
			c = &count{SourceCount: SourceCount{Source: m.Source, Kinds: map[string]int{}}, first: m.EventTime}
			bySource[m.Source] = c
		}
		c.Memories++
		c.Kinds[string(m.Kind)]++
		c.first, c.last = min(c.first, m.EventTime), max(c.last, m.EventTime)
		if stateOf(m) == StateQuarantined {
			c.Quarantined++
		}
	})
	if err != nil {
		return out, err
	}
	for _, c := range bySource {
		c.First, c.Last = stamp(c.first), stamp(c.last)
		out.Sources = append(out.Sources, c.SourceCount)
	}
	slices.SortFunc(out.Sources, func(a, b SourceCount) int {
		return cmp.Or(cmp.Compare(b.Memories, a.Memories), strings.Compare(a.Source, b.Source))
	})
	return out, nil
}

// review reads the memories of a scope, and reports whether there are more than
// maxReviewed.
func (s *memories) review(ctx context.Context, scope storage.Scope, q storage.Query, found func(*storage.Memory)) (more bool, err error) {
	n := 0
	for page, err := range storage.ScanPages(ctx, s.Store, scope, q) {
		if err != nil {
			return false, err
		}
		for i := range page.Memories {
			if n++; n > maxReviewed {
				return true, nil
			}
			found(&page.Memories[i])
		}
	}
	return false, nil
}

// Contradiction is a pair of facts of which one took the place of the other.
type Contradiction struct {
	Newer Memory `json:"newer"` // what took the place: it holds, or something later does
	Older Memory `json:"older"`
	// Opposite reports that one denies the other. Otherwise it gives another
	// value of the same subject.
	Opposite bool   `json:"opposite"`
	At       string `json:"at"` // when the older gave way
}

// Contradictions is a page of pairs.
type Contradictions struct {
	Contradictions []Contradiction `json:"contradictions"`
	// Next continues the list; "" = done. A page may be short, and even empty,
	// though there is more.
	Next string `json:"next,omitempty"`
	// Truncated reports that there are more facts than were looked through.
	Truncated bool `json:"truncated,omitempty"`
}

// yielded is a fact that gave way to another.
type yielded struct {
	at         storage.Time
	id, winner string
}

func (y yielded) compare(z yielded) int {
	return cmp.Or(cmp.Compare(z.at, y.at), strings.Compare(y.id, z.id))
}

func (y yielded) cursor() string { return strconv.FormatInt(int64(y.at), 36) + "." + y.id }

func parseYielded(cursor string) (y yielded, err error) {
	at, id, ok := strings.Cut(cursor, ".")
	n, err := strconv.ParseInt(at, 36, 64)
	if !ok || err != nil || id == "" || len(id) > storage.MaxID {
		return y, invalid("cursor", "is not of this list")
	}
	return yielded{at: storage.Time(n), id: id}, nil
}

// Contradictions returns a page of the pairs of a user's facts of which one took
// the place of the other, the newest first. Pairs with a fact that is deleted
// or in quarantine are left out. It looks through all facts, 100,000 at most.
func (s *memories) Contradictions(ctx context.Context, p Principal, t Target, cursor string, limit int) (Contradictions, error) {
	out := Contradictions{Contradictions: []Contradiction{}}
	limit, err := pageSize(limit)
	if err != nil {
		return out, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return out, err
	}
	var after yielded
	if cursor != "" {
		if after, err = parseYielded(cursor); err != nil {
			return out, err
		}
	}
	var all []yielded
	out.Truncated, err = s.review(ctx, scope, storage.Query{Kinds: []storage.Kind{storage.KindFact}}, func(m *storage.Memory) {
		y := yielded{m.ValidTo, m.ID, m.SupersededBy}
		if y.winner != "" && stateOf(m) == StateSuperseded && (cursor == "" || after.compare(y) < 0) {
			all = append(all, y)
		}
	})
	if err != nil {
		return out, err
	}
	slices.SortFunc(all, yielded.compare)
	if len(all) > limit {
		all = all[:limit]
		out.Next = all[limit-1].cursor()
	}
	for _, y := range all {
		pair, err := s.contradiction(ctx, scope, y)
		if err != nil {
			return out, err
		}
		if pair != nil {
			out.Contradictions = append(out.Contradictions, *pair)
		}
	}
	return out, nil
}

// contradiction reads a pair. It returns nil if one of them can't be shown.
func (s *memories) contradiction(ctx context.Context, scope storage.Scope, y yielded) (*Contradiction, error) {
	var pair [2]storage.Memory
	for i, id := range [...]string{y.winner, y.id} {
		m, err := s.Store.Memory(ctx, scope, id)
		switch {
		case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged):
			return nil, nil
		case err != nil:
			return nil, err
		case m.DeletedAt != 0 || m.Trust == 0:
			return nil, nil
		}
		pair[i] = m
	}
	s.places.note(scope, y.winner, y.id)
	newer, older := &pair[0], &pair[1]
	return &Contradiction{s.show(newer), s.show(older), facts.Contradicts(newer, older), stamp(y.at)}, nil
}

// Prefer says that a fact that another took the place of holds after all. The
// one that holds in its place is superseded by it from then on. It returns what
// changed, the preferred fact first. Undo of either takes both changes back.
func (s *memories) Prefer(ctx context.Context, p Principal, t Target, id, why string) ([]Memory, error) {
	if err := checkLength("why", why, MaxReason); err != nil {
		return nil, err
	}
	m, err := s.locate(ctx, p, t, id)
	if err != nil {
		return nil, err
	}
	changed, err := s.Pipeline.Prefer(ctx, m.Scope, id, persist.Cause{By: p.By, Why: why})
	if errors.Is(err, persist.ErrCurrent) {
		return nil, invalid("id", "is of no fact that another took the place of")
	}
	if err != nil {
		return nil, err
	}
	return s.showAll(changed), nil
}

// ForgetRequest is what a user has asked to be forgotten, and nobody has
// answered yet.
type ForgetRequest struct {
	ID           string   `json:"id"`
	At           string   `json:"at"` // when it was said
	Conversation string   `json:"conversation,omitempty"`
	Turn         string   `json:"turn,omitempty"`
	Text         string   `json:"text"`
	Memories     []Memory `json:"memories"` // that it seems to mean, and that are still there
}

// ForgetRequests returns the requests to forget of a user that nobody has
// answered, oldest first. There are at most 100.
func (s *memories) ForgetRequests(ctx context.Context, p Principal, t Target) ([]ForgetRequest, error) {
	scope, err := s.scope(p, t)
	if err != nil {
		return nil, err
	}
	pending, err := s.Pipeline.PendingForgets(ctx, scope)
	if err != nil {
		return nil, err
	}
	out := []ForgetRequest{}
	for i := range pending {
		f := &pending[i]
		r := ForgetRequest{
			ID: f.ID, At: stamp(f.At), Conversation: f.Conversation, Turn: f.Turn, Text: s.Redact(f.Text), Memories: []Memory{},
		}
		for _, id := range f.Memories {
			m, err := s.Store.Memory(ctx, scope, id)
			if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) || err == nil && m.DeletedAt != 0 {
				continue
			}
			if err != nil {
				return nil, err
			}
			r.Memories = append(r.Memories, s.show(&m))
			s.places.note(scope, id)
		}
		out = append(out, r)
	}
	return out, nil
}

// AnswerForget answers a request to forget, which is gone then. With forget, the
// memories with these ids, of those that the request names, are deleted; all
// that it names without ids. That can be undone for a day, and does not bring
// the request back.
func (s *memories) AnswerForget(ctx context.Context, p Principal, t Target, id string, forget bool, ids []string) (Removed, error) {
	out := Removed{Deleted: []string{}}
	if len(ids) > 0 {
		if !forget {
			return out, invalid("ids", "are for requests that are granted")
		}
		if err := checkIDs("ids", ids); err != nil {
			return out, err
		}
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return out, err
	}
	meant, err := s.pendingForget(ctx, scope, id)
	if err != nil {
		return out, err
	}
	for n, given := range ids {
		if !slices.Contains(meant, given) {
			return out, invalid(fmt.Sprintf("ids[%d]", n), "is not one of the request's memories")
		}
	}
	if len(ids) > 0 {
		meant = ids
	}
	if forget && len(meant) > 0 {
		if out, err = s.grantForget(ctx, scope, p, meant); err != nil {
			return out, err
		}
	}
	return out, s.Pipeline.DismissForget(ctx, scope, id)
}

// pendingForget returns the ids of the memories that a request to forget names.
func (s *memories) pendingForget(ctx context.Context, scope storage.Scope, id string) ([]string, error) {
	pending, err := s.Pipeline.PendingForgets(ctx, scope)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(pending, func(f persist.PendingForget) bool { return f.ID == id })
	if i < 0 {
		return nil, ErrNotFound
	}
	return pending[i].Memories, nil
}

// grantForget deletes what a user asked to be forgotten. Some of it, or all, may
// be gone already.
func (s *memories) grantForget(ctx context.Context, scope storage.Scope, p Principal, ids []string) (Removed, error) {
	out := Removed{Deleted: []string{}}
	gone, err := s.Pipeline.Discard(ctx, scope, persist.Cause{By: p.By, Why: "the user asked for it"}, ids...)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return out, err
	}
	for i := range gone {
		out.Deleted = append(out.Deleted, gone[i].ID)
	}
	if len(gone) > 0 {
		out.UndoUntil = stamp(storage.TimeOf(s.Now().Add(persist.UndoTime)))
	}
	return out, nil
}
