package persist

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// dossier is what is held of one scope's facts, to merge new ones with. It is read from the store when the first of the
// scope's conversations is audited, and again after it was let go of.
type dossier struct {
	scope     storage.Scope
	facts     map[string]*fact // by id
	byNorm    map[string]*fact // current ones, by normalised words
	bySubject map[string][]*fact
	byTurn    map[string][]*fact
	byWord    map[string][]*fact      // current ones, by each telling word
	talks     map[string]int          // how many facts there are of each conversation
	episodes  int64                   // bytes of their texts
	records   int                     // number of the next audit record
	places    int64                   // given to statements so far
	summaries map[string]storage.Time // when each was updated, by key
	pending   []pendingAge            // requests to forget, oldest first
	forgotten map[uint64]storage.Time // when, by what tombstones hold
	used      time.Time
	bytes     int64
}

type pendingAge struct {
	key string
	at  storage.Time
}

// fact is what is held of a stored fact.
type fact struct {
	id, turn, conversation string
	norm                   string // normalised words of the statement
	content                []string
	signs                  uint64 // of content: equal sets have equal signs
	subject                string
	value                  string
	negative               bool
	denies                 []string // content of its first clause where that is in the negative and another follows: "it isn't nuts, it's milk"
	trust                  float64
	priority               float64
	notes                  string       // the dates that its words meant when it was first said
	from                   storage.Time // when it was first said
	said                   storage.Time // when it was last said
	place                  int64        // where, among statements of the same time; known of what this dossier has seen audited
	superseded             string       // by which, "" = it is current
	corrects, answers      bool         // it takes back a statement that this dossier has not seen yet: see candidate
	asked                  []string
}

// factOverhead is of its place in the maps, too.
const factOverhead = 600

func (f *fact) size() int64 {
	n := factOverhead + len(f.id) + len(f.turn) + len(f.conversation) + 3*len(f.norm) + 32*(len(f.content)+len(f.denies)) + len(f.subject) + len(f.value)
	return int64(n)
}

func newDossier(scope storage.Scope) *dossier {
	return &dossier{
		scope: scope, facts: map[string]*fact{}, byNorm: map[string]*fact{}, bySubject: map[string][]*fact{},
		byTurn: map[string][]*fact{}, byWord: map[string][]*fact{}, talks: map[string]int{}, summaries: map[string]storage.Time{}, forgotten: map[uint64]storage.Time{}, bytes: factOverhead,
	}
}

// factOf reads back what a stored fact says. It holds nothing of m: a memory's strings share one allocation with its text.
func factOf(m *storage.Memory) *fact {
	quote, quoted := quotation(m.Text)
	f := &fact{
		id: m.ID, turn: m.Provenance.Turn, conversation: m.Conversation,
		trust: m.Trust, priority: m.Priority, said: lastSaid(m), from: m.EventTime, superseded: m.SupersededBy,
	}
	if quoted {
		f.notes = m.Text[len(quote)+2:]
	}
	f.read(quote)
	return f
}

