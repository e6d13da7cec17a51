package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// Ids of memories may be given by their beginning, as [List] shows them. The
// control plane knows whole ids; the rest is found by listing.

// Lengths of what precedes the dot of an id: at least so many characters are a
// beginning, and so many a whole id.
const (
	minShort = 4
	wholeID  = 32
)

// Shortened reports whether an id may be the beginning of one.
func Shortened(id string) bool {
	head, _, _ := strings.Cut(id, ".")
	return len(head) >= minShort && len(head) < wholeID
}

// maxMeant bounds the memories of one beginning that are looked at.
const maxMeant = 100

// fullID returns the id that begins as given. Where it is none, or a whole one,
// it is returned as it is. turn allows that it means all that was said in one
// turn, whose id is returned then.
func (c *Client) fullID(ctx context.Context, given string, turn bool) (string, error) {
	if !Shortened(given) {
		return given, nil
	}
	query := limited(maxPage)
	query.Set("id", given)
	query["state"] = api.States()
	var ids, turns []string
	_, err := c.eachScope(ctx, func(t api.Target, _ json.RawMessage) error {
		return c.each(ctx, ask{path: "/v1/memories", query: query, whose: &t}, func(raw json.RawMessage) error {
			var m api.Memory
			if err := json.Unmarshal(raw, &m); err != nil {
				return err
			}
			ids = append(ids, m.ID)
			head, _, dotted := strings.Cut(m.ID, ".")
			if !dotted {
				head = "" // no turn
			}
			if turns = append(turns, head); len(ids) == maxMeant {
				return errEnough
			}
			return nil
		}, nil)
	})
	if err != nil {
		return "", err
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	slices.Sort(turns)
	turns = slices.Compact(turns)
	switch {
	case len(ids) == 0 || slices.Contains(ids, given):
		return given, nil // the control plane says so if nobody has it
	case turn && len(turns) == 1 && turns[0] != "" && !strings.Contains(given, "."):
		return turns[0], nil
	case len(ids) > 1:
		return "", fmt.Errorf("%s is the beginning of several ids: %s", OneLine(given), OneLine(strings.Join(ids[:min(len(ids), maxNamed)], ", ")))
	}
	return ids[0], nil
}

// maxNamed is how many ids an error names.
const maxNamed = 5

// FullIDs completes ids that are given by their beginning, and hands them to
// use. One may mean all that was said in a turn.
func FullIDs(ids []string, use func([]string)) Verb {
	return VerbFunc(func(ctx context.Context, s *Session) error {
		full, err := s.fullIDs(ctx, ids)
		if err == nil {
			use(full)
		}
		return err
	})
}

func (c *Client) fullIDs(ctx context.Context, ids []string) ([]string, error) {
	out := make([]string, len(ids))
	for i, id := range ids {
		var err error
		if out[i], err = c.fullID(ctx, id, true); err != nil {
			return nil, err
		}
	}
	return out, nil
}
