package recall

import (
	"slices"
	"strings"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
)

// filter decides which turns may be returned.
type filter struct {
	ix        *index
	now       storage.Time
	chat      int32 // the only conversation, -2 = none; unless everyone
	episodes  bool  // anything but resources
	resources bool
	everyone  bool            // not only this conversation
	chains    [][usualID]byte // of the turns that the request has
	hashes    []uint32        // sorted chainHash of each
	marks     [64]uint64      // a bit for each of the hashes, by its lower twelve
	visible   map[string]struct{}

	noPrivate bool
	noQuoted  bool // the question is about the user
	allow     func(storage.Kind, []string) bool
	asked     []uint32 // the question's words, sorted, if a memory may be unwanted for it
	leftOut   bool     // a turn did not pass because it is unwanted
}

// filter makes the filter of a request in f, of which only the memory for
// hashes is kept.
func (e *searcher) filter(ix *index, req *Request, f *filter) {
	scopes := req.Scopes
	if len(scopes) == 0 {
		scopes = e.cfg.Scopes
	}
	*f = filter{
		ix: ix, hashes: f.hashes[:0], now: storage.TimeOf(req.Now), chat: -2, visible: req.VisibleIDs,
		resources: slices.Contains(scopes, Resources), everyone: slices.Contains(scopes, AllUserMemory),
	}
	f.noPrivate, f.allow = req.NoPrivate && ix.private, req.Allow
	if ix.unwanted && !req.Unwanted {
		f.asked = query.AskedWords(e.analyzer, req.words())
	}
	f.episodes = f.everyone || slices.Contains(scopes, CurrentChat)
	if !f.everyone && req.Conversation != "" {
		if c, ok := ix.convs.find(req.Conversation); ok {
			f.chat = c
		}
	}
	if f.chains = req.VisibleChains; req.VisibleTurns > 0 {
		f.chains = append(slices.Clip(f.chains), (chains{ix}).newestChains(req.Conversation, min(req.VisibleTurns, maxVisibleTurns))...)
	}
	if len(f.chains) > 0 {
		f.hashes = slices.Grow(f.hashes, len(f.chains))
		for _, c := range f.chains {
			h := chainHash(hashRaw(ix.seed, c[:], true))
			f.hashes = append(f.hashes, h)
			f.marks[h>>6&63] |= 1 << (h & 63)
		}
		slices.Sort(f.hashes)
	}
}

const maxVisibleTurns = 256

// chains finds the chain hashes of an index's turns.
type chains struct{ *index }

// newestChains returns the chain hashes of the newest limit turns of a
// conversation.
func (ix chains) newestChains(conversation string, limit int) (chains [][usualID]byte) {
	c, ok := ix.convs.find(conversation)
	if !ok {
		return nil
	}
	for n := ix.convs.list[c].last; n >= 0 && limit > 0; n = ix.turns[n].prev {
		if chain, ok := ix.chainOf(&ix.turns[n]); ok {
			chains = append(chains, chain)
		}
		limit--
	}
	return chains
}

// chainOf returns the provenance chain hash of a turn. It is not ok if the
// proxy did not write it.
func (ix chains) chainOf(t *turn) (chain [usualID]byte, ok bool) {
	u := ix.head(t.mem).rest
	d := ix.identity(&u, ix.mems[t.mem].turn)
	if !d.chainHex || len(d.chain) != usualID {
		return chain, false
	}
	return [usualID]byte(d.chain), true
}

// maxKeptHashes limits the memory for hashes that is kept for the next request.
const maxKeptHashes = 1 << 10

// reset forgets the request, and keeps the memory for hashes.
func (f *filter) reset() {
	if cap(f.hashes) > maxKeptHashes {
		f.hashes = nil
	}
	*f = filter{hashes: f.hashes[:0]}
}

// anyKind reports whether every live turn passes, except those that the request
// has.
func (f *filter) anyKind() bool { return f.resources && f.everyone && !f.restricted() }

// restricted reports whether some turns must not be returned, whatever the
// request asks for.
func (f *filter) restricted() bool {
	return f.noPrivate || f.noQuoted || f.allow != nil || len(f.asked) > 0
}

// forbids reports whether a memory of the turn must not be returned. What was
// said in one exchange is not torn apart.
func (f *filter) forbids(t *turn) bool {
	if f.noPrivate && t.flags&turnPrivate != 0 || f.noQuoted && t.flags&turnQuoted != 0 {
		return true
	}
	for i := t.mem; f.allow != nil && i < t.mem+int32(t.count); i++ {
		if kind, tags := f.ix.labels(i); !f.allow(kind, tags) {
			return true
		}
	}
	return false
}

// hides reports whether the request has turns.
func (f *filter) hides() bool { return len(f.chains) > 0 }

// passAll reports whether every live turn passes.
func (f *filter) passAll() bool { return f.anyKind() && !f.hides() }

// pass reports whether the turn may be returned.
func (f *filter) pass(n int32) bool {
	t := &f.ix.turns[n]
	if t.flags&turnDead != 0 {
		return false
	}
	if t.flags&turnResource != 0 {
		if !f.resources {
			return false
		}
	} else if !f.episodes || !f.everyone && t.conv != f.chat {
		return false
	}
	return !f.carries(t) && !(f.restricted() && (f.forbids(t) || f.isUnwanted(t)))
}

// shows reports whether passage i of a turn that passed may be shown.
func (f *filter) shows(ix *index, t *turn, i int32) bool {
	if t.flags&turnExpires != 0 && f.now != 0 && f.now/dayMillis >= storage.Time(t.lives) {
		if at := ix.expires(i); at != 0 && at <= f.now {
			return false
		}
	}
	return !f.seen(ix, i)
}

// seen reports whether passage i is in a block of the request.
func (f *filter) seen(ix *index, i int32) bool {
	if len(f.visible) == 0 {
		return false
	}
	var space [storage.MaxID]byte
	_, ok := f.visible[string(ix.appendID(space[:0], i))]
	return ok
}

// mayCarry returns false if the request has none of the turns itself. It has no
// branch, so that the processor reads many turns at a time.
func (f *filter) mayCarry(turns []int32) bool {
	all, found := f.ix.turns, uint64(0)
	for _, n := range turns {
		h := all[n].chain
		found |= f.marks[h>>6&63] >> (h & 63)
	}
	return found&1 != 0
}

// carries reports whether the request has the turn itself.
func (f *filter) carries(t *turn) bool {
	if _, found := slices.BinarySearch(f.hashes, t.chain); !found {
		return false
	}
	chain, ok := (chains{f.ix}).chainOf(t)
	return ok && slices.Contains(f.chains, chain)
}

// UnwantedTag returns the tag of a memory that is not wanted for questions such
// as this one: see query.UnwantedTag.
func (e *Engine) UnwantedTag(question string) (tag string, ok bool) {
	return query.UnwantedTag(e.analyzer, question)
}

// isUnwanted reports whether a memory of the turn is not wanted for questions
// such as this one. What was said in one exchange is not torn apart.
func (f *filter) isUnwanted(t *turn) bool {
	if len(f.asked) == 0 || t.flags&turnUnwanted == 0 {
		return false
	}
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		_, tags := f.ix.labels(i)
		if slices.ContainsFunc(tags, func(tag string) bool { return query.IsExampleOf(tag, f.asked) }) {
			f.leftOut = true
			return true
		}
	}
	return false
}

func hasUnwantedTag(m *storage.Memory) bool {
	return slices.ContainsFunc(m.Tags, func(tag string) bool { return strings.HasPrefix(tag, storage.UnwantedTag) })
}