// lastSaid is when a fact was last said. That is not when it was last written: audits come late, and in any order.
func lastSaid(m *storage.Memory) storage.Time {
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

// after says whether f was said, for the last time, after g was said for the first.
func (f *fact) after(g *fact) bool {
	return f.said > g.from || f.said == g.from && f.place > g.place
}

// read fills in what merging goes by. f holds one string in the end, of all those that it is made of: facts are many, and each
// string is one more thing for the collector to look at.
func (f *fact) read(quote string) {
	var space [stackWords]word
	ws := appendWords(space[:0], quote)
	own := [...]*string{&f.id, &f.turn, &f.conversation, &f.superseded, &f.notes}
	n := 0
	for _, s := range own {
		n += len(*s)
	}
	var b strings.Builder
	b.Grow(n + normalisedLength(ws))
	for _, s := range own {
		b.WriteString(*s)
	}
	appendNormalised(&b, ws)
	held := b.String()
	for _, s := range own {
		*s, held = held[:len(*s)], held[len(*s):]
	}
	f.norm = held
	at := 0
	for i := range ws {
		n := len(ws[i].folded)
		ws[i].folded = f.norm[at : at+n]
		at += n + 1
	}
	f.content, f.negative = contentOf(ws)
	f.signs = signsOf(f.content)
	f.subject, f.value = subjectOf(ws)
	end := 1
	for end < len(ws) && !ws[end].clause {
		end++
	}
	if end < len(ws) {
		if denied, negative := contentOf(ws[:end]); negative && len(denied) > 1 {
			f.denies = denied
		}
	}
}

func (d *dossier) add(f *fact) {
	if old := d.facts[f.id]; old != nil {
		d.remove(old)
	}
	d.facts[f.id] = f
	d.byTurn[f.turn] = append(d.byTurn[f.turn], f)
	d.talks[f.conversation]++
	if f.superseded == "" && f.trust > 0 {
		d.byNorm[f.norm] = f
		for _, w := range f.content {
			d.byWord[w] = append(d.byWord[w], f)
		}
		if f.subject != "" {
			d.bySubject[f.subject] = append(d.bySubject[f.subject], f)
		}
	}
	d.bytes += f.size()
}

func (d *dossier) remove(f *fact) {
	if d.facts[f.id] != f {
		return
	}
	delete(d.facts, f.id)
	d.retire(f)
	drop(d.byTurn, f.turn, f)
	if d.talks[f.conversation]--; d.talks[f.conversation] == 0 {
		delete(d.talks, f.conversation)
	}
	d.bytes -= f.size()
}

// retire takes a fact out of those that new ones merge with.
func (d *dossier) retire(f *fact) {
	if d.byNorm[f.norm] == f {
		delete(d.byNorm, f.norm)
	}
	drop(d.bySubject, f.subject, f)
	for _, w := range f.content {
		drop(d.byWord, w, f)
	}
}

// supersededBy lists the facts that gave way to one, in the order of their ids.
func (d *dossier) supersededBy(id string) []*fact {
	var out []*fact
	for _, f := range d.facts {
		if f.superseded == id {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b *fact) int { return cmp.Compare(a.id, b.id) })
	return out
}

// similar calls found for the current facts that share so many telling words with f that they may be near it: of two
// that are, each lacks at most a fifth of the other's, so one of the rarest fifth and one more is shared.
func (d *dossier) similar(f *fact, found func(*fact)) {
	rarest := slices.Clone(f.content)
	slices.SortFunc(rarest, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(d.byWord[a]), len(d.byWord[b])), cmp.Compare(a, b))
	})
	for _, w := range rarest[:min(len(rarest), len(rarest)/5+1)] {
		for _, old := range d.byWord[w] {
			if old.id != f.id {
				found(old)
			}
		}
	}
}

func drop(m map[string][]*fact, key string, f *fact) {
	list := m[key]
	if i := slices.Index(list, f); i >= 0 {
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(m, key)
		} else {
			m[key] = list
		}
	}
}

// scanPage is how many memories are read at a time: a millisecond's worth.
const scanPage = 200

// load reads a scope's facts and counts its episodes. rest is called after every page, for requests share the processor.
func (p *Pipeline) loadDossier(ctx context.Context, scope storage.Scope, rest func(time.Duration)) (*dossier, error) {
	d := newDossier(scope)
	begun := time.Now()
	for page, err := range storage.ScanPages(ctx, p.store, scope, storage.Query{Limit: scanPage}) {
		if err != nil {
			return nil, err
		}
		for i := range page.Memories {
			switch m := &page.Memories[i]; m.Kind {
			case storage.KindFact:
				d.add(factOf(m))
			case storage.KindEpisode:
				d.episodes += int64(len(m.Text))
			}
		}
		if page.Next != "" {
			rest(time.Since(begun))
		}
		begun = time.Now()
	}
	if err := p.loadRecords(ctx, d); err != nil {
		return nil, err
	}
	return d, nil
}

// normalised joins the words of a statement, so that spelling, case and signs make no difference.
func normalised(ws []word) string {
	var b strings.Builder
	b.Grow(normalisedLength(ws))
	appendNormalised(&b, ws)
	return b.String()
}

