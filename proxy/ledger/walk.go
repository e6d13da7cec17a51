package ledger

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
)

// Walk is what the ledger knows about one request, and records what becomes of
// it. The zero Walk knows nothing, and its recording methods do nothing.
type Walk struct {
	Chain   []Hash   // the hash after each message of the request
	Replays []Replay // the blocks that the request carries again, in order
	// Named is the conversation that the request names, by an id or by the
	// response that it continues; "" = none.
	Named string
	// Known is the conversation that the ledger found; "" = none.
	Known string
	// HeldTurns and HeldIDs are the turns, and the memories in their blocks,
	// that the upstream holds for this request.
	HeldTurns map[Hash]struct{}
	HeldIDs   map[string]struct{}
	// Said is what the person said in the turn that the request continues, and
	// Before what is unanswered before it, while that turn has no final answer.
	Said   string
	Before []string

	ledger  *Ledger
	entries *Entries
	seed    Hash
	origin  origin
	turn    int  // index of the newest user message; -1 = the upstream holds it
	loop    bool // a step of a tool loop
	peek    bool // the request is not part of the conversation and leaves no trace
	blind   bool // the entries could not be read

	outline []Hash // of a thread, after each message

	newest        *variant // to replay at the newest turn; nil = the turn is new here
	unfound       bool     // newest was sent within Config.ReplayWindow, and nothing was found for it
	written       *variant // added at the newest turn by Enter; nil = none
	sent          *variant // what goes out at the newest turn
	count, tokens int      // of blocks before the newest turn, with those that the upstream holds
	forgets       int64    // of the entries, at the time of the walk
}

// Replay is a block that an earlier request carried.
type Replay struct {
	Turn      int // index into the request's messages; -1 = the upstream holds that turn
	Placement dialect.Placement
	Block     fence.Block
	at        Hash
	variant   *variant
}

// WalkOptions describe a request to Walk.
type WalkOptions struct {
	Named string // the conversation that the request names; "" = none
	// Fallback names the conversation if neither Named nor the response that
	// the request continues does.
	Fallback func() string
	Peek     bool // the request is not part of the conversation and leaves no trace
	// Blind: the entries could not be loaded in time. The walk then holds the
	// chain and nothing else.
	Blind bool
}

