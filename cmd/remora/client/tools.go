package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/remora-proxy/remora/api"
)

// Tools are the verbs that MCP tools need, for the client's caller. Errors wrap
// those of package api.
type Tools struct{ *Client }

// target adds the client's to a target.
func (c Tools) target(t api.Target) *api.Target {
	for _, part := range []struct{ to, from *string }{
		{&t.Tenant, &c.whose.Tenant}, {&t.App, &c.whose.App}, {&t.Project, &c.whose.Project}, {&t.User, &c.whose.User},
	} {
		if *part.to == "" {
			*part.to = *part.from
		}
	}
	return &t
}

// answer makes a request and decodes the answer.
func answer[T any](ctx context.Context, c Tools, t api.Target, method, path string, query url.Values, body any) (out T, err error) {
	err = c.call(ctx, ask{method: method, path: path, query: query, whose: c.target(t), body: body}, &out)
	return out, err
}

// Search searches a user's memories.
func (c Tools) Search(ctx context.Context, t api.Target, q api.Search) (api.Results, error) {
	return answer[api.Results](ctx, c, t, http.MethodPost, "/v1/memories/search", nil, q)
}

// Add saves a fact.
func (c Tools) Add(ctx context.Context, t api.Target, d api.Draft) (api.Added, error) {
	return answer[api.Added](ctx, c, t, http.MethodPost, "/v1/memories", nil, d)
}

// List returns a page of memories.
func (c Tools) List(ctx context.Context, t api.Target, f api.Filter, cursor string, limit int) (api.Memories, error) {
	q := filterQuery(&f)
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	if limit != 0 {
		q.Set("limit", fmt.Sprint(limit))
	}
	return answer[api.Memories](ctx, c, t, http.MethodGet, "/v1/memories", q, nil)
}

func filterQuery(f *api.Filter) url.Values {
	q := url.Values{"kind": f.Kinds, "tag": f.Tags, "state": f.States}
	for name, v := range map[string]string{
		"id": f.ID, "conversation": f.Conversation, "q": f.Query, "since": f.Since, "until": f.Until, "resource_uri": f.ResourceURI,
		"source": f.Source,
	} {
		if v != "" {
			q.Set(name, v)
		}
	}
	for name, v := range map[string]float64{"minPriority": f.MinPriority, "maxPriority": f.MaxPriority} {
		if v != 0 {
			q.Set(name, fmt.Sprint(v))
		}
	}
	if f.Used != nil {
		q.Set("used", fmt.Sprint(*f.Used))
	}
	if f.Oldest {
		q.Set("order", "oldest")
	}
	return q
}

// Get returns one memory.
func (c Tools) Get(ctx context.Context, t api.Target, id string) (api.Memory, error) {
	return answer[api.Memory](ctx, c, t, http.MethodGet, memoryPath(id), nil, nil)
}

// Update changes a memory.
func (c Tools) Update(ctx context.Context, t api.Target, id string, d api.Patch) (api.Memory, error) {
	return answer[api.Memory](ctx, c, t, http.MethodPatch, memoryPath(id), nil, d)
}

// Delete discards memories, which can be undone for a day.
func (c Tools) Delete(ctx context.Context, t api.Target, why string, ids ...string) (api.Removed, error) {
	return answer[api.Removed](ctx, c, t, http.MethodPost, "/v1/memories/delete", nil, map[string]any{"ids": ids, "why": why})
}

// DeleteAll discards the memories that a filter selects.
func (c Tools) DeleteAll(ctx context.Context, t api.Target, f api.Filter, why string) (api.Removed, error) {
	out := api.Removed{Deleted: []string{}}
	if len(f.States) == 0 {
		f.States = []string{api.StateCurrent, api.StateSuperseded, api.StateQuarantined}
	}
	q := filterQuery(&f)
	q.Set("limit", fmt.Sprint(maxPage))
	var ids []string
	err := c.each(ctx, ask{path: "/v1/memories", query: q, whose: c.target(t)}, func(raw json.RawMessage) error {
		var m struct{ ID string }
		err := json.Unmarshal(raw, &m)
		ids = append(ids, m.ID)
		return err
	}, nil)
	if err != nil {
		return out, err
	}
	for some := range slices.Chunk(ids, api.MaxIDs) {
		// What was made of those before went with them.
		some = slices.DeleteFunc(some, func(id string) bool { return slices.Contains(out.Deleted, id) })
		if len(some) == 0 {
			continue
		}
		gone, err := c.Delete(ctx, t, why, some...)
		if err != nil {
			return out, err
		}
		out.Deleted, out.UndoUntil = append(out.Deleted, gone.Deleted...), gone.UndoUntil
	}
	return out, nil
}

// Context returns the aggregate of a user's memory.
func (c Tools) Context(ctx context.Context, t api.Target, q api.ContextRequest) (api.Context, error) {
	return answer[api.Context](ctx, c, t, http.MethodPost, "/v1/context", nil, q)
}

// Users returns a page of users.
func (c Tools) Users(ctx context.Context, t api.Target, after string, limit int) (api.Users, error) {
	q := url.Values{}
	if after != "" {
		q.Set("cursor", after)
	}
	if limit != 0 {
		q.Set("limit", fmt.Sprint(limit))
	}
	return answer[api.Users](ctx, c, t, http.MethodGet, "/v1/users", q, nil)
}