func normalisedLength(ws []word) (n int) {
	for i := range ws {
		n += 1 + len(ws[i].folded)
	}
	return n
}

func appendNormalised(b *strings.Builder, ws []word) {
	for i := range ws {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(ws[i].folded)
	}
}

// contentOf returns the sorted distinct words that say something, and whether the statement is in the negative.
func contentOf(ws []word) (content []string, negative bool) {
	for i := range ws {
		switch w := ws[i].folded; {
		case negates(w, func(k int) string { return folded(ws, i+k) }):
			negative = !negative
		case polar[w], w == "longer" && folded(ws, i-1) == "no":
		case !ws[i].in(inStop):
			content = append(content, stemmed(w))
		}
	}
	slices.Sort(content)
	return slices.Compact(content), negative
}

// negates says whether a word turns what is said into its opposite. "ne" does so where nothing behind it does: "ne ... pas" is
// one negation. at returns the words behind it.
func negates(w string, at func(int) string) bool {
	if w == "ne" {
		for k := 1; k <= 4; k++ {
			if next := at(k); next == "pas" || next == "jamais" {
				return false
			}
		}
	}
	return lexicon().negation[w] || dislike[w]
}

// polar words carry liking, or go with yes and no ("always", "not anymore"), and no matter; dislike is their opposite.
var (
	polar   = setOf("like love enjoy prefer adore really liebe mag aime adore gusta gustan encanta allowed always anymore immer mehr toujours siempre")
	dislike = setOf("hate dislike avoid detest hasse deteste odio stopped quit")
)

// stemmed takes off the endings that make a word another form of the same, roughly.
func stemmed(w string) string {
	for _, end := range [...]string{"ies", "es", "s", "ed", "ing"} {
		if len(w) > len(end)+3 && strings.HasSuffix(w, end) {
			w = w[:len(w)-len(end)]
			break
		}
	}
	return strings.TrimSuffix(w, "e")
}

func signsOf(content []string) uint64 {
	var s uint64
	for _, w := range content {
		s |= 1 << (hashOf(w) % 64)
	}
	return s
}

// near says whether two statements are the same in other words: one holds all the telling words of the other, at least
// four fifths of all are shared, and no number, name of a day or month is among those that differ. A word in place of
// another one makes another statement.
func (f *fact) near(g *fact) bool {
	if f.negative != g.negative || len(f.content) == 0 || hasIdeographs(f.norm) || // in which one character may be "not"
		bits.OnesCount64(f.signs^g.signs) > 6 {
		return false
	}
	a, b := f.content, g.content
	same, oddA, oddB := 0, 0, 0
	for i, j := 0, 0; i < len(a) || j < len(b); {
		var odd string
		switch {
		case j == len(b) || i < len(a) && a[i] < b[j]:
			odd, i, oddA = a[i], i+1, oddA+1
		case i == len(a) || b[j] < a[i]:
			odd, j, oddB = b[j], j+1, oddB+1
		default:
			same, i, j = same+1, i+1, j+1
			continue
		}
		if distinctive(odd) || oddA > 0 && oddB > 0 {
			return false
		}
	}
	if union := len(a) + len(b) - same; same*5 < union*4 {
		return false
	}
	return resemble(f.norm, g.norm) && sameSense(f.norm, g.norm)
}

// distinctive words make another statement of one that is alike otherwise.
func distinctive(w string) bool {
	return strings.ContainsAny(w, "0123456789") || smallNumber[w] > 1 || lexicon().weekdays[w] || lexicon().months[w]
}

// resemble compares by shingles of three bytes: Jaccard of at least .6.
func resemble(a, b string) bool {
	if len(a) < 3 || len(b) < 3 {
		return a == b
	}
	in := make(map[string]int8, len(a))
	for i := 0; i+3 <= len(a); i++ {
		in[a[i:i+3]] = 1
	}
	union, same := len(in), 0
	for i := 0; i+3 <= len(b); i++ {
		switch in[b[i:i+3]] {
		case 0:
			in[b[i:i+3]] = 2
			union++
		case 1:
			in[b[i:i+3]] = 3
			same++
		}
	}
	return same*5 >= union*3
}
