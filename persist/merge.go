package persist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Tags of facts.
const (
	TagQuarantined = "quarantined" // shaped like an instruction: kept for review, never recalled
	TagRemembered  = "remembered"  // asked for in so many words
	TagDistilled   = "distilled"   // put in words by a model
	tagSupersedes  = "supersedes:" // + id of the older statement on the same subject
	tagContradicts = "contradicts:"
	tagSaid        = "said:" // + mark of a statement that reinforced it, so that a repetition does not count twice
	tagLast        = "last:" // + when it was last said, where that is not when it was first said
)

// maxSaid bounds the marks of a fact. Beyond, the oldest go, and a replay of what they stood for would count once more.
const maxSaid = 8

// Confidence of a statement heard once, and what each repetition adds to it and to its priority, of what is missing to 1.
const (
	firstConfidence  = 0.6
	reinforcement    = 0.25
	priorityGain     = 0.1
	quarantinedTrust = 0.0
)

// factID is the same whenever the same words of the same turn are audited, in every process.
func factID(scope storage.Scope, turn, quote string) string {
	var space [stackWords]word
	sum := scopedHash(scope, turn, normalised(appendWords(space[:0], quote)))
	return "f" + hex.EncodeToString(sum[:16])
}

// scopedHash is another one in every scope.
func scopedHash(scope storage.Scope, a, b string) []byte {
	h := sha256.New()
	for _, s := range [...]string{scope.Tenant, scope.App, scope.Project, scope.User, a, b} {
		_, _ = h.Write([]byte(s)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return h.Sum(nil)
}

// factText is the statement as it is stored: a quotation with the dates that it means beside it, or a distiller's words.
func factText(c *candidate) string {
	if c.statement != "" {
		return c.statement
	}
	text := `"` + strings.ReplaceAll(c.quote, `"`, `'`) + `"`
	if len(c.dates) > 0 {
		notes := make([]string, len(c.dates))
		for i, d := range c.dates {
			notes[i] = strings.ReplaceAll(d.note(c.quote), `"`, `'`)
		}
		text += " [" + strings.Join(notes, "; ") + "]"
	}
	return text
}

// quotation undoes factText: the words of the statement, and whether they are a quotation.
func quotation(text string) (string, bool) {
	if !strings.HasPrefix(text, `"`) {
		return text, false
	}
	if end := strings.LastIndexByte(text, '"'); end > 0 {
		return text[1:end], true
	}
	return text, false
}

// outcome of a merge, as metrics count it.
type merged int

const (
	mergedNew merged = iota
	mergedSame
	mergedReinforced
	mergedSuperseded // an older statement went
	mergedStale      // it is itself older than what is known
	mergedQuarantined
	mergedForgotten // said before it was forgotten
)

// merging collects what an audit changes in a scope: at most one version of each fact.
type merging struct {
	p       *Pipeline
	d       *dossier
	changed map[string]*storage.Memory
	order   []string
	gone    []string        // ids of facts to delete
	turned  map[string]bool // turns of whose facts one was superseded, or holds again
}

func (p *Pipeline) newMerging(d *dossier) *merging {
	return &merging{p: p, d: d, changed: map[string]*storage.Memory{}, turned: map[string]bool{}}
}

func (g *merging) put(m storage.Memory) {
	if g.changed[m.ID] == nil {
		g.order = append(g.order, m.ID)
	}
	m.UpdatedAt = 0 // the store's to set
	g.changed[m.ID] = &m
	g.gone = slices.DeleteFunc(g.gone, func(id string) bool { return id == m.ID })
	f := factOf(&m)
	if old := g.d.facts[m.ID]; old != nil {
		f.place = old.place
	}
	g.d.add(f)
}

// record reads a fact as it is now. nil means that it is gone, or in another state than the dossier has it in: someone
// else has changed it.
func (g *merging) record(ctx context.Context, f *fact) (*storage.Memory, error) {
	if m := g.changed[f.id]; m != nil {
		c := *m
		return &c, nil
	}
	m, err := g.p.store.Memory(ctx, g.d.scope, f.id)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged):
		g.d.remove(f)
		return nil, nil
	case err != nil:
		return nil, err
	}
	if now := factOf(&m); now.norm != f.norm || now.superseded != f.superseded || now.trust != f.trust || m.DeletedAt != 0 {
		if g.d.remove(f); m.DeletedAt == 0 {
			g.d.add(now)
		}
		return nil, nil
	}
	return &m, nil
}

