// Package facts decides how statements become the facts of one scope: which are
// new, which say the same, which take another's place, and which may not come
// back.
//
// A [Set] holds what is known of a scope's facts. An audit merges candidates
// into it through [Changes], which collects what is to be written and deleted;
// nothing is stored here. If storing fails, the Set is ahead of the store: drop
// it and load it again.
//
//   - A fact's id follows from its turn and words: the same statement audited
//     twice is one fact, in every process.
//   - A repetition, also in nearly the same words, reinforces a fact once; a
//     repetition audited twice does not count twice.
//   - Of two statements that can't both hold, the one said last holds, whenever
//     it was audited. The other keeps ValidTo and SupersededBy and is never
//     recalled. The passages that it was said in are tagged as outdated.
//   - What was forgotten leaves a tombstone of hashes and is not made a fact
//     again unless it is said again.
//
// Sets and Changes belong to one goroutine. A Set is bounded by Config.Max
// facts and Config.MaxForgotten tombstones, and reports its size for callers
// that hold many. The auditor and the erasure of package persist call it.
package facts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
	"github.com/remora-proxy/remora/text/updates"
)

// Config of the facts of one scope.
type Config struct {
	// Max bounds the facts; beyond it, those of the lowest value are evicted.
	// Superseded and quarantined ones count.
	Max int
	// MaxForgotten bounds the tombstones; beyond it, what the oldest stand for
	// may be saved again.
	MaxForgotten int
	// Retention is how long facts live from when they were last said,
	// LongRetention that of facts that were asked for or score at least
	// KeepLonger.
	Retention, LongRetention time.Duration
	KeepLonger               float64
	// HalfLife is the time in which the priority of a fact halves, from when it
	// was last said.
	HalfLife time.Duration
}

// Reader reads a memory as it is stored, or fails with storage.ErrNotFound. A
// [storage.Store] is one.
type Reader interface {
	Memory(ctx context.Context, scope storage.Scope, id string) (storage.Memory, error)
}

// Tags of facts.
const (
	TagQuarantined = "quarantined" // shaped like an instruction: kept for review, never recalled
	TagRemembered  = "remembered"  // asked for in so many words
	TagDistilled   = "distilled"   // put in words by a model

	tagPreference  = "preference"  // a preference or a standing order: see extract.Candidate.Kind
	tagSupersedes  = "supersedes:" // + id of the older statement on the same subject
	tagContradicts = "contradicts:"
	tagSaid        = "said:" // + mark of a statement that reinforced it, so that a repetition does not count twice
	tagLast        = "last:" // + when it was last said, where that is not when it was first said
)

// Contradicts reports whether a fact took the place of another as its opposite,
// not as another value of its subject.
func Contradicts(newer, older *storage.Memory) bool {
	return slices.Contains(newer.Tags, tagContradicts+older.ID)
}

// SourceImport is the prefix of the source of what was imported. Its retention
// counts from the import.
const SourceImport = "import"

// Origin is where a statement comes from.
type Origin struct{ Conversation, Turn, Chain, Source, Model, Speaker string }

// ID returns a fact's id: the same whenever the same words of a turn are
// audited, in every process.
func ID(scope storage.Scope, turn, quote string) string {
	sum := scopedHash(scope, turn, extract.Normalize(quote))
	return "f" + hex.EncodeToString(sum[:16])
}

