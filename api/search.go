package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// Search asks for memories by what they say.
type Search struct {
	Query        string   `json:"query"`
	Conversation string   `json:"conversation,omitempty"`
	Scopes       []string `json:"scope,omitempty"` // current_chat, resources, all_user_memory; empty = the configured ones
	TopK         int      `json:"topK,omitempty"`  // 1..100; 0 = the configured one
	Kinds        []string `json:"kinds,omitempty"`
	Tags         []string `json:"tags,omitempty"` // all of them
	// Gated applies the gate and all that follows it, as for requests; otherwise
	// whatever matches is ranked.
	Gated bool `json:"gated,omitempty"`
}

// Found is a memory with its score taken apart.
type Found struct {
	Memory Memory  `json:"memory"`
	Score  float64 `json:"score"`
	Parts  []Part  `json:"parts,omitempty"`
}

// Part is an addend or a factor of a score: see recall.Part.
type Part struct {
	Name  string  `json:"name"`
	Term  string  `json:"term,omitempty"`
	Value float64 `json:"value"`
}

// Turned is a memory that matched and was turned down.
type Turned struct {
	Memory *Memory `json:"memory,omitempty"` // nil if it is gone
	ID     string  `json:"id"`
	Score  float64 `json:"score"`
	Reason string  `json:"reason"`
}

// Results are what a search found, best first.
type Results struct {
	Results    []Found  `json:"results"`
	Cut        []Turned `json:"cut"`
	Considered int      `json:"considered"`
	Relevance  float64  `json:"relevance"`
	Gate       float64  `json:"gate"`
	Vectors    string   `json:"vectors,omitempty"`
	TookMicros int64    `json:"took_us"`
}

// searchTimeout bounds a search by hand, which may wait for the user's index.
const searchTimeout = 10 * time.Second

func (q *Search) check() error {
	if strings.TrimSpace(q.Query) == "" {
		return invalid("query", "is empty")
	}
	if err := checkLength("query", q.Query, MaxQuery); err != nil {
		return err
	}
	if q.TopK < 0 || q.TopK > MaxTopK {
		return invalid("topK", "must be 1..%d", MaxTopK)
	}
	if err := checkLength("conversation", q.Conversation, storage.MaxScopePart); err != nil {
		return err
	}
	if err := checkTags("tags", q.Tags); err != nil {
		return err
	}
	for i, kind := range q.Kinds {
		if !slices.Contains(kinds, kind) {
			return invalid(fmt.Sprintf("kinds[%d]", i), "must be one of %s", strings.Join(kinds, ", "))
		}
	}
	_, err := searchScopes(q.Scopes)
	return err
}

func searchScopes(names []string) (out []recall.SearchScope, err error) {
	for i, name := range names {
		switch s := recall.SearchScope(name); s {
		case recall.CurrentChat, recall.Resources, recall.AllUserMemory:
			out = append(out, s)
		default:
			return nil, invalid(fmt.Sprintf("scope[%d]", i), "must be current_chat, resources or all_user_memory")
		}
	}
	return out, nil
}

// Search searches a user's memories and explains what it finds.
func (s *questions) Search(ctx context.Context, p Principal, t Target, q Search) (Results, error) {
	if err := q.check(); err != nil {
		return Results{}, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return Results{}, err
	}
	scopes, err := searchScopes(q.Scopes)
	if err != nil {
		return Results{}, err
	}
	req := recall.Request{
		Scope: scope, Conversation: q.Conversation, Newest: q.Query, HumanOnly: true, Now: s.Now(), Scopes: scopes, TopK: q.TopK,
		BudgetTokens: 1 << 20, NoGate: !q.Gated, Explain: true, Screen: s.Redact,
		Unwanted: !q.Gated,
	}
	if len(q.Kinds)+len(q.Tags) > 0 {
		req.Allow = func(kind storage.Kind, tags []string) bool {
			return (len(q.Kinds) == 0 || slices.Contains(q.Kinds, string(kind))) &&
				!slices.ContainsFunc(q.Tags, func(tag string) bool { return !slices.Contains(tags, tag) })
		}
	}
	res, err := patiently(ctx, s.Engine, req)
	if err != nil {
		return Results{}, err
	}
	out := s.results(ctx, scope, &res)
	if req.Allow != nil { // what the caller excludes is not reported
		out.Cut = slices.DeleteFunc(out.Cut, func(c Turned) bool { return c.Reason == string(recall.CutPolicy) })
	}
	return out, nil
}