// Walk finds what to replay in the request. Unless o.Blind is set, Await must
// have returned nil.
func (f *Search) Walk(o WalkOptions) Walk {
	s, req := f.entries, f.req
	w := Walk{ledger: s.ledger, entries: s, seed: f.seed, origin: f.origin(o.Blind), turn: req.Turn, loop: req.Loop, peek: o.Peek, blind: o.Blind}
	w.Said, w.Before = w.origin.at.said, w.origin.at.before
	if w.Named = o.Named; w.Named == "" {
		w.Named = w.origin.conversation()
	}
	if w.Named == "" && o.Fallback != nil {
		w.Named = o.Fallback()
	}
	w.Chain, w.outline = f.chain, f.outline
	if w.origin.held {
		if w.Chain = chain(w.origin.seed, req, f.room); req.Threaded {
			w.outline = outline(w.origin.at.outline, req)
		}
	}
	if o.Blind {
		return w
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findThread(&w, req)
	s.walk(&w, req)
	if w.origin.known {
		s.walkHeld(&w, w.origin.seed)
	}
	return w
}

// Unscoped returns a walk for a request without a scope. It knows the repairs
// of its conversation and nothing else.
func (l *Ledger) Unscoped(req *dialect.Request, room []Hash) Walk {
	return Walk{ledger: l, turn: req.Turn, peek: true, Chain: chain(Hash{}, req, room)}
}

// walk finds the variants of the request's own turns. Needs s.mu.
func (s *Entries) walk(w *Walk, req *dialect.Request) {
	cfg, now := &s.ledger.cfg, s.ledger.now()
	w.forgets = s.forgets
	add := func(i int, v *variant) {
		if !w.peek {
			s.touch(w.Chain[i], v, now)
		}
		if v.Block.Text != "" && !v.observeOnly {
			w.Replays = append(w.Replays, Replay{i, v.Placement, v.Block, w.Chain[i], v})
			if i < req.Turn {
				w.count++
				w.tokens += tokensOf(v.Block)
			}
		}
	}
	// The newest entry on the chain identifies the conversation best: its hash
	// covers everything before it.
	conversation := w.Named
	first := req.Turn // the first turn with an entry, as far as is known
	for i := req.Turn; i >= 0 && conversation == ""; i-- {
		if req.Messages[i].Role == dialect.RoleUser {
			e := s.entries[w.Chain[i]]
			if e != nil {
				first = i
			}
			conversation = e.conversation(now, cfg.TTL)
		}
	}
	if conversation != "" { // not all turns were looked up
		first = 0
	}
	for i := max(first, req.Compacted); i < req.Turn; i++ {
		if req.Messages[i].Role != dialect.RoleUser {
			continue
		}
		if v := s.follow(w.Chain[i], req, i, conversation, w.Named, now, w.peek); v != nil {
			add(i, v)
			w.Known = v.Conversation
		}
	}
	switch {
	case req.Turn < 0:
	case req.Turn+1 < len(req.Messages):
		w.newest = s.follow(w.Chain[req.Turn], req, req.Turn, conversation, w.Named, now, w.peek)
	default:
		w.newest = s.entries[w.Chain[req.Turn]].retry(w.Named, cmp.Or(w.Named, w.Known), now, cfg.ReplayWindow)
		w.unfound = w.newest != nil && w.newest.unfound
	}
	if w.newest != nil {
		add(req.Turn, w.newest)
		w.Known = w.newest.Conversation
	}
}

// findThread finds turns of a thread that is sent again from the beginning, by
// what the client wrote. Needs s.mu.
func (s *Entries) findThread(w *Walk, req *dialect.Request) {
	for i := range w.outline {
		if req.Messages[i].Role != dialect.RoleUser || s.entries[w.Chain[i]] != nil {
			continue
		}
		if e := s.entries[outlineKey(w.outline[i])]; e != nil {
			s.alias(w.Chain[i], e)
		}
	}
}

// alias makes e the entry for h as well. Needs s.mu.
func (s *Entries) alias(h Hash, e *entry) {
	if s.entries[h] == e {
		return
	}
	s.set(h, e)
	s.charge(e.size())
}

// aliasThread makes the newest turn of a thread be found by its outline.
func (w *Walk) aliasThread() {
	s := w.entries
	if s == nil || w.turn < 0 || w.turn >= len(w.outline) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, key := s.entries[w.newestHash()], outlineKey(w.outline[w.turn]); e != nil {
		s.alias(key, e)
		s.save(key)
	}
}

func tokensOf(b fence.Block) int { return (len(b.Text) + 1) / 2 }

// IsNew reports whether nothing is replayed at the newest turn. An observed
// turn stays new, and so does one that is sent again and found nothing before:
// what it asks for may have been told since. One whose block was cleared or
// forgotten does not: the conversation continues without it.
func (w *Walk) IsNew() bool {
	return w.newest == nil || w.newest.observeOnly || w.unfound
}

// Full reports whether the conversation carries as much as it may.
func (w *Walk) Full() bool {
	return w.count >= w.entries.ledger.cfg.MaxBlocks || w.tokens >= w.entries.ledger.cfg.MaxTokens
}

// Fits reports whether the conversation may carry b as well.
func (w *Walk) Fits(b fence.Block) bool {
	return w.tokens+tokensOf(b) <= w.entries.ledger.cfg.MaxTokens
}

// Conversation returns the id of the request's conversation: the one that it
// names, else the one that the ledger knows its messages by. Otherwise it asks
// began for the conversation's first turn and whether an answer follows it:
// with history the first turn names the conversation, without one it is new and
// gets the random name. Where the entries can't be read the first turn names it
// in both cases, or a retry would be another turn.
func (w *Walk) Conversation(began func() (first int, history bool), random func() string) string {
	switch {
	case w.Named != "":
		return w.Named
	case w.Known != "":
		return w.Known
	}
	first, history := began()
	if history || w.blind {
		return chainID(w.Chain[first])
	}
	return newPrefix + random()
}

// TurnKey identifies the newest turn in its conversation. It shares the memory
// of conversation where that is named by the same turn.
func (w *Walk) TurnKey(conversation string) string {
	h := w.newestHash()
	if w.turn < 0 {
		h = w.origin.at.newest
	}
	var text [hexHashLen]byte
	b := appendHexHash(text[:0], h)
	if rest, ok := strings.CutPrefix(conversation, chainPrefix); ok && rest == string(b) {
		return rest
	}
	return string(b)
}

// newestHash is zero where the upstream holds the newest turn.
func (w *Walk) newestHash() Hash {
	if w.turn < 0 {
		return Hash{}
	}
	return w.Chain[w.turn]
}

// Enter records in as the way in which the newest turn is sent, unless the turn
// is replayed. If another request has entered the same turn in the meantime,
// both are one turn: duplicate is what that request inserts. stale reports that
// a memory of the scope was forgotten since the walk, in which case in must not
// be inserted.
func (w *Walk) Enter(in Injection, observeOnly bool) (duplicate *Injection, stale bool) {
	foundNow := w.unfound && in.Block.Text != ""
	if w.newest != nil && (!w.newest.observeOnly || observeOnly) && !foundNow {
		w.sent = w.newest
		return nil, false
	}
	window := w.entries.ledger.cfg.ReplayWindow
	if w.loop {
		window = -1
	}
	v := &variant{Injection: in, observeOnly: observeOnly}
	other, its, stale := w.entries.write(w.newestHash(), v, w.Named, window, w.forgets)
	if other != nil {
		w.sent = other
		return &its, stale
	}
	w.written, w.sent = v, v
	return nil, stale
}

// Moved records that the i-th replay goes to another placement from now on.
func (w *Walk) Moved(i int, p dialect.Placement) {
	if !w.recording() {
		return
	}
	w.entries.move(w.Replays[i].at, w.Replays[i].variant, p)
}

// Confirm records that the upstream has accepted the request. Only from here on
// is anything of it stored: a credential that no upstream has accepted leaves
// nothing on the disk.
func (w *Walk) Confirm() {
	if w.recording() {
		w.entries.confirm(w.newestHash(), w.sent, w.Replays)
		w.aliasThread()
	}
}

// ClearReplays removes the replayed blocks: the conversation continues without
// them.
func (w *Walk) ClearReplays() {
	if !w.recording() {
		return
	}
	for _, r := range w.Replays {
		w.entries.clear(r.at, r.variant)
	}
}

// Reject records that the upstream was sent the request without any block. It
// has seen the bare conversation, so that is what later requests must repeat.
func (w *Walk) Reject() {
	w.ClearReplays()
	if w.recording() && w.written != nil {
		w.entries.clear(w.newestHash(), w.written)
	}
}

// Stored waits until what the request inserts at its newest turn is in the
// journal, so that later requests can repeat it whatever happens to this
// process. It waits for at most limit, and not at all while the journal is
// behind or there is none. It reports false if it gave up. Call it after
// Confirm.
func (w *Walk) Stored(limit time.Duration) bool {
	if !w.recording() || w.sent == nil || w.entries.ledger.store == nil {
		return true
	}
	st := w.entries.ledger.store
	b, late := w.batch()
	if late {
		return false
	} else if b == nil {
		return true
	}
	if !b.isDone() {
		runtime.Gosched() // as a rule the journal is written by then
	}
	if !b.isDone() {
		if st.behind.Load() {
			return false
		}
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case <-b.done:
		case <-timer.C:
			st.behind.Store(true)
			return false
		}
	}
	if !b.failed && st.behind.Load() {
		st.behind.Store(false)
	}
	return !b.failed
}