// scopedHash differs from scope to scope.
func scopedHash(scope storage.Scope, a, b string) []byte {
	h := sha256.New()
	for _, s := range [...]string{scope.Tenant, scope.App, scope.Project, scope.User, a, b} {
		_, _ = h.Write([]byte(s)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return h.Sum(nil)
}

// LastSaid returns when a fact was last said. It may have been written much
// later: audits come late, and in any order.
func LastSaid(m *storage.Memory) storage.Time {
	last := m.EventTime
	for _, t := range m.Tags {
		if at, ok := strings.CutPrefix(t, tagLast); ok {
			if n, err := strconv.ParseInt(at, 10, 64); err == nil {
				last = max(last, storage.Time(n))
			}
		}
	}
	return last
}

// setLastSaid replaces the tag that LastSaid reads.
func setLastSaid(m *storage.Memory, at storage.Time) {
	m.Tags = slices.DeleteFunc(slices.Clone(m.Tags), func(tag string) bool { return strings.HasPrefix(tag, tagLast) })
	if at > m.EventTime {
		m.Tags = append(m.Tags, tagLast+strconv.FormatInt(int64(at), 10))
	}
}

// fact is what a Set holds of a stored fact.
type fact struct {
	extract.Statement
	id, turn, conversation string
	trust, priority        float64
	dates                  string       // that its words meant when it was first said
	from                   storage.Time // when it was first said
	said                   storage.Time // when it was last said
	order                  int64        // among statements of the same time, of those audited since the Set was loaded
	superseded             string       // by which; "" = it is current
	correction             extract.Correction
	class                  text.Cue // of a short one: see [updates.Statement.Class]
	pinned                 bool
	deliberate             bool // it was pinned, imported or asked for, or is a preference
}

// factOverhead is what a fact takes in addition to its strings, including its
// entries in the maps.
const factOverhead = 600

func (f *fact) size() int64 {
	return factOverhead + int64(len(f.id)+len(f.turn)+len(f.conversation)) + f.Statement.Size()
}

// parse reads what a stored fact says. It holds no string of m, which share one
// allocation with the text.
func parse(m *storage.Memory) *fact {
	quote, dates, _ := extract.Quotation(m.Text)
	f := &fact{
		Statement: extract.ParseStatement(quote),
		trust:     m.Trust, priority: m.Priority, from: m.EventTime, said: LastSaid(m), pinned: Pinned(m),
	}
	if len(f.Content) <= maxChangedWords {
		var said updates.Statement
		said.Read(analyzer(), quote, text.English)
		f.class = said.Class()
	}
	held := strings.Join([]string{m.ID, m.Provenance.Turn, m.Conversation, m.SupersededBy, dates}, "")
	take := func(n int) (s string) { s, held = held[:n], held[n:]; return s }
	f.id, f.turn, f.conversation = take(len(m.ID)), take(len(m.Provenance.Turn)), take(len(m.Conversation))
	f.superseded, f.dates = take(len(m.SupersededBy)), held
	f.deliberate = f.pinned || slices.Contains(m.Tags, TagRemembered) || slices.Contains(m.Tags, tagPreference) ||
		strings.HasPrefix(m.Source, SourceImport)
	return f
}

// after reports whether f was last said after g was first said.
func (f *fact) after(g *fact) bool {
	return f.said > g.from || f.said == g.from && f.order > g.order
}

// value returns what a fact is worth when facts are evicted: its priority,
// halved with each half-life since it was last said, unless it is pinned.
// Superseded and quarantined ones count a quarter.
func (f *fact) value(now storage.Time, halfLife time.Duration) float64 {
	v := f.priority
	if !f.pinned {
		v *= math.Exp2(-float64(max(now-f.said, 0)) / float64(halfLife.Milliseconds()))
	}
	if f.superseded != "" || f.trust == 0 {
		v /= 4
	}
	return v
}

// Value returns what a stored fact is worth at a time, higher being better.
func (c Config) Value(m *storage.Memory, now storage.Time) float64 {
	f := fact{priority: m.Priority, said: LastSaid(m), superseded: m.SupersededBy, trust: m.Trust, pinned: Pinned(m)}
	return f.value(now, c.HalfLife)
}

// Set holds what is known of one scope's facts, to merge new ones with. It
// belongs to one goroutine.
type Set struct {
	scope         storage.Scope
	byID          map[string]*fact
	byWords       map[string]*fact   // current ones
	bySubject     map[string][]*fact // current ones
	byContent     map[string][]*fact // current ones, by each content word
	byTurn        map[string][]*fact
	conversations map[string]int          // how many facts each has
	forgotten     map[uint64]storage.Time // by hash of a tombstone: when
	private       map[string]struct{}     // turns that are private
	statements    int64                   // merged so far, for fact.order
	bytes         int64
}

// NewSet returns an empty Set.
func NewSet(scope storage.Scope) *Set {
	return &Set{
		scope: scope, byID: map[string]*fact{}, byWords: map[string]*fact{}, bySubject: map[string][]*fact{}, byTurn: map[string][]*fact{},
		byContent: map[string][]*fact{}, conversations: map[string]int{}, forgotten: map[uint64]storage.Time{}, private: map[string]struct{}{},
		bytes: factOverhead,
	}
}

// Size estimates the bytes that the Set takes in memory.
func (s *Set) Size() int64 { return s.bytes }

// Load adds a stored fact.
func (s *Set) Load(m *storage.Memory) { s.add(parse(m)) }

// LoadPrivate notes that a turn is private: what is made of it is so, too.
func (s *Set) LoadPrivate(turn string) {
	if _, ok := s.private[turn]; !ok {
		s.private[strings.Clone(turn)] = struct{}{}
		s.bytes += tombstoneBytes + int64(len(turn))
	}
}

func (s *Set) add(f *fact) {
	if old := s.byID[f.id]; old != nil {
		s.remove(old)
	}
	s.byID[f.id] = f
	s.byTurn[f.turn] = append(s.byTurn[f.turn], f)
	s.conversations[f.conversation]++
	if f.superseded == "" && f.trust > 0 {
		s.byWords[f.Words] = f
		for _, w := range f.Content {
			s.byContent[w] = append(s.byContent[w], f)
		}
		if f.Subject != "" {
			s.bySubject[f.Subject] = append(s.bySubject[f.Subject], f)
		}
	}
	s.bytes += f.size()
}

func (s *Set) remove(f *fact) {
	if s.byID[f.id] != f {
		return
	}
	delete(s.byID, f.id)
	if s.byWords[f.Words] == f {
		delete(s.byWords, f.Words)
	}
	removeFrom(s.bySubject, f.Subject, f)
	for _, w := range f.Content {
		removeFrom(s.byContent, w, f)
	}
	removeFrom(s.byTurn, f.turn, f)
	if s.conversations[f.conversation]--; s.conversations[f.conversation] == 0 {
		delete(s.conversations, f.conversation)
	}
	s.bytes -= f.size()
}

func removeFrom(m map[string][]*fact, key string, f *fact) {
	list := m[key]
	if i := slices.Index(list, f); i >= 0 {
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(m, key)
		} else {
			m[key] = list
		}
	}
}

// Mentioned returns the ids of at most n facts that share half of the content
// words of a request.
func (s *Set) Mentioned(content []string, n int) (ids []string) {
	request := extract.Statement{Content: content}
	for id, f := range s.byID {
		if shared := request.Shared(&f.Statement); shared > 0 && shared*2 >= len(content) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids[:min(len(ids), n)]
}

// supersededBy returns the facts that one took the place of, in the order of
// their ids.
func (s *Set) supersededBy(id string) (out []*fact) {
	for _, f := range s.byID {
		if f.superseded == id {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b *fact) int { return cmp.Compare(a.id, b.id) })
	return out
}

// similar calls found for current facts that share enough content words with f.
// Of two that are near, each lacks at most a fifth of the other's words, so
// they share one of the rarest fifth and one more.
func (s *Set) similar(f *fact, found func(*fact)) {
	rarest := slices.Clone(f.Content)
	slices.SortFunc(rarest, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(s.byContent[a]), len(s.byContent[b])), cmp.Compare(a, b))
	})
	for _, w := range rarest[:min(len(rarest), len(rarest)/5+1)] {
		for _, old := range s.byContent[w] {
			if old.id != f.id {
				found(old)
			}
		}
	}
}