// patiently searches, and waits for the index of a user who was not searched
// before.
func patiently(ctx context.Context, engine *recall.Engine, req recall.Request) (recall.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	for {
		res, err := engine.Recall(ctx, req)
		if !errors.Is(err, recall.ErrTimeout) || ctx.Err() != nil {
			return res, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *questions) results(ctx context.Context, scope storage.Scope, res *recall.Result) Results {
	out := Results{
		Results: []Found{}, Cut: []Turned{}, Considered: res.Considered, Relevance: res.Relevance, Gate: s.Recall.Gate,
		Vectors: string(res.Vectors), TookMicros: res.Took.Microseconds(),
	}
	for i := range res.Memories {
		m := &res.Memories[i]
		m.Memory.Scope = scope
		f := Found{Memory: s.show(&m.Memory), Score: m.Score}
		for _, part := range m.Parts {
			f.Parts = append(f.Parts, Part{part.Name, part.Term, part.Value})
		}
		out.Results = append(out.Results, f)
		s.places.note(scope, m.Memory.ID)
	}
	var cut []Turned
	for _, c := range res.Cut {
		if !slices.ContainsFunc(out.Results, func(f Found) bool { return f.Memory.ID == c.ID }) { // or found in another way
			cut = append(cut, Turned{ID: c.ID, Score: c.Score, Reason: string(c.Reason)})
		}
	}
	out.Cut = append(out.Cut, s.turned(ctx, scope, cut)...)
	return out
}

// maxReaders is how many memories are read at the same time: most of the time
// of one is the way to the store's process.
const maxReaders = 8

// turned fills in the memories, as far as they are still there.
func (s *questions) turned(ctx context.Context, scope storage.Scope, list []Turned) []Turned {
	found := make([]*storage.Memory, len(list))
	var all sync.WaitGroup
	for part := range min(len(list), maxReaders) {
		all.Go(func() { // and no more than reading: callers guard the rest against panics
			for i := part; i < len(list); i += maxReaders {
				if m, err := s.Store.Memory(ctx, scope, list[i].ID); err == nil && m.DeletedAt == 0 {
					found[i] = &m
				}
			}
		})
	}
	all.Wait()
	for i, m := range found {
		if m != nil {
			shown := s.show(m)
			list[i].Memory = &shown
		}
	}
	return list
}

// Question asks what a request would be given.
type Question struct {
	// Message is the newest user message as a client would send it.
	Message      string   `json:"message"`
	Previous     string   `json:"previous,omitempty"` // the user's message before
	Conversation string   `json:"conversation,omitempty"`
	Upstream     string   `json:"upstream,omitempty"` // with Model: under whose policy
	Model        string   `json:"model,omitempty"`
	AsOf         string   `json:"asOf,omitempty"` // a time or a day: what was known then
	Scopes       []string `json:"scope,omitempty"`
	TopK         int      `json:"topK,omitempty"`
}

// Answer is what a request would be given.
type Answer struct {
	Results
	// Block is the text that would be inserted; "" = nothing.
	Block string `json:"block"`
	// Memory is what the policy grants there: on, read or off.
	Memory string `json:"memory"`
	AsOf   string `json:"asOf,omitempty"`
}

// Try returns what a request would be given, now or as of a date. It inserts
// and stores nothing.
func (s *questions) Try(ctx context.Context, p Principal, t Target, q Question) (Answer, error) {
	check := Search{Query: q.Message, Conversation: q.Conversation, Scopes: q.Scopes, TopK: q.TopK}
	for _, field := range [...]struct {
		name, value string
		limit       int
	}{
		{"message", q.Message, MaxMessage}, {"previous", q.Previous, MaxMessage}, {"upstream", q.Upstream, storage.MaxScopePart},
		{"model", q.Model, storage.MaxScopePart},
	} {
		if err := checkLength(field.name, field.value, field.limit); err != nil {
			return Answer{}, err
		}
	}
	check.Query = q.Message[:min(len(q.Message), MaxQuery)]
	check.Query = strings.ToValidUTF8(check.Query, "")
	if err := check.check(); err != nil {
		if field, ok := errors.AsType[*FieldError](err); ok && field.Field == "query" {
			field.Field = "message"
		}
		return Answer{}, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return Answer{}, err
	}
	scopes, _ := searchScopes(q.Scopes)
	class := s.Policy.For(q.Upstream, q.Model)
	req := recall.Request{
		Scope: scope, Conversation: q.Conversation, Newest: q.Message, Now: s.Now(), Scopes: scopes, TopK: q.TopK, Explain: true, Screen: s.Redact,
		NoPrivate: !class.Private(), Previous: func() string { return q.Previous },
	}
	if class.Limits() {
		req.Allow = func(kind storage.Kind, tags []string) bool { return class.Allows(scope.Project, kind, tags) }
	}
	out := Answer{Memory: class.Memory}
	var res recall.Result
	if q.AsOf != "" {
		at, err := parseTime("asOf", q.AsOf)
		if err != nil {
			return Answer{}, err
		}
		out.AsOf, req.Now = stamp(at), at.Std()
		res, err = s.recallFrom(ctx, pastStore{s.Store, at}, req)
		if err != nil {
			return Answer{}, err
		}
	} else if res, err = patiently(ctx, s.Engine, req); err != nil {
		return Answer{}, err
	}
	out.Results = s.results(ctx, scope, &res)
	if class.Memory == policy.MemoryOff {
		return out, nil
	}
	lines := make([]fence.Line, 0, len(res.Memories))
	for i := range res.Memories {
		lines = append(lines, fence.LineOf(&res.Memories[i].Memory, s.Redact))
	}
	out.Block = fence.Render(exampleID, lines, fence.Options{Placeholder: s.Placeholder}).Text
	hidden, err := s.unrecallable(ctx, scope, q.Message, req.Now)
	if err != nil {
		return Answer{}, err
	}
	out.Cut = append(out.Cut, hidden...)
	return out, nil
}

// exampleID is the name of a block that is inserted nowhere.
const exampleID = "000000000000"

// recallFrom searches an index that is made for one question.
func (s *questions) recallFrom(ctx context.Context, src recall.Source, req recall.Request) (recall.Result, error) {
	cfg := s.Recall
	cfg.SnapshotAfter, cfg.Vectors = 0, recall.VectorConfig{}
	engine := recall.New(cfg, src, s.Log, nil)
	defer engine.Close()
	return patiently(ctx, engine, req)
}

// pastStore shows a store as of a time: what was said later is not there, and
// what was superseded later holds.
type pastStore struct {
	storage.Store
	at storage.Time
}

func (p pastStore) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error) {
	page, err := p.Store.Scan(ctx, scope, q)
	kept := page.Memories[:0]
	for _, m := range page.Memories {
		if m.EventTime > p.at {
			continue
		}
		if m.ValidTo > p.at {
			m.ValidTo, m.SupersededBy = 0, ""
		}
		kept = append(kept, m)
	}
	page.Memories, page.Expired = kept, storage.Digest{}
	return page, err
}

// maxUnrecallable limits what unrecallable returns.
const maxUnrecallable = 10

// unrecallable returns the memories that would match a message but are never
// recalled, because they are superseded or in quarantine.
func (s *questions) unrecallable(ctx context.Context, scope storage.Scope, message string, now time.Time) ([]Turned, error) {
	src := &shadowStore{Store: s.Store, state: map[string]string{}}
	res, err := s.recallFrom(ctx, src, recall.Request{Scope: scope, Newest: message, Now: now, TopK: maxUnrecallable})
	if err != nil {
		return nil, err
	}
	out := make([]Turned, len(res.Memories))
	for i := range res.Memories {
		id := res.Memories[i].Memory.ID
		out[i] = Turned{ID: id, Score: res.Memories[i].Score, Reason: src.state[id]}
	}
	out = s.turned(ctx, scope, out)
	slices.SortStableFunc(out, func(a, b Turned) int { return cmp.Compare(b.Score, a.Score) })
	return out, nil
}

// shadowStore shows only the memories of a store that are never recalled, as
// though they were.
type shadowStore struct {
	storage.Store
	state map[string]string
}

func (h *shadowStore) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error) {
	page, err := h.Store.Scan(ctx, scope, q)
	kept := page.Memories[:0]
	for _, m := range page.Memories {
		if state := stateOf(&m); state == StateSuperseded || state == StateQuarantined {
			h.state[m.ID] = state
			m.ValidTo, m.SupersededBy, m.Trust = 0, "", 1
			kept = append(kept, m)
		}
	}
	page.Memories, page.Expired = kept, storage.Digest{}
	return page, err
}
