package facts

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// maxSaid bounds the marks of repetitions on a fact. Beyond it, the oldest go,
// and a replay of what they stood for would count once more.
const maxSaid = 8

// Confidence in a statement that was said once, and what each repetition adds
// to confidence and priority: a share of what is missing to 1.
const (
	firstConfidence = 0.6
	confidenceGain  = 0.25
	priorityGain    = 0.1
)

// Outcome of a merge.
type Outcome int

const (
	Added       Outcome = iota
	Known               // audited before: nothing changed
	Reinforced          // said again
	Superseded          // added, and an older statement gave way
	Stale               // added as history: what is known was said later
	Quarantined         // added, and kept from recall
	Forgotten           // not added: said before it was forgotten
)

// Changes collects what an audit changes in a Set: at most one version of each
// fact.
type Changes struct {
	set     *Set
	store   Reader
	cfg     Config
	changed map[string]*storage.Memory
	order   []string // ids of changed, in the order of their first change
	deleted []string
	turns   map[string]bool // whose facts were superseded, or hold again
}

// NewChanges returns empty Changes to s. Facts are read from store before they
// are changed.
func NewChanges(s *Set, store Reader, cfg Config) *Changes {
	return &Changes{set: s, store: store, cfg: cfg, changed: map[string]*storage.Memory{}, turns: map[string]bool{}}
}

// Written returns the facts to write, in the order in which they were first
// changed.
func (c *Changes) Written() []storage.Memory {
	out := make([]storage.Memory, len(c.order))
	for i, id := range c.order {
		out[i] = *c.changed[id]
	}
	return out
}

// Deleted returns the ids of facts to delete.
func (c *Changes) Deleted() []string { return c.deleted }

// Retags reports whether [Changes.Passages] has anything to look at.
func (c *Changes) Retags() bool { return len(c.turns) > 0 }

// Passages returns the passages whose outdated tag is to change. Write them
// before the facts: a crash in between leaves facts that the next audit finds
// unchanged, and it would not look at their passages again.
func (c *Changes) Passages(ctx context.Context) (changed []storage.Memory, err error) {
	for turn := range c.turns {
		if changed, err = retag(ctx, c.store, c.set.scope, turn, c.set.outdated, changed); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

func (c *Changes) put(m storage.Memory) *fact {
	if c.changed[m.ID] == nil {
		c.order = append(c.order, m.ID)
	}
	m.UpdatedAt = 0 // the store's to set
	c.changed[m.ID] = &m
	c.deleted = slices.DeleteFunc(c.deleted, func(id string) bool { return id == m.ID })
	f := parse(&m)
	if old := c.set.byID[m.ID]; old != nil {
		f.order = old.order
	}
	c.set.add(f)
	return f
}

// drop deletes a fact, whether it is stored yet or not.
func (c *Changes) drop(f *fact) {
	c.set.remove(f)
	c.deleted = append(c.deleted, f.id)
	if c.changed[f.id] != nil {
		delete(c.changed, f.id)
		c.order = slices.DeleteFunc(c.order, func(id string) bool { return id == f.id })
	}
}

// current reads a fact as it is now. It returns nil if somebody else has
// deleted or changed it, and updates the Set.
func (c *Changes) current(ctx context.Context, f *fact) (*storage.Memory, error) {
	if m := c.changed[f.id]; m != nil {
		copied := *m
		return &copied, nil
	}
	m, err := c.store.Memory(ctx, c.set.scope, f.id)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged):
		c.set.remove(f)
		return nil, nil
	case err != nil:
		return nil, err
	}
	if now := parse(&m); now.Words != f.Words || now.superseded != f.superseded || now.trust != f.trust || m.DeletedAt != 0 {
		if c.set.remove(f); m.DeletedAt == 0 {
			c.set.add(now)
		}
		return nil, nil
	}
	return &m, nil
}

// Merge takes one candidate in.
func (c *Changes) Merge(ctx context.Context, from *extract.Candidate, o Origin) (Outcome, error) {
	m := c.cfg.newFact(c.set.scope, from, o)
	if _, private := c.set.private[o.Turn]; private {
		m.Tags = append(m.Tags, storage.PrivateTag)
	}
	out, _, err := c.merge(ctx, m, from, false)
	return out, err
}

