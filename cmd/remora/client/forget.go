package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// Forget deletes memories, which can be undone for a day. An id without a dot
// may name all that was said in a turn.
type Forget struct {
	IDs []string
	Why string
}

// Run implements [Verb].
func (v *Forget) Run(ctx context.Context, s *Session) error {
	found := map[api.Target][]string{}
	var missing []string
	ids, err := s.fullIDs(ctx, v.IDs)
	if err != nil {
		return err
	}
	for _, id := range ids {
		m, _, at, err := s.memory(ctx, id)
		switch {
		case err == nil && m.State != api.StateDeleted:
			found[at] = append(found[at], id)
		case err == nil, errors.Is(err, api.ErrNotFound):
			missing = append(missing, id)
		default:
			return err
		}
	}
	missing, err = s.passages(ctx, missing, found)
	if err != nil {
		return err
	}
	deleted, limit := 0, ""
	for _, at := range slices.SortedFunc(maps.Keys(found), func(a, b api.Target) int { return cmp.Compare(scopeOf(a), scopeOf(b)) }) {
		for ids := range slices.Chunk(found[at], api.MaxIDs) {
			var raw json.RawMessage
			err := s.call(ctx, ask{
				method: http.MethodPost, path: "/v1/memories/delete", whose: &at, body: map[string]any{"ids": ids, "why": v.Why},
			}, &raw)
			if err != nil {
				return err
			}
			var gone api.Removed
			if err := json.Unmarshal(raw, &gone); err != nil {
				return err
			}
			if s.JSON {
				if err := s.raw(raw); err != nil {
					return err
				}
			}
			deleted, limit = deleted+len(gone.Deleted), gone.UndoUntil
		}
	}
	fmt.Fprintf(s.Err, "forgot %d memories\n", deleted)
	if deleted > 0 {
		fmt.Fprintf(s.Err, "remora undo ID brings them back until %s; then they are erased\n", minute(limit))
	}
	if len(missing) > 0 {
		return &notFoundError{strings.Join(missing, ", ")}
	}
	return nil
}

// passages finds what was said in turns, and returns those of which nothing is
// left.
func (c *Client) passages(ctx context.Context, turns []string, found map[api.Target][]string) (missing []string, err error) {
	if !slices.ContainsFunc(turns, func(t string) bool { return !strings.Contains(t, ".") }) {
		return turns, nil
	}
	seen := map[string]bool{}
	query := limited(maxPage)
	query["kind"] = []string{"episode"}
	query["state"] = []string{api.StateCurrent, api.StateSuperseded, api.StateQuarantined}
	_, err = c.eachScope(ctx, func(t api.Target, _ json.RawMessage) error {
		return c.each(ctx, ask{path: "/v1/memories", query: query, whose: &t}, func(raw json.RawMessage) error {
			var m api.Memory
			if err := json.Unmarshal(raw, &m); err != nil {
				return err
			}
			if m.Turn != "" && slices.Contains(turns, m.Turn) {
				seen[m.Turn] = true
				found[t] = append(found[t], m.ID)
			}
			return nil
		}, nil)
	})
	return slices.DeleteFunc(turns, func(t string) bool { return seen[t] }), err
}

// ForgetConversation erases all that was said in a conversation, for ever.
type ForgetConversation struct{ ID string }

// Run implements [Verb].
func (v *ForgetConversation) Run(ctx context.Context, s *Session) error {
	return named(s.erase(ctx, "/v1/conversations/"+url.PathEscape(v.ID)), v.ID)
}

// Erase erases a user, for ever.
type Erase struct{ User string }

// Run implements [Verb].
func (v *Erase) Run(ctx context.Context, s *Session) error {
	if s.whose.User != "" && s.whose.User != v.User {
		return UsageError("--user names another user than the one to erase")
	}
	return named(s.erase(ctx, "/v1/users/"+url.PathEscape(v.User)), v.User)
}

// erase asks for an erasure and shows the receipt.
func (s *Session) erase(ctx context.Context, path string) error {
	var raw json.RawMessage
	if err := s.call(ctx, ask{method: http.MethodDelete, path: path}, &raw); err != nil {
		return err
	}
	if s.JSON {
		return s.raw(raw)
	}
	var r api.Receipt
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	field(s.Out, "receipt", r.ID)
	field(s.Out, "of", fmt.Sprintf("tenant %s, user %s", r.Tenant, r.User))
	field(s.Out, "erased", fmt.Sprintf("%d memories, %d turns that were not stored yet, in %d apps and projects", r.Memories, r.Turns, r.Scopes))
	var records []string
	for _, name := range slices.Sorted(maps.Keys(r.Records)) {
		records = append(records, fmt.Sprintf("%s %d", name, r.Records[name]))
	}
	field(s.Out, "records", strings.Join(records, ", "))
	field(s.Out, "at", r.At)
	field(s.Out, "by", r.By)
	field(s.Out, "note", r.Note)
	return nil
}
