package proxy

import (
	"cmp"
	"container/list"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// LedgerConfig bounds what is inserted and remembered of it.
type LedgerConfig struct {
	// TTL of an entry from its last use.
	TTL time.Duration
	// ReplayWindow: the same newest turn within it is a retry and gets the same bytes.
	ReplayWindow time.Duration
	// MaxBlocks and MaxTokens (a token is two bytes of block) bound what one conversation carries. At the bound nothing
	// new is added; what stands is never taken out of a live conversation.
	MaxBlocks int
	MaxTokens int
	// MaxBytes bounds the entries in memory over all scopes: scopes that were not used for a minute go first, and are
	// loaded again when they come back; where all are busy, those that hold more than an equal share lose their least
	// recently used turns, which are replayed no more; and where they are so many that a share is a few turns, the scopes
	// that were not used for longest go.
	MaxBytes int64
}

// DefaultLedgerConfig: a day, a minute, and a quarter of a small context window.
func DefaultLedgerConfig() LedgerConfig {
	return LedgerConfig{TTL: 24 * time.Hour, ReplayWindow: time.Minute, MaxBlocks: 32, MaxTokens: 8000, MaxBytes: 32 << 20}
}

// Validate reports all problems, each with its key.
func (c LedgerConfig) Validate() error {
	var errs []error
	check := func(ok bool, msg string) {
		if !ok {
			errs = append(errs, errors.New(msg))
		}
	}
	check(c.TTL >= time.Minute, "ttl: must be at least 1m")
	check(c.ReplayWindow >= 0 && c.ReplayWindow <= c.TTL, "replayWindow: must be between 0 and ttl")
	check(c.MaxBlocks >= 1, "maxBlocks: must be at least 1")
	check(c.MaxTokens >= 1, "maxTokens: must be at least 1")
	check(c.MaxBytes >= 1<<20, "maxBytes: must be at least 1048576")
	return errors.Join(errs...)
}

// chainHash names a position in a conversation: it is over the scope and every message up to there.
type chainHash = xxh3.Uint128

func chainText(h chainHash) string {
	var text [chainTextLen]byte
	return string(appendChainText(text[:0], h))
}

// chainTextLen is the length of a chainText.
const chainTextLen = 2 * 16

func appendChainText(dst []byte, h chainHash) []byte {
	b := h.Bytes()
	return hex.AppendEncode(dst, b[:])
}

// chain walks the messages of req and returns the hash after each of them. A system prompt, beside the messages (system,
// instructions) or before all others, is no part of it: agents change theirs between turns, which would drop every entry. See
// docs/dialects.md. It stands in room where that is large enough.
func chain(seed chainHash, req *dialect.Request, room []chainHash) []chainHash {
	out := slices.Grow(room[:0], len(req.Messages))[:len(req.Messages)]
	h, began := seed, false
	for i := range req.Messages {
		if began = began || req.Messages[i].Role != dialect.RoleSystem; began {
			h = linked(h, req.Messages[i].Hash)
		}
		out[i] = h
	}
	return out
}

// leading is a hash over the system messages before all others, zero where there are none. The turns of two requests that differ in
// them alone are two, though both stand at one place: one may be a title of what the other answers.
func leading(req *dialect.Request) (h chainHash) {
	for i := range req.Messages {
		if req.Messages[i].Role != dialect.RoleSystem {
			break
		}
		h = linked(h, req.Messages[i].Hash)
	}
	return h
}

// linked is the hash behind m in a chain whose hash before it is h.
func linked(h, m chainHash) chainHash {
	var b [32]byte
	binary.BigEndian.PutUint64(b[0:], h.Hi)
	binary.BigEndian.PutUint64(b[8:], h.Lo)
	binary.BigEndian.PutUint64(b[16:], m.Hi)
	binary.BigEndian.PutUint64(b[24:], m.Lo)
	return xxh3.Hash128(b[:])
}

// ledger remembers what was inserted at which turn, so that later requests of the conversation carry the same bytes and
// the provider's prompt cache keeps its prefix. Entries live in memory per scope; a writer keeps them in the store.
type ledger struct {
	cfg   LedgerConfig
	store *ledgerStore // nil = memory only
	now   func() time.Time

	forgets atomic.Int64 // times that something was forgotten or erased, of any scope

	mu     sync.Mutex
	scopes map[storage.Scope]*list.Element // of *scopeLedger
	recent *list.List                      // front = most recently used
	bytes  int64
}

// scopeLedger is one user's entries. Its fields are guarded by mu; ledger.mu may be taken while holding it, never the
// other way round.
type scopeLedger struct {
	scope  storage.Scope
	loaded chan struct{} // closed when load has ended; err is set then
	err    error
	asked  time.Time // when it was used last; guarded by ledger.mu
	began  time.Time // when its load did
	born   int64     // forgets when it was made
	seed   sync.Once
	start  chainHash // of the scope's chains, once seed has run

	mu      sync.Mutex
	entries map[chainHash]*entry // set adds to them
	marks   marks
	bytes   int64
	swept   time.Time
	forgets int64 // how often some of its memories were forgotten
	// gone: the scope was erased; nothing of it is stored any more.
	gone bool
	// confirmed: an upstream has accepted a request of this scope, or the store knows it. Before, nothing is stored.
	confirmed bool
	// partial: blocks have left memory that a stored segment may still hold. What is forgotten next may stand in one of
	// them, and would be replayed after a restart.
	partial bool
}

// entry is what is known of one turn, up to maxVariants ways in which it was sent, or of one position.
type entry struct {
	variants []*variant  // in order of creation
	first    [1]*variant // room for them: most turns have one
	at       *position   // nil = the entry is a turn's
}

func (e *entry) size() (n int64) {
	for _, v := range e.variants {
		n += v.size()
	}
	if e.at != nil {
		n += e.at.size()
	}
	return n
}

const maxVariants = 4

// variant is one way in which a turn was sent: with this block, in this conversation.
type variant struct {
	conv      string
	placement dialect.Placement
	block     fence.Block // Text "" = none: nothing goes here, ever
	next      chainHash   // hash of the message that followed; zero = not seen yet
	created   time.Time
	used      time.Time
	ghost     bool // only its conversation counts: never replayed, never stored (observe mode)
	fresh     bool // the writer has not been told of it: no request with it has been accepted
	answer    answerMark
	taken     bool     // an upstream has accepted a request with it
	rival     bool     // it was not the turn's only one
	of        *variant // what this is a copy of, nil = it is none
}

func newLedger(cfg LedgerConfig, store *ledgerStore, now func() time.Time) *ledger {
	if store != nil {
		store.fit(cfg.MaxBytes)
	}
	return &ledger{cfg: cfg, store: store, now: now, scopes: map[storage.Scope]*list.Element{}, recent: list.New()}
}

// of returns the scope's entries, starting to load them where they are not in memory. Wait on loaded before use.
func (l *ledger) of(scope storage.Scope) *scopeLedger {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.scopes[scope]; ok {
		s := e.Value.(*scopeLedger)
		if !s.failed() {
			s.asked = l.now()
			l.recent.MoveToFront(e)
			return s
		}
		l.drop(e) // load again
	}
	s := &scopeLedger{scope: scope, asked: l.now(), began: time.Now(), born: l.forgets.Load(), loaded: make(chan struct{}), entries: map[chainHash]*entry{}}
	l.scopes[scope] = l.recent.PushFront(s)
	l.account(s, scopeSize(scope))
	if l.store == nil {
		close(s.loaded)
	} else {
		l.store.load(l, s)
	}
	return s
}

// chainStart is where the scope's chains begin: nobody without the secret can compute them.
func (s *scopeLedger) chainStart(secret []byte) chainHash {
	s.seed.Do(func() {
		m := hmac.New(sha256.New, secret)
		_, _ = m.Write(appendParts(nil, "remora chain", s.scope.Tenant, s.scope.App, s.scope.Project, s.scope.User))
		s.start = xxh3.Hash128(m.Sum(nil))
	})
	return s.start
}

func (s *scopeLedger) failed() bool {
	select {
	case <-s.loaded:
		return s.err != nil
	default:
		return false
	}
}

// replayed is a block that stands at an earlier turn, or at the newest.
type replayed struct {
	turn      int // index into req.Messages; -1 = the upstream holds it
	at        chainHash
	placement dialect.Placement
	block     fence.Block
	variant   *variant
}

// walk is what the ledger knows about a request.
type walk struct {
	chain  []chainHash
	blocks []replayed
	// conv is the conversation that the chain tells, "" where it tells none.
	conv string
	// newest is the variant to replay at the newest turn; nil = the turn is new here.
	newest *variant
	// count and tokens are of all blocks that the conversation carries before the newest turn, with those that the
	// upstream holds; heldTurns and heldIDs (of memories) are what it holds.
	count, tokens int
	heldTurns     map[chainHash]struct{}
	heldIDs       map[string]struct{}
	forgets       int64 // the scope's at that time
}

// full says whether the conversation carries as much as it may.
func (c LedgerConfig) full(w walk) bool { return w.count >= c.MaxBlocks || w.tokens >= c.MaxTokens }

// walk finds what to replay. named is the conversation that the request names, or "". peek: the request is no part of
// the conversation and leaves no trace.
func (l *ledger) walk(s *scopeLedger, seed chainHash, req *dialect.Request, room []chainHash, named string, peek bool) walk {
	w := walk{chain: chain(seed, req, room)}
	now := l.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.forgets = s.forgets
	add := func(i int, v *variant) {
		if !peek {
			l.touch(s, w.chain[i], v, now)
		}
		if v.block.Text != "" && !v.ghost {
			w.blocks = append(w.blocks, replayed{i, w.chain[i], v.placement, v.block, v})
			if i < req.Turn {
				w.count++
				w.tokens += tokensOf(v.block)
			}
		}
	}
	// The newest entry on the chain tells the conversation best: its hash is over everything before it.
	conv := named
	first := req.Turn // the first turn with an entry, as far as is known
	for i := req.Turn; i >= 0 && conv == ""; i-- {
		if req.Messages[i].Role == dialect.RoleUser {
			e := s.at(w.chain[i])
			if e != nil {
				first = i
			}
			conv = e.tells(now, l.cfg.TTL)
		}
	}
	if conv != "" { // not all were looked at
		first = 0
	}
	for i := first; i < req.Turn; i++ {
		if req.Messages[i].Role != dialect.RoleUser {
			continue
		}
		if v := l.follow(s, w.chain[i], req, i, conv, named, now, peek); v != nil {
			add(i, v)
			w.conv = v.conv
		}
	}
	switch {
	case req.Turn < 0:
	case req.Turn+1 < len(req.Messages):
		w.newest = l.follow(s, w.chain[req.Turn], req, req.Turn, conv, named, now, peek)
	default:
		w.newest = s.at(w.chain[req.Turn]).retry(named, cmp.Or(named, w.conv), now, l.cfg.ReplayWindow)
	}
	if w.newest != nil {
		add(req.Turn, w.newest)
		w.conv = w.newest.conv
	}
	return w
}

func tokensOf(b fence.Block) int { return (len(b.Text) + 1) / 2 }

// tells is the conversation that this entry tells a request that names none: that of its variants, of those whose requests named
// none either if there are any. Where these are of several it is follow that tells.
func (e *entry) tells(now time.Time, ttl time.Duration) string {
	if e == nil {
		return ""
	}
	for _, any := range [...]bool{false, true} {
		conv := ""
		for _, v := range e.variants {
			switch {
			case now.Sub(v.used) > ttl || v.conv == conv || !any && !unnamed(v.conv):
			case conv != "":
				return ""
			default:
				conv = v.conv
			}
		}
		if conv != "" {
			return conv
		}
	}
	return ""
}

// follow picks the variant at h, turn i of req, that the message behind it followed: variants of the conversation before others, for
// a request that names none those of such requests; then one that this message has followed before, or one that nothing has followed yet
// if it was sent since; else the newest, whose bytes were the last to be sent. The pick is bound to the message.
func (l *ledger) follow(s *scopeLedger, h chainHash, req *dialect.Request, i int, conv, named string, now time.Time, peek bool) *variant {
	e := s.at(h)
	if e == nil {
		return nil
	}
	next := req.Messages[i+1].Hash
	pick := func(ours func(v *variant) bool) *variant {
		var exact, open, any *variant
		for _, v := range slices.Backward(e.variants) {
			if now.Sub(v.used) > l.cfg.TTL || !ours(v) {
				continue
			}
			switch {
			case v.next == next && exact == nil:
				exact = v
			case v.next == chainHash{}:
				if open == nil || v.rank(req, i) > open.rank(req, i) {
					open = v
				}
			case any == nil:
				any = v
			}
		}
		if exact != nil && (open == nil || !open.created.After(exact.used) || open.answer.fits(req, i) < 0 ||
			exact.answer.call != "" && exact.answer.fits(req, i) > 0) {
			return exact
		}
		if open != nil {
			return open
		}
		return any
	}
	var v *variant
	if conv != "" {
		v = pick(func(v *variant) bool { return v.conv == conv })
	}
	if v == nil && named == "" {
		v = pick(func(v *variant) bool { return unnamed(v.conv) })
	}
	if v == nil {
		v = pick(func(*variant) bool { return true })
	}
	if v != nil && v.next == (chainHash{}) && !peek {
		v.next = next
		if !v.ghost {
			l.save(s, h)
		}
	}
	return v
}

// retry picks the variant of a request that was sent moments ago and comes again, of the conversation conv. One that names a conversation
// and one that names none are not the same request, but where the ledger tells the latter that conversation.
func (e *entry) retry(named, conv string, now time.Time, window time.Duration) *variant {
	if e == nil {
		return nil
	}
	for _, v := range slices.Backward(e.variants) {
		if now.Sub(v.created) <= window && (v.conv == conv || named == "" && unnamed(v.conv)) {
			return v
		}
	}
	return nil
}

// touch notes a use. The store hears of it at most every eighth of the TTL, to save writes.
func (l *ledger) touch(s *scopeLedger, h chainHash, v *variant, now time.Time) {
	if now.Sub(v.used) > l.cfg.TTL/8 && !v.ghost {
		defer l.save(s, h)
	}
	v.used = now
}

// write adds a variant at h, in memory; confirm stores it. The oldest goes where there are too many. Where another
// request has written one within window, that one stands and a copy is returned. stale: some of the scope was forgotten
// since forgets was noted; the variant may hold what is forgotten, so it is written without its block.
func (l *ledger) write(s *scopeLedger, h chainHash, v *variant, named string, window time.Duration, forgets int64) (twin *variant, stale bool) {
	now := l.now()
	v.created, v.used, v.fresh = now, now, true
	s.mu.Lock()
	defer s.mu.Unlock()
	l.sweep(s, now)
	if stale = s.forgets != forgets || s.gone; stale {
		v.block = fence.Block{}
	}
	e := s.entries[h]
	if e == nil {
		e = &entry{}
		e.variants = e.first[:0]
		s.set(h, e)
	}
	if twin = e.retry(named, v.conv, now, window); twin != nil && (!twin.ghost || v.ghost) {
		stands := *twin // others may change it
		stands.of = twin
		return &stands, stale
	}
	grown := v.size()
	if len(e.variants) >= maxVariants {
		oldest := 0
		for i, o := range e.variants {
			if o.used.Before(e.variants[oldest].used) {
				oldest = i
			}
		}
		grown -= e.variants[oldest].size()
		e.variants = slices.Delete(e.variants, oldest, oldest+1)
		s.partial = true
	}
	if e.variants = append(e.variants, v); len(e.variants) > 1 {
		e.first = [1]*variant{} // they have moved
		v.rival = true
	}
	l.charge(s, grown)
	return nil, stale
}

// move notes that the block of v stands at another place now.
func (l *ledger) move(s *scopeLedger, h chainHash, v *variant, p dialect.Placement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.placement = p
	l.save(s, h)
}

// confirm notes that the upstream has accepted the turn at h, sent as that variant, and stores what the store has not seen: the
// entry at h, the newest turn's, and those of earlier turns whose blocks it carried. It may have been written by a request that was
// not accepted, of which this one is a retry or a successor.
func (l *ledger) confirm(s *scopeLedger, h chainHash, sent *variant, earlier []replayed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = true
	if sent != nil {
		sent.taken = true
	}
	for _, b := range earlier {
		b.variant.taken = true
		if b.variant.fresh {
			l.save(s, b.at)
		}
	}
	if e := s.entries[h]; e != nil && slices.ContainsFunc(e.variants, func(v *variant) bool { return v.fresh }) {
		l.save(s, h)
	}
}

// clear makes v a none-entry: the upstream went on without its block.
func (l *ledger) clear(s *scopeLedger, h chainHash, v *variant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := v.size()
	v.block = fence.Block{}
	s.partial = true
	l.charge(s, v.size()-before)
	l.save(s, h)
}

// sweep drops entries past their TTL, at most once a sixteenth of it. Needs s.mu. The store drops its copies by itself.
func (l *ledger) sweep(s *scopeLedger, now time.Time) {
	if now.Sub(s.swept) < l.cfg.TTL/16 {
		return
	}
	s.swept = now
	freed := int64(0)
	for h, e := range s.entries {
		e.variants = slices.DeleteFunc(e.variants, func(v *variant) bool {
			old := now.Sub(v.used) > l.cfg.TTL
			if old {
				freed += v.size()
			}
			return old
		})
		if e.at != nil && now.Sub(e.at.used) > l.cfg.TTL {
			freed += e.at.size()
			e.at = nil
		}
		if len(e.variants) == 0 && e.at == nil {
			delete(s.entries, h)
		}
	}
	s.partial = s.partial || freed > 0
	l.charge(s, -freed)
}

// save hands the entry at h to the writer. Needs s.mu.
func (l *ledger) save(s *scopeLedger, h chainHash) {
	e := s.entries[h]
	if l.store == nil || !s.confirmed || s.gone || e == nil || l.outlived(s) {
		return
	}
	if e.at == nil && !slices.ContainsFunc(e.variants, func(v *variant) bool { return !v.ghost }) {
		return
	}
	for _, v := range e.variants {
		v.fresh = false
	}
	l.store.put(s.scope, h, e, storage.TimeOf(lastUse(e).Add(l.cfg.TTL)))
}

func lastUse(e *entry) time.Time {
	var t time.Time
	if e.at != nil {
		t = e.at.used
	}
	for _, v := range e.variants {
		if v.used.After(t) {
			t = v.used
		}
	}
	return t
}
