package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// Show shows one memory, how it came to be, and what its placeholders stand
// for.
type Show struct {
	ID        string
	History   bool
	Originals bool
}

// Run implements [Verb].
func (v *Show) Run(ctx context.Context, s *Session) error {
	m, raw, at, err := s.memory(ctx, v.ID)
	if err != nil {
		return err
	}
	v.ID = m.ID
	read := func(below string, to any) error {
		raw = nil
		if err := s.call(ctx, ask{method: http.MethodGet, path: memoryPath(v.ID, below), whose: &at}, &raw); err != nil {
			return err
		}
		if s.JSON {
			return s.raw(raw)
		}
		return json.Unmarshal(raw, to)
	}
	w := bufio.NewWriter(s.Out)
	switch {
	case !s.JSON:
		showMemory(w, &m)
	case !v.History && !v.Originals:
		return s.raw(raw)
	}
	if v.History {
		var h api.History
		if err := read("history", &h); err != nil {
			return err
		}
		showHistory(w, &h)
	}
	if v.Originals {
		var o struct{ Originals []api.Original }
		if err := read("originals", &o); err != nil {
			return err
		}
		if !s.JSON && len(o.Originals) == 0 {
			fmt.Fprintln(w, "originals: none are kept")
		}
		for _, o := range o.Originals {
			field(w, o.Placeholder, fmt.Sprintf("%s (%s)", o.Original, o.Type))
		}
	}
	return w.Flush()
}

// field writes a line with a name and a value, if there is one.
func field(w io.Writer, name, value string) {
	if value = OneLine(value); value != "" {
		fmt.Fprintf(w, "%-13s %s\n", OneLine(name), value)
	}
}

func showMemory(w io.Writer, m *api.Memory) {
	field(w, "id", m.ID)
	field(w, "of", scopeOf(targetOf(m)))
	field(w, "what", kindOf(m))
	if strings.Contains(m.Text, "\n") {
		fmt.Fprintln(w, "text")
		block(w, "  ", m.Text)
	} else {
		field(w, "text", m.Text)
	}
	field(w, "tags", strings.Join(m.Tags, ", "))
	field(w, "entities", strings.Join(m.Entities, ", "))
	field(w, "said", minute(m.EventTime))
	field(w, "conversation", m.Conversation)
	field(w, "turn", m.Turn)
	field(w, "by", strings.TrimSpace(m.Speaker+" "+m.Model))
	field(w, "source", m.Source)
	field(w, "document", m.ResourceURI)
	field(w, "weights", fmt.Sprintf("priority %.2f, confidence %.2f, trust %.2f", m.Priority, m.Confidence, m.Trust))
	field(w, "superseded by", m.SupersededBy)
	field(w, "valid", until(minute(m.ValidFrom), minute(m.ValidTo)))
	field(w, "expires", minute(m.ExpiresAt))
	field(w, "deleted", minute(m.DeletedAt))
	field(w, "saved", minute(m.CreatedAt))
	if m.UpdatedAt != m.CreatedAt {
		field(w, "changed", minute(m.UpdatedAt))
	}
	field(w, "version", fmt.Sprint(m.Version))
	if m.Redacted > 0 {
		field(w, "originals", fmt.Sprintf("%d are kept; --originals shows them", m.Redacted))
	}
	switch u := m.Uses; {
	case u == nil:
	case u.Count == 0:
		field(w, "used", "never")
	default:
		field(w, "used", fmt.Sprintf("%d times, last %s", u.Count, minute(u.Last)))
	}
}

func until(from, to string) string {
	if to == "" {
		return ""
	}
	return from + " until " + to
}

// showHistory writes the changes, the newest first, and what came before and
// after.
func showHistory(w io.Writer, h *api.History) {
	if h.Memory.ID == "" { // written as JSON
		return
	}
	fmt.Fprintln(w, "changes:")
	for i := range h.Changes {
		c := &h.Changes[i]
		line := minute(c.At) + "  " + c.Op
		if c.By != "" {
			line += " by " + c.By
		}
		if c.Why != "" {
			line += ": " + c.Why
		}
		fmt.Fprintf(w, "  %s\n", OneLine(line))
		if c.Before != nil {
			fmt.Fprintf(w, "      it was: %s\n", OneLine(describe(c.Before)))
		}
	}
	if len(h.Chain) == 0 {
		return
	}
	fmt.Fprintln(w, "other statements on it:")
	for i := range h.Chain {
		m := &h.Chain[i]
		fmt.Fprintf(w, "  %s\n", OneLine(fmt.Sprintf("%s  %s  %s  %s", m.ID, day(m.EventTime), kindOf(m), m.Text)))
	}
}

func describe(m *api.Memory) string {
	out := fmt.Sprintf("%s, priority %.2f", kindOf(m), m.Priority)
	if len(m.Tags) > 0 {
		out += ", tags " + strings.Join(m.Tags, ", ")
	}
	return out + ": " + m.Text
}