// MergeGiven takes in a fact that somebody gives by hand, under a turn that
// nothing else has. m has its text, and what else is known of it; the rest is
// filled in. It returns the id under which the store has it after the changes:
// of m, or of the fact that says the same; "" if it is Forgotten. Without an
// EventTime it is said now, and so after whatever was forgotten.
func (c *Changes) MergeGiven(ctx context.Context, m storage.Memory, turn string) (id string, out Outcome, err error) {
	if m.ID == "" {
		m.ID = ID(c.set.scope, turn, m.Text)
	}
	now, again := storage.Now(), m.EventTime == 0
	m.EventTime = cmp.Or(m.EventTime, now)
	m.ValidFrom = cmp.Or(m.ValidFrom, m.EventTime)
	m.Priority, m.Confidence = cmp.Or(m.Priority, c.cfg.KeepLonger), cmp.Or(m.Confidence, firstConfidence)
	switch {
	case Pinned(&m):
		m.ExpiresAt = 0
	case m.ExpiresAt == 0:
		m.ExpiresAt = now + storage.Time(c.cfg.LongRetention.Milliseconds())
	}
	m.Provenance.Role = cmp.Or(m.Provenance.Role, storage.RoleUser)
	from := &extract.Candidate{Quote: m.Text, Time: m.EventTime.Std(), Order: 1, Suspicious: m.Trust == 0, Score: extract.Score{Total: m.Priority}}
	out, id, err = c.merge(ctx, m, from, again)
	return id, out, err
}

// merge takes in a new fact and returns the id of what says the same now. With
// again, it is said after whatever was forgotten.
func (c *Changes) merge(ctx context.Context, m storage.Memory, from *extract.Candidate, again bool) (Outcome, string, error) {
	f := parse(&m)
	f.order = c.set.statements + from.Order
	if known := c.set.byID[m.ID]; known != nil {
		if kept, err := c.current(ctx, known); err != nil || kept != nil {
			return Known, m.ID, err
		}
	}
	if !again && c.set.buried(f) {
		return Forgotten, "", nil
	}
	put := func() {
		kept := c.put(m)
		kept.order, kept.correction = f.order, f.correction
	}
	if from.Suspicious {
		if m.Trust = extract.Quarantined; !slices.Contains(m.Tags, TagQuarantined) {
			m.Tags = append(m.Tags, TagQuarantined)
		}
		put()
		return Quarantined, m.ID, nil
	}
	if same, err := c.duplicate(ctx, f); err != nil {
		return Known, "", err
	} else if same != nil {
		return c.reinforce(same, from, m.ID, f.order), same.ID, nil
	}
	conflicting := c.conflicting(f)
	f.correction = from.Correction
	if old := c.corrected(f); old != nil {
		f.correction, old.correction = extract.Correction{}, extract.Correction{}
		if !slices.Contains(conflicting, old) {
			conflicting = append(conflicting, old)
		}
	}
	outdated, err := c.outdatedBy(ctx, f, &m, from.Quote, conflicting)
	if err != nil {
		return Known, "", err
	}
	conflicting = append(conflicting, outdated...)
	out := Added
	for _, old := range conflicting {
		stored, err := c.current(ctx, old)
		if err != nil {
			return out, "", err
		}
		if stored == nil {
			continue
		}
		now := storage.Now()
		if ahead := old.said > now && f.from <= now; !ahead && old.after(f) { // audited late: an imported chat, or after a newer one
			if m.ValidTo = old.from; old.from <= f.from { // the older was said before it and again after
				m.ValidTo = old.said
			}
			m.SupersededBy = old.id
			put()
			c.turns[m.Provenance.Turn] = true
			return Stale, m.ID, nil
		}
		stored.ValidTo, stored.SupersededBy = max(m.EventTime, stored.ValidFrom), m.ID // ValidFrom is later if a clock was ahead
		tag := tagSupersedes
		if old.Subject != f.Subject || f.Subject == "" {
			tag = tagContradicts
		}
		m.Tags = append(m.Tags, tag+old.id)
		c.put(*stored)
		c.turns[old.turn] = true
		out = Superseded
	}
	put()
	return out, m.ID, nil
}

// Merged notes that an audit's candidates were all merged, so that the
// statements of the next come after them.
func (c *Changes) Merged(candidates int) { c.set.statements += int64(candidates) }

