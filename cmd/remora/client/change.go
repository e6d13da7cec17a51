package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// Add saves a fact.
type Add struct {
	api.Draft // a Text of "-" is read from the input
}

// maxInput bounds a text that is read from the input, in bytes. A memory holds
// less.
const maxInput = 1 << 20

// Run implements [Verb].
func (v *Add) Run(ctx context.Context, s *Session) error {
	if v.Text == "-" {
		text, err := io.ReadAll(io.LimitReader(s.In, maxInput))
		if err != nil {
			return fmt.Errorf("read the text: %w", err)
		}
		v.Text = strings.TrimSpace(string(text))
	}
	var raw json.RawMessage
	if err := s.call(ctx, ask{method: http.MethodPost, path: "/v1/memories", body: v.Draft}, &raw); err != nil {
		return err
	}
	if s.JSON {
		return s.raw(raw)
	}
	var added api.Added
	if err := json.Unmarshal(raw, &added); err != nil {
		return err
	}
	switch added.Event {
	case "known":
		fmt.Fprintln(s.Err, "it was known, and is reinforced")
	case "superseded":
		fmt.Fprintln(s.Err, "added; an older statement gives way")
	default:
		fmt.Fprintln(s.Err, "added")
	}
	_, err := fmt.Fprintln(s.Out, OneLine(added.Memory.ID))
	return err
}

// Edit changes a memory. If nothing is to be changed but why, an editor opens
// on the text.
type Edit struct {
	ID         string
	Text       *string
	Tag, Untag []string
	Priority   *float64
	State, Why string
}

// Run implements [Verb].
func (v *Edit) Run(ctx context.Context, s *Session) error {
	m, _, at, err := s.memory(ctx, v.ID)
	if err != nil {
		return err
	}
	v.ID = m.ID
	if m.State == api.StateDeleted {
		return errors.New("it was deleted: remora undo brings it back")
	}
	patch := api.Patch{Text: v.Text, Priority: v.Priority, Why: v.Why}
	if v.State != "" {
		patch.State = &v.State
	}
	if len(v.Tag)+len(v.Untag) > 0 {
		tags := slices.DeleteFunc(append(m.Tags, v.Tag...), func(tag string) bool { return slices.Contains(v.Untag, tag) })
		slices.Sort(tags)
		tags = slices.Compact(tags)
		patch.Tags = &tags
	}
	if patch.Text == nil && patch.Priority == nil && patch.State == nil && patch.Tags == nil {
		text, err := s.edited(ctx, m.Text)
		if err != nil {
			return err
		}
		if text == strings.TrimSpace(m.Text) {
			fmt.Fprintln(s.Err, "nothing was changed")
			return nil
		}
		patch.Text = &text
	}
	var raw json.RawMessage
	err = s.call(ctx, ask{
		method: http.MethodPatch, path: memoryPath(v.ID), whose: &at, match: fmt.Sprintf(`"v%d"`, m.Version), body: patch,
	}, &raw)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.raw(raw)
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "changed; remora undo %s takes it back\n", OneLine(m.ID))
	_, err = fmt.Fprintf(s.Out, "  %s  %s  %s  %s\n", OneLine(m.ID), day(m.EventTime), kindOf(&m), OneLine(m.Text))
	return err
}

// Undo takes back the last change of a memory.
type Undo struct{ ID, Why string }

// Run implements [Verb].
func (v *Undo) Run(ctx context.Context, s *Session) error {
	var body any
	if v.Why != "" {
		body = map[string]string{"why": v.Why}
	}
	id, err := s.fullID(ctx, v.ID, false)
	if err != nil {
		return err
	}
	v.ID = id
	var answer struct{ Memories []json.RawMessage }
	err = s.everywhere(ctx, func(t api.Target) error {
		return s.call(ctx, ask{method: http.MethodPost, path: memoryPath(v.ID, "undo"), whose: &t, body: body}, &answer)
	})
	if err != nil {
		return named(err, v.ID)
	}
	for _, raw := range answer.Memories {
		if s.JSON {
			if err := s.raw(raw); err != nil {
				return err
			}
			continue
		}
		var m api.Memory
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		fmt.Fprintf(s.Out, "  %s  %s  %s  %s\n", OneLine(m.ID), day(m.EventTime), kindOf(&m), OneLine(m.Text))
	}
	fmt.Fprintf(s.Err, "taken back: %d memories are as they were\n", len(answer.Memories))
	return nil
}