// merge takes one candidate in. Its window message says where it comes from.
func (g *merging) merge(ctx context.Context, c *candidate, from *windowMessage, conversation string) (merged, error) {
	m := g.memory(c, from, conversation)
	f := factOf(&m)
	f.place = g.d.places + c.place
	if known := g.d.facts[m.ID]; known != nil {
		if m, err := g.record(ctx, known); err != nil || m != nil {
			return mergedSame, err
		}
	}
	if g.d.buried(f) {
		return mergedForgotten, nil
	}
	put := func() {
		g.put(m)
		kept := g.d.facts[m.ID]
		kept.place, kept.corrects, kept.answers, kept.asked = f.place, f.corrects, f.answers, f.asked
	}
	if c.suspicious {
		m.Trust, m.Tags = quarantinedTrust, append(m.Tags, TagQuarantined)
		put()
		return mergedQuarantined, nil
	}
	if same, err := g.twin(ctx, f); err != nil {
		return mergedSame, err
	} else if same != nil {
		return g.reinforce(same, c, m.ID, f.place), nil
	}
	out := mergedNew
	rivals := g.rivals(f)
	f.corrects, f.answers, f.asked = c.corrects, c.answers, c.asked
	if old := g.corrected(f); old != nil {
		f.asked, old.asked = nil, nil
		if f.corrects, old.corrects = false, false; !slices.Contains(rivals, old) {
			rivals = append(rivals, old)
		}
	}
	for _, old := range rivals {
		stored, err := g.record(ctx, old)
		if err != nil {
			return out, err
		}
		if stored == nil {
			continue
		}
		tag := tagSupersedes
		if old.subject != f.subject || f.subject == "" {
			tag = tagContradicts
		}
		now := storage.TimeOf(time.Now())
		if ahead := old.said > now && f.from <= now; !ahead && old.after(f) { // told late: a chat that was imported, or audited after a newer one
			if m.ValidTo = old.from; old.from <= f.from { // said before it and again after
				m.ValidTo = old.said
			}
			m.SupersededBy = old.id
			put()
			g.turned[m.Provenance.Turn] = true
			return mergedStale, nil
		}
		stored.ValidTo, stored.SupersededBy = max(m.EventTime, stored.ValidFrom), m.ID // it is the later if a clock was ahead
		m.Tags = append(m.Tags, tag+old.id)
		g.put(*stored)
		g.turned[old.turn] = true
		out = mergedSuperseded
	}
	put()
	return out, nil
}

// memory makes the record of a new fact.
func (g *merging) memory(c *candidate, from *windowMessage, conversation string) storage.Memory {
	at := storage.TimeOf(c.at)
	keep := g.p.cfg.Facts.Retention
	if c.q.total >= g.p.cfg.Audit.KeepLonger || c.remembered {
		keep = g.p.cfg.Facts.LongRetention
	}
	m := storage.Memory{
		ID: factID(g.d.scope, from.turn, c.quote), Scope: g.d.scope, Conversation: conversation, Kind: storage.KindFact,
		Text: factText(c), Tags: []string{kindTag(c.kind)}, Priority: c.q.total, Confidence: firstConfidence, Trust: trustUser,
		Source:     from.source,
		Provenance: storage.Provenance{Turn: from.turn, Chain: from.chain, Role: storage.RoleUser, Speaker: from.speaker, Model: from.model},
		EventTime:  at, ValidFrom: at, ExpiresAt: at + storage.Time(keep.Milliseconds()),
	}
	if c.statement != "" {
		m.Tags = append(m.Tags, TagDistilled)
	}
	if c.remembered {
		m.Tags, m.Priority = append(m.Tags, TagRemembered), max(m.Priority, g.p.cfg.Audit.KeepLonger)
	}
	for i := range c.words {
		if w := &c.words[i]; i > 0 && capital(w.raw) && w.raw != c.words[i-1].raw && w.folded != "i" && len(m.Entities) < 8 && !slices.Contains(m.Entities, w.raw) {
			m.Entities = append(m.Entities, w.raw)
		}
	}
	return m
}