// outdated reports whether a passage of a turn holds a statement that was
// superseded.
func (s *Set) outdated(turn, passage string) bool {
	words := extract.Normalize(passage)
	return slices.ContainsFunc(s.byTurn[turn], func(f *fact) bool {
		return f.superseded != "" && extract.HoldsWords(words, f.Words)
	})
}

// retag appends to list the passages of the user in a turn whose
// [storage.OutdatedTag] is not what outdated wants. A passage with a superseded
// statement is still recalled for what else it says. Statements in a model's
// words are in no passage, so these keep their tags.
func retag(ctx context.Context, r Reader, scope storage.Scope, turn string, outdated func(turn, passage string) bool, list []storage.Memory) ([]storage.Memory, error) {
	for seq := 0; turn != ""; seq++ {
		m, err := r.Memory(ctx, scope, storage.TurnMemoryID(turn, seq))
		switch {
		case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged), err == nil && m.Provenance.Role != storage.RoleUser: // the user's come first
			return list, nil
		case err != nil:
			return list, err
		}
		if want := outdated(turn, m.Text); want != slices.Contains(m.Tags, storage.OutdatedTag) {
			m.Tags = slices.DeleteFunc(slices.Clone(m.Tags), func(tag string) bool { return tag == storage.OutdatedTag })
			if want {
				m.Tags = append(m.Tags, storage.OutdatedTag)
			}
			m.UpdatedAt = 0 // the store's to set
			list = append(list, m)
		}
	}
	return list, nil
}
