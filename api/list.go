package api

import (
	"context"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// Filter selects memories. Zero fields select everything.
type Filter struct {
	ID           string // the beginning of the id; see ShortID
	Conversation string
	Kinds        []string
	Tags         []string // all of them
	Query        string   // all of its words, in any case and any order
	MinPriority  float64
	MaxPriority  float64  // 0 = any
	Since, Until string   // of the event time, as RFC 3339 or a day; Until is exclusive
	States       []string // empty = current
	Used         *bool    // inserted into a request, or never
	ResourceURI  string
	Source       string // "" = any
	Oldest       bool   // the oldest first
}

// Memories is a page of memories.
type Memories struct {
	Memories []Memory `json:"memories"`
	// Next continues the list; "" = done. A page may be short, and even empty,
	// though there is more: a call reads a bounded number of memories.
	Next string `json:"next,omitempty"`
	// Damaged counts memories of this page that can't be read.
	Damaged int `json:"damaged,omitempty"`
}

// maxScanned bounds the memories that one call of List reads.
const maxScanned = 5000

type filter struct {
	Filter
	since, until storage.Time
	words        []string
	uses         map[string]receipt.Use
}

func (s *memories) compile(ctx context.Context, scope storage.Scope, f Filter) (out filter, err error) {
	out.Filter = f
	for _, kind := range f.Kinds {
		if !slices.Contains(kinds, kind) {
			return out, invalid("kind", "must be one of %s", strings.Join(kinds, ", "))
		}
	}
	for _, state := range f.States {
		if !slices.Contains(States(), state) {
			return out, invalid("state", "must be one of %s", strings.Join(States(), ", "))
		}
	}
	if len(f.States) == 0 {
		out.States = []string{StateCurrent}
	}
	if err := checkTags("tag", f.Tags); err != nil {
		return out, err
	}
	if err := checkLength("q", f.Query, MaxQuery); err != nil {
		return out, err
	}
	if err := checkLength("conversation", f.Conversation, storage.MaxScopePart); err != nil {
		return out, err
	}
	if err := checkLength("id", f.ID, storage.MaxScopePart); err != nil {
		return out, err
	}
	if err := checkLength("source", f.Source, storage.MaxScopePart); err != nil {
		return out, err
	}
	if err := checkShare("minPriority", f.MinPriority); err != nil {
		return out, err
	}
	if err := checkShare("maxPriority", f.MaxPriority); err != nil {
		return out, err
	}
	if out.since, err = parseTime("since", f.Since); err != nil {
		return out, err
	}
	if out.until, err = parseTime("until", f.Until); err != nil {
		return out, err
	}
	out.words = strings.Fields(strings.ToLower(f.Query))
	if f.Used != nil {
		out.uses, err = receipt.Uses(ctx, s.Store, scope)
	}
	return out, err
}

var kinds = []string{string(storage.KindEpisode), string(storage.KindFact), string(storage.KindResource), string(storage.KindCurated)}

func (f *filter) matches(m *storage.Memory) bool {
	switch {
	case !slices.Contains(f.States, stateOf(m)),
		m.Priority < f.MinPriority, f.MaxPriority > 0 && m.Priority > f.MaxPriority,
		f.since != 0 && m.EventTime < f.since, f.until != 0 && m.EventTime >= f.until:
		return false
	}
	if f.Used != nil {
		if _, used := f.uses[m.ID]; used != *f.Used {
			return false
		}
	}
	if f.ID != "" && !beginsID(m.ID, f.ID) {
		return false
	}
	if f.Source != "" && m.Source != f.Source {
		return false
	}
	if f.ResourceURI != "" && taggedWith(m.Tags, storage.ResourceTag) != f.ResourceURI {
		return false
	}
	for _, tag := range f.Tags {
		if !slices.Contains(m.Tags, tag) {
			return false
		}
	}
	if len(f.words) == 0 {
		return true
	}
	text := strings.ToLower(m.Text)
	for _, word := range f.words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func (f *filter) query() storage.Query {
	q := storage.Query{Conversation: f.Conversation, Newest: !f.Oldest}
	for _, kind := range f.Kinds {
		q.Kinds = append(q.Kinds, storage.Kind(kind))
	}
	return q
}

// List returns a page of a user's memories, the newest first.
func (s *memories) List(ctx context.Context, p Principal, t Target, f Filter, cursor string, limit int) (Memories, error) {
	out := Memories{Memories: []Memory{}}
	limit, err := pageSize(limit)
	if err != nil {
		return out, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return out, err
	}
	chosen, err := s.compile(ctx, scope, f)
	if err != nil {
		return out, err
	}
	q := chosen.query()
	q.After = cursor
	var ids []string
	for scanned := 0; len(out.Memories) < limit; {
		need := limit - len(out.Memories)
		q.Limit = min(ahead(need, len(out.Memories), scanned), maxScanned-scanned)
		page, matched, err := s.scan(ctx, scope, q, &chosen, need)
		if err != nil {
			return out, cursorError(err, q.After)
		}
		out.Damaged += page.Damaged
		out.Memories = slices.Grow(out.Memories, len(matched))
		for _, m := range matched {
			out.Memories = append(out.Memories, s.show(m))
			ids = append(ids, m.ID)
		}
		if scanned += len(page.Memories); page.Next == "" {
			q.After = ""
			break
		}
		if q.After = page.Next; scanned >= maxScanned {
			break
		}
	}
	s.places.note(scope, ids...)
	out.Next = q.After
	return out, nil
}

// maxPerNeeded bounds how many memories are read at a time for each that is
// needed.
const maxPerNeeded = 10

// ahead returns how many memories to read so that need of them match, if found
// of those scanned before did. It is rather too few: what is too much is read
// again.
func ahead(need, found, scanned int) int {
	if found == scanned {
		return need
	}
	return max(need, min(need*scanned*4/(5*max(found, 1)), need*maxPerNeeded))
}

// scan reads a page of the store, and returns those of it that the filter
// selects. If these are more than need, the page ends with the last that is
// needed.
func (s *memories) scan(ctx context.Context, scope storage.Scope, q storage.Query, f *filter, need int) (page storage.Page, matched []*storage.Memory, err error) {
	for {
		if page, err = s.Store.Scan(ctx, scope, q); err != nil {
			return page, nil, err
		}
		matched = matched[:0]
		for i := range page.Memories {
			if m := &page.Memories[i]; f.matches(m) {
				if matched = append(matched, m); len(matched) == need && i+1 < len(page.Memories) {
					q.Limit = i + 1 // where the next page begins, only the store knows
					break
				}
			}
		}
		if len(matched) < need || len(page.Memories) <= q.Limit {
			return page, matched, nil
		}
	}
}

// Count returns how many memories of a user a filter selects. It reads them
// all.
func (s *memories) Count(ctx context.Context, p Principal, t Target, f Filter) (n int, err error) {
	scope, err := s.scope(p, t)
	if err != nil {
		return 0, err
	}
	chosen, err := s.compile(ctx, scope, f)
	if err != nil {
		return 0, err
	}
	for page, err := range storage.ScanPages(ctx, s.Store, scope, chosen.query()) {
		if err != nil {
			return 0, err
		}
		for i := range page.Memories {
			if chosen.matches(&page.Memories[i]) {
				n++
			}
		}
	}
	return n, nil
}

// Get returns one memory. With deleted, one that was deleted and can be brought
// back counts.
func (s *memories) Get(ctx context.Context, p Principal, t Target, id string, deleted bool) (Memory, error) {
	m, err := s.locate(ctx, p, t, id)
	if err != nil {
		return Memory{}, err
	}
	if m.DeletedAt != 0 && !deleted {
		return Memory{}, ErrNotFound
	}
	out := s.show(&m)
	if u, err := receipt.UseOf(ctx, s.Store, m.Scope, id); err == nil {
		out.Uses = &Uses{u.Count, stamp(u.Last)}
	}
	return out, nil
}