// kindTag names what sort of statement a fact is.
func kindTag(k mark) string {
	switch k {
	case markStanding:
		return "preference"
	case markMatter:
		return "fact"
	}
	return markNames[k]
}

// twin finds a current fact that says the same, and means the same days.
func (g *merging) twin(ctx context.Context, f *fact) (*storage.Memory, error) {
	if old := g.d.byNorm[f.norm]; old != nil && old.notes == f.notes {
		if m, err := g.record(ctx, old); m != nil || err != nil {
			return m, err
		}
	}
	var best *fact
	g.d.similar(f, func(old *fact) {
		if (best == nil || old.id < best.id) && old.notes == f.notes && old.near(f) { // the same one in every process
			best = old
		}
	})
	if best == nil {
		return nil, nil
	}
	return g.record(ctx, best)
}

// saidMark is enough of a statement's id to know it by.
func saidMark(id string) string { return id[:min(len(id), 17)] }

// reinforce makes a fact that was said again weightier, once for each statement that says it. It was said again when the
// statement was made, whenever that is audited.
func (g *merging) reinforce(m *storage.Memory, c *candidate, said string, place int64) merged {
	mark := tagSaid + saidMark(said)
	if slices.Contains(m.Tags, mark) {
		return mergedSame
	}
	var others, marks []string
	for _, t := range m.Tags {
		switch {
		case strings.HasPrefix(t, tagSaid):
			marks = append(marks, t)
		case !strings.HasPrefix(t, tagLast):
			others = append(others, t)
		}
	}
	at, last := storage.TimeOf(c.at), lastSaid(m)
	if last = max(last, at); last > m.EventTime {
		others = append(others, tagLast+strconv.FormatInt(int64(last), 10))
	}
	marks = append(marks, mark)
	m.Tags = append(others, marks[max(0, len(marks)-maxSaid):]...)
	m.Priority = max(m.Priority, c.q.total)
	m.Priority += (1 - m.Priority) * priorityGain
	m.Confidence += (1 - m.Confidence) * reinforcement
	keep := g.p.cfg.Facts.Retention
	if m.Priority >= g.p.cfg.Audit.KeepLonger {
		keep = g.p.cfg.Facts.LongRetention
	}
	m.ExpiresAt = max(m.ExpiresAt, at+storage.Time(keep.Milliseconds()))
	g.put(*m)
	if f := g.d.facts[m.ID]; at == last {
		f.place = max(f.place, place)
	}
	return mergedReinforced
}

// rivals are the current facts that f can't stand beside: another value of its subject, or its opposite.
func (g *merging) rivals(f *fact) []*fact {
	var out []*fact
	if f.subject != "" {
		for _, old := range g.d.bySubject[f.subject] {
			if old.id != f.id && (old.value != f.value || old.notes != f.notes) {
				out = append(out, old)
			}
		}
	}
	if old := g.d.byNorm[f.norm]; old != nil && old.id != f.id && old.notes != f.notes && !slices.Contains(out, old) {
		out = append(out, old) // "on Friday", of another week
	}
	g.d.similar(f, func(old *fact) {
		if old.negative != f.negative && old.signs == f.signs && slices.Equal(old.content, f.content) && !slices.Contains(out, old) {
			out = append(out, old)
		} else if !f.negative && slices.Equal(old.denies, f.content) && !slices.Contains(out, old) {
			out = append(out, old)
		}
	})
	if len(f.denies) > 0 {
		first := fact{id: f.id, content: f.denies}
		g.d.similar(&first, func(old *fact) {
			if !old.negative && slices.Equal(old.content, f.denies) && !slices.Contains(out, old) {
				out = append(out, old)
			}
		})
	}
	return out
}

