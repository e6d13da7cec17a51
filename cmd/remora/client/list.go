package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/remora-proxy/remora/api"
)

// List shows what is remembered, or of whom.
type List struct {
	Users bool // of whom, and how much

	Kinds, Tags, States []string
	Query               string // words
	Since, Until        string // times, or how long ago
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
		return l.memories(ctx, s, w, t, raw, query)
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
	since, err := timeOrAge("since", l.Since, time.Now())
	if err != nil {
		return nil, err
	}
	until, err := timeOrAge("until", l.Until, time.Now())
	if err != nil {
		return nil, err
	}
	for name, v := range map[string]string{"q": l.Query, "since": since, "until": until, "conversation": l.Conversation, "source": l.Source} {
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

// timeOrAge returns the time that is so long ago: a number of weeks, days,
// hours or minutes. Anything else is the control plane's to read.
func timeOrAge(flag, given string, now time.Time) (string, error) {
	age, err := time.ParseDuration(given)
	if unit := given[max(len(given)-1, 0):]; unit == "d" || unit == "w" {
		n, err := strconv.Atoi(given[:len(given)-1])
		if err != nil || n < 0 || n > maxAgeDays {
			return "", UsageError(fmt.Sprintf("--%s: %q is no number of days or weeks", flag, given))
		}
		if age = time.Duration(n) * 24 * time.Hour; unit == "w" {
			age *= 7
		}
	} else if err != nil {
		return given, nil // a time, or wrong
	}
	if age < 0 {
		return "", UsageError(fmt.Sprintf("--%s: %q is in the future", flag, given))
	}
	return now.Add(-age).UTC().Format(time.RFC3339), nil
}

// maxAgeDays keeps weeks within a time.Duration.
const maxAgeDays = 10_000

// memories shows a user's memories. raw is the user.
func (l *List) memories(ctx context.Context, s *Session, w *bufio.Writer, t api.Target, raw json.RawMessage, query url.Values) error {
	out := memoryRows{s: s, w: w, t: t, rows: s.table(w, "id", "time (UTC)", "kind", "text")}
	damaged := 0
	var newest []json.RawMessage
	take := out.show
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
		out.rows.flush()
		return w.Flush() // a pager may have quit
	})
	if err != nil {
		return err
	}
	for _, raw := range slices.Backward(newest) {
		if err := out.show(raw); err != nil {
			return err
		}
	}
	out.end()
	if damaged > 0 {
		fmt.Fprintf(s.Err, "not shown: %d damaged memories of %s\n", damaged, scopeOf(t))
	}
	if err := out.owed(raw); err != nil {
		return err
	}
	return w.Flush()
}

// memoryRows writes the memories of a user as rows. A fact follows the words
// that it was made of.
type memoryRows struct {
	s      *Session
	w      *bufio.Writer
	t      api.Target
	rows   *table
	headed bool
	same   []api.Memory // of one turn and time
}

func (r *memoryRows) show(raw json.RawMessage) error {
	if r.s.JSON {
		return writeRaw(r.w, raw)
	}
	var m api.Memory
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	if len(r.same) > 0 && (m.Turn != r.same[0].Turn || m.EventTime != r.same[0].EventTime) {
		r.end()
	}
	r.same = append(r.same, m)
	return nil
}

// end adds what has been held back, and writes it.
func (r *memoryRows) end() {
	if len(r.same) > 0 && !r.headed {
		r.headed = true
		fmt.Fprintf(r.w, "%s\n", scopeOf(r.t))
	}
	slices.SortStableFunc(r.same, func(a, b api.Memory) int { return cmp.Compare(madeOfWords(&a), madeOfWords(&b)) })
	for i := range r.same {
		m := &r.same[i]
		r.rows.addRow(row{
			cells: []string{api.ShortID(m.ID), clockTime(m.EventTime), kindOf(m), m.Text}, tail: originOf(m, r.same),
		})
	}
	r.same = r.same[:0]
	r.rows.flush()
}

// owed says how many turns of the user no audit has read.
func (r *memoryRows) owed(user json.RawMessage) error {
	var u api.User
	if err := json.Unmarshal(user, &u); err != nil {
		return err
	}
	if u.Unaudited > 0 && !r.s.JSON {
		fmt.Fprintf(r.s.Err, "turns not audited yet, whose facts are still to come: %d of %s\n", u.Unaudited, scopeOf(r.t))
	}
	return nil
}

// madeOfWords is 0 for what was said, and 1 for what was made of it.
func madeOfWords(m *api.Memory) int {
	if m.Kind == "episode" {
		return 0
	}
	return 1
}

// originOf returns what a fact was made of: the id of what was said, if it is
// among those of its turn, or else of the turn.
func originOf(m *api.Memory, same []api.Memory) string {
	if madeOfWords(m) == 0 || m.Turn == "" {
		return ""
	}
	id := m.Turn
	for i := range same {
		if said := &same[i]; said.Kind == "episode" && said.Role == m.Role {
			id = said.ID
			break
		}
	}
	return "(from " + api.ShortID(id) + ")"
}

func writeRaw(w *bufio.Writer, raw json.RawMessage) error {
	_, _ = w.Write(raw)
	return w.WriteByte('\n')
}
