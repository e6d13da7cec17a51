package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"github.com/remora-proxy/remora/api"
)

// List shows what is remembered, or of whom.
type List struct {
	Users bool // of whom, and how much

	Kinds, Tags, States []string
	Query, Since, Until string
	Conversation        string
	Source              string // exactly
	Quarantined         bool   // those in quarantine alone
	Used, NeverUsed     bool   // inserted into a request, or never
	Limit               int    // the newest of each user; 0 = all
}

// maxListed bounds Limit: that many memories are held.
const maxListed = 10_000

// Filters reports whether memories are selected.
func (l *List) Filters() bool {
	return l.Quarantined || l.Conversation != "" || l.Source != "" || len(l.Kinds)+len(l.Tags)+len(l.States) > 0 || l.Query != "" ||
		l.Since != "" || l.Until != "" || l.Used || l.NeverUsed || l.Limit != 0
}

// Run implements [Verb].
func (l *List) Run(ctx context.Context, s *Session) error {
	query, err := l.filter()
	if err != nil {
		return err
	}
	w := bufio.NewWriter(s.Out)
	unreadable, err := s.eachScope(ctx, func(t api.Target, raw json.RawMessage) error {
		if l.Users {
			return l.user(s, w, t, raw)
		}
		return l.memories(ctx, s, w, t, query)
	})
	if err != nil {
		return err
	}
	if unreadable > 0 {
		fmt.Fprintf(s.Err, "not shown: %d users whose key is missing or damaged; whose they are is not known\n", unreadable)
	}
	return w.Flush()
}

func (l *List) filter() (url.Values, error) {
	q := url.Values{"limit": {fmt.Sprint(maxPage)}, "order": {"oldest"}, "kind": l.Kinds, "tag": l.Tags, "state": l.States}
	for name, v := range map[string]string{"q": l.Query, "since": l.Since, "until": l.Until, "conversation": l.Conversation, "source": l.Source} {
		if v != "" {
			q.Set(name, v)
		}
	}
	switch {
	case l.Used && l.NeverUsed:
		return nil, UsageError("one of --used and --never-used")
	case l.Used || l.NeverUsed:
		q.Set("used", fmt.Sprint(l.Used))
	}
	switch {
	case l.Quarantined && len(l.States) > 0:
		return nil, UsageError("one of --quarantined and --state")
	case l.Quarantined:
		q["state"] = []string{api.StateQuarantined}
	case len(l.States) == 0:
		q["state"] = []string{api.StateCurrent, api.StateSuperseded, api.StateQuarantined}
	}
	switch {
	case l.Limit < 0 || l.Limit > maxListed:
		return nil, UsageError(fmt.Sprintf("--limit is 1 to %d", maxListed))
	case l.Limit > 0:
		q.Set("order", "newest")
		q.Set("limit", fmt.Sprint(min(l.Limit, maxPage)))
	}
	return q, nil
}

// user shows a user. Expired memories that have not been removed yet count.
func (l *List) user(s *Session, w *bufio.Writer, t api.Target, raw json.RawMessage) error {
	if s.JSON {
		return writeRaw(w, raw)
	}
	var u api.User
	if err := json.Unmarshal(raw, &u); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %d memories\n", scopeOf(t), u.Memories)
	return w.Flush()
}

func (l *List) memories(ctx context.Context, s *Session, w *bufio.Writer, t api.Target, query url.Values) error {
	rows := s.table(w, "id", "day", "kind", "text")
	headed, damaged := false, 0
	show := func(raw json.RawMessage) error {
		if s.JSON {
			return writeRaw(w, raw)
		}
		var m api.Memory
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		if !headed {
			headed = true
			fmt.Fprintf(w, "%s\n", scopeOf(t))
		}
		rows.add(m.ID, day(m.EventTime), kindOf(&m), m.Text)
		return nil
	}
	var newest []json.RawMessage
	take := show
	if l.Limit > 0 {
		take = func(raw json.RawMessage) error {
			if newest = append(newest, raw); len(newest) == l.Limit {
				return errEnough
			}
			return nil
		}
	}
	err := s.each(ctx, ask{path: "/v1/memories", query: query, whose: &t}, take, func(p *listing) error {
		damaged += p.Damaged
		rows.flush()
		return w.Flush() // a pager may have quit
	})
	if err != nil {
		return err
	}
	for _, raw := range slices.Backward(newest) {
		if err := show(raw); err != nil {
			return err
		}
	}
	rows.flush()
	if damaged > 0 {
		fmt.Fprintf(s.Err, "not shown: %d damaged memories of %s\n", damaged, scopeOf(t))
	}
	return w.Flush()
}

func writeRaw(w *bufio.Writer, raw json.RawMessage) error {
	_, _ = w.Write(raw)
	return w.WriteByte('\n')
}