// corrected is the fact that a correction takes back: the one of its conversation that shares most telling words with it,
// half of the shorter's at least; of two alike, the one that was said last. Of what was said before a correction that is
// known already, for the better scored come first, it is that correction.
func (g *merging) corrected(f *fact) *fact {
	if g.d.talks[f.conversation] == 0 { // mostly: nothing of it is known, and the words may be those of thousands
		return nil
	}
	var best *fact
	most := 0
	for _, w := range f.content {
		for _, old := range g.d.byWord[w] {
			later := old.after(f)
			if old.id == f.id || old.conversation != f.conversation || later && (!old.corrects || !old.takesBack(f)) || !later && (!f.corrects || !f.takesBack(old)) {
				continue
			}
			shared := 0
			for _, w := range f.content {
				if _, ok := slices.BinarySearch(old.content, w); ok {
					shared++
				}
			}
			if shared*2 < min(len(f.content), len(old.content)) || shared < min(len(f.content), len(old.content)) && ofOneself(f.norm) != ofOneself(old.norm) || // "No, my son ..." takes back nothing of "I ..."
				shared < most || shared == most && best != nil && !old.after(best) {
				continue
			}
			best, most = old, shared
		}
	}
	return best
}

// ofOneself says whether normalised words begin in the first person.
func ofOneself(norm string) bool {
	w, _, _ := strings.Cut(norm, " ")
	return first[w]
}

// revoke deletes the facts of a turn that was replaced, but for those whose words still stand in its text and those that
// are proposed again, and returns how many went. What they had superseded gives way to what superseded them, or holds
// again.
func (g *merging) revoke(ctx context.Context, turn, text string, proposed map[string]bool) (n int, err error) {
	text = " " + normalised(words(text)) + " "
	g.turned[turn] = true // its passages are new
	var ids []string
	for _, f := range g.d.byTurn[turn] {
		ids = append(ids, f.id)
	}
	for _, id := range ids {
		f := g.d.facts[id]
		if proposed[f.id] || strings.Contains(text, " "+f.norm+" ") {
			continue
		}
		for _, old := range g.d.supersededBy(f.id) {
			m, err := g.record(ctx, old)
			if err != nil {
				return n, err
			}
			if m == nil {
				continue
			}
			m.ValidTo, m.SupersededBy = 0, f.superseded
			if f.superseded != "" {
				m.ValidTo = f.from
				if next := g.d.facts[f.superseded]; next != nil {
					m.ValidTo = next.from
				}
			}
			g.put(*m)
			g.turned[old.turn] = true
		}
		g.drop(f)
		n++
	}
	return n, nil
}

// drop deletes a fact, whether it is stored already or not.
func (g *merging) drop(f *fact) {
	g.d.remove(f)
	g.gone = append(g.gone, f.id)
	if g.changed[f.id] != nil {
		delete(g.changed, f.id)
		g.order = slices.DeleteFunc(g.order, func(id string) bool { return id == f.id })
	}
}

// worth is what a fact counts against eviction: its priority, halved with each half-life since it was last said.
// Superseded ones and those in quarantine are worth a quarter.
func (f *fact) worth(now storage.Time, halfLife time.Duration) float64 {
	w := f.priority * math.Exp2(-float64(max(now-f.said, 0))/float64(halfLife.Milliseconds()))
	if f.superseded != "" || f.trust == 0 {
		w /= 4
	}
	return w
}

// evict lets the least worth facts go beyond the bound, and a hundredth more, so that it is not done for every one.
func (g *merging) evict(now storage.Time) int {
	most := g.p.cfg.Facts.Max
	if len(g.d.facts) <= most {
		return 0
	}
	all := make([]*fact, 0, len(g.d.facts))
	for _, f := range g.d.facts {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *fact) int {
		wa, wb := a.worth(now, g.p.cfg.Facts.HalfLife), b.worth(now, g.p.cfg.Facts.HalfLife)
		switch {
		case wa < wb:
			return -1
		case wa > wb:
			return 1
		}
		return strings.Compare(a.id, b.id)
	})
	n := len(all) - (most - most/100)
	for _, f := range all[:n] {
		g.drop(f)
	}
	return n
}