func (c Config) newFact(scope storage.Scope, from *extract.Candidate, o Origin) storage.Memory {
	at := storage.TimeOf(from.Time)
	keep, kept := c.Retention, at
	if from.Score.Total >= c.KeepLonger || from.Requested {
		keep = c.LongRetention
	}
	if strings.HasPrefix(o.Source, SourceImport) {
		kept = max(at, storage.Now())
	}
	m := storage.Memory{
		ID: ID(scope, o.Turn, from.Quote), Scope: scope, Conversation: o.Conversation, Kind: storage.KindFact,
		Text: from.Text(), Tags: []string{from.Kind()}, Priority: from.Score.Total, Confidence: firstConfidence, Trust: extract.TrustUser,
		Source: o.Source, Entities: from.Entities(),
		Provenance: storage.Provenance{Turn: o.Turn, Chain: o.Chain, Role: storage.RoleUser, Speaker: o.Speaker, Model: o.Model},
		EventTime:  at, ValidFrom: at, ExpiresAt: kept + storage.Time(keep.Milliseconds()),
	}
	if from.Statement != "" {
		m.Tags = append(m.Tags, TagDistilled)
	}
	if from.Requested {
		m.Tags, m.Priority = append(m.Tags, TagRemembered), max(m.Priority, c.KeepLonger)
	}
	return m
}

// duplicate returns a current fact that says the same and means the same days.
func (c *Changes) duplicate(ctx context.Context, f *fact) (*storage.Memory, error) {
	if old := c.set.byWords[f.Words]; old != nil && old.dates == f.dates {
		if m, err := c.current(ctx, old); m != nil || err != nil {
			return m, err
		}
	}
	var best *fact // by id, so that every process finds the same one
	c.set.similar(f, func(old *fact) {
		if (best == nil || old.id < best.id) && old.dates == f.dates && old.Near(&f.Statement) {
			best = old
		}
	})
	if best == nil {
		return nil, nil
	}
	return c.current(ctx, best)
}

// statementMark is enough of a statement's id to recognise it.
func statementMark(id string) string { return id[:min(len(id), 17)] }

// reinforce raises the priority of a fact that was said again, once for each
// statement that says it. It counts as said when the statement was made,
// whenever that is audited.
func (c *Changes) reinforce(m *storage.Memory, from *extract.Candidate, statement string, order int64) Outcome {
	mark := tagSaid + statementMark(statement)
	if slices.Contains(m.Tags, mark) {
		return Known
	}
	at := storage.TimeOf(from.Time)
	last := max(LastSaid(m), at)
	setLastSaid(m, last)
	m.Tags = append(m.Tags, mark)
	trimSaid(m)
	m.Priority = max(m.Priority, from.Score.Total)
	m.Priority += (1 - m.Priority) * priorityGain
	m.Confidence += (1 - m.Confidence) * confidenceGain
	keep := c.cfg.Retention
	if m.Priority >= c.cfg.KeepLonger {
		keep = c.cfg.LongRetention
	}
	if !Pinned(m) {
		m.ExpiresAt = max(m.ExpiresAt, at+storage.Time(keep.Milliseconds()))
	}
	if f := c.put(*m); at == last {
		f.order = max(f.order, order)
	}
	return Reinforced
}

func countFunc(list []string, is func(string) bool) (n int) {
	for _, s := range list {
		if is(s) {
			n++
		}
	}
	return n
}

// conflicting returns the current facts that can't hold if f does: another
// value of its subject, or its opposite.
func (c *Changes) conflicting(f *fact) (out []*fact) {
	add := func(old *fact) {
		if old.id != f.id && !slices.Contains(out, old) {
			out = append(out, old)
		}
	}
	if f.Subject != "" {
		for _, old := range c.set.bySubject[f.Subject] {
			if old.Value != f.Value || old.dates != f.dates {
				add(old)
			}
		}
	}
	if old := c.set.byWords[f.Words]; old != nil && old.dates != f.dates { // "on Friday", of another week
		add(old)
	}
	c.set.similar(f, func(old *fact) {
		if f.Opposes(&old.Statement) {
			add(old)
		}
	})
	if len(f.Denied) > 0 {
		denied := fact{id: f.id, Statement: extract.Statement{Content: f.Denied}}
		c.set.similar(&denied, func(old *fact) {
			if !old.Negative && slices.Equal(old.Content, f.Denied) {
				add(old)
			}
		})
	}
	return out
}