// batch returns the batch of the journal that the newest turn is in, nil if it
// need not be awaited. late reports that it did not get into the journal.
func (w *Walk) batch() (b *batch, late bool) {
	s := w.entries
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := w.sent; v.Block.Text != "" && !v.observeOnly {
		return v.batch, v.late || v.unsaved
	}
	return nil, false
}

func (w *Walk) recording() bool { return w.entries != nil && !w.peek }

// Recording reports whether Confirm has any effect.
func (w *Walk) Recording() bool { return w.recording() }

// Ambiguous reports whether the newest turn was sent in other ways as well, so
// that its answer is needed to tell which of them a later request continues.
func (w *Walk) Ambiguous() bool { return w.written != nil && w.written.ambiguous }

// HasAnswer reports whether turn i is known to have been answered with text.
func (w *Walk) HasAnswer(i int) bool {
	s := w.entries
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[w.Chain[i]]
	return e != nil && slices.ContainsFunc(e.variants, func(v *variant) bool { return v.answer.text != 0 })
}

// Sent identifies the way in which a request's newest turn was sent. It
// outlives the Walk; the zero Sent is none.
type Sent struct {
	entries *Entries
	at      Hash
	variant *variant
}

// Sent returns what Enter recorded.
func (w *Walk) Sent() Sent {
	if w.sent == nil {
		return Sent{}
	}
	return Sent{w.entries, w.newestHash(), w.sent}
}

// NoteAnswer records the answer, by which requests that continue this one are
// recognised. It may be called from any goroutine.
func (s Sent) NoteAnswer(r dialect.Reply) {
	if s.variant != nil {
		s.entries.noteAnswer(s.at, s.variant, markOf(r))
	}
}