// corrected returns the fact that the correction f takes back: the one of its
// conversation that shares most content words with it, at least half of the
// shorter's, and of two alike the one said last. Candidates are merged by
// score, so the correction may have been merged before what it corrects; then
// it is the correction that is returned.
func (c *Changes) corrected(f *fact) *fact {
	if c.set.conversations[f.conversation] == 0 { // mostly, and the words may be those of thousands
		return nil
	}
	var best *fact
	mostShared := 0
	for _, w := range f.Content {
		for _, old := range c.set.byContent[w] {
			if old.id == f.id || old.conversation != f.conversation {
				continue
			}
			if old.after(f) {
				if !old.correction.Corrects || !old.correction.TakesBack(&old.Statement, &f.Statement) {
					continue
				}
			} else if !f.correction.Corrects || !f.correction.TakesBack(&f.Statement, &old.Statement) {
				continue
			}
			shared, shorter := f.Shared(&old.Statement), min(len(f.Content), len(old.Content))
			if shared*2 < shorter || shared < shorter && f.FirstPerson() != old.FirstPerson() || // "No, my son ..." takes back nothing of "I ..."
				shared < mostShared || shared == mostShared && best != nil && !old.after(best) {
				continue
			}
			best, mostShared = old, shared
		}
	}
	return best
}

// Revoke deletes the facts of a turn that was replaced, except those whose
// words its new text still holds and those that are proposed again, and returns
// how many it deleted. What they had superseded is superseded by their
// successor, or holds again.
func (c *Changes) Revoke(ctx context.Context, turn, text string, proposed map[string]bool) (n int, err error) {
	text = extract.Normalize(text)
	c.turns[turn] = true // its passages are new
	for _, f := range slices.Clone(c.set.byTurn[turn]) {
		if f = c.set.byID[f.id]; f == nil || proposed[f.id] || extract.HoldsWords(text, f.Words) {
			continue
		}
		if err := c.revoke(ctx, f); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Withdraw deletes the facts that were said once, in words of text, which is
// normalized and turned out to be a template, if is holds for them. What people
// gave on purpose stays: what they gave or changed by hand, asked to remember,
// pinned or imported, preferences and standing orders. So do facts of fewer
// than minWithdrawn words, which people may have said as well.
func (c *Changes) Withdraw(ctx context.Context, text string, is func(words string) bool) (n int, err error) {
	for _, f := range slices.Collect(maps.Values(c.set.byID)) {
		if f.deliberate || f.said > f.from || strings.Count(f.Words, " ")+1 < minWithdrawn || !extract.HoldsWords(text, f.Words) || !is(f.Words) {
			continue
		}
		if ID(c.set.scope, f.turn, f.Words) != f.id { // given or changed by hand
			continue
		}
		if c.set.byID[f.id] == nil {
			continue
		}
		if err := c.revoke(ctx, f); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

const minWithdrawn = 5

// revoke deletes a fact; what it superseded holds again.
func (c *Changes) revoke(ctx context.Context, f *fact) error {
	for _, old := range c.set.supersededBy(f.id) {
		m, err := c.current(ctx, old)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		m.ValidTo, m.SupersededBy = 0, f.superseded
		if f.superseded != "" {
			m.ValidTo = f.from
			if next := c.set.byID[f.superseded]; next != nil {
				m.ValidTo = next.from
			}
		}
		c.put(*m)
		c.turns[old.turn] = true
	}
	c.drop(f)
	return nil
}

// Evict deletes the facts of the lowest value beyond Config.Max, and a
// hundredth more, so that it is not done for every single one. Pinned ones
// count, and stay, even if there are more of them than Config.Max. It returns
// how many it deleted.
func (c *Changes) Evict(now storage.Time) int {
	limit := c.cfg.Max
	if len(c.set.byID) <= limit {
		return 0
	}
	all := make([]*fact, 0, len(c.set.byID))
	for _, f := range c.set.byID {
		if !f.pinned {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *fact) int {
		return cmp.Or(cmp.Compare(a.value(now, c.cfg.HalfLife), b.value(now, c.cfg.HalfLife)), strings.Compare(a.id, b.id))
	})
	all = all[:min(len(all), len(c.set.byID)-(limit-limit/100))]
	for _, f := range all {
		c.drop(f)
	}
	return len(all)
}
