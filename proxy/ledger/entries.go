package ledger

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// Entries are the entries of one scope. mu guards its fields unless noted;
// Ledger.mu may be taken while holding mu, never the other way round.
type Entries struct {
	ledger      *Ledger
	scope       storage.Scope
	loaded      chan struct{} // closed when loading has ended; err is set then
	err         error
	loadStarted time.Time
	lastUsed    time.Time // guarded by Ledger.mu
	created     int64     // Ledger.forgets at creation
	seedOnce    sync.Once
	seed        Hash // of the scope's chains, once seedOnce has run

	mu       sync.Mutex
	entries  map[Hash]*entry // set adds to them
	filter   filter
	bytes    int64 // guarded by Ledger.mu
	swept    time.Time
	forgets  int64        // number of forget calls
	saves    int          // since the segments were last rewritten
	repaired atomic.Int64 // 0 = no entry is a repair
	erased   bool         // nothing of the scope is stored any more
	// confirmed: an upstream has accepted a request of this scope, or the store
	// knows it. Nothing is stored before.
	confirmed bool
	// partial: blocks have left memory that a stored segment may still hold. A
	// memory forgotten next may be in one of them and would be replayed after a
	// restart, so the store is rewritten then.
	partial bool
}

// entry is what is known about one turn, with up to maxVariants ways in which
// it was sent, or about one position or repair.
type entry struct {
	variants []*variant  // in order of creation
	first    [1]*variant // room for them: most turns have one
	position *position   // nil for a turn
	repair   *repair     // nil for a turn
}

func (e *entry) size() (n int64) {
	for _, v := range e.variants {
		n += v.size()
	}
	if e.position != nil {
		n += e.position.size()
	}
	if e.repair != nil {
		n += repairSize
	}
	return n
}

func (e *entry) lastUse() time.Time {
	var t time.Time
	if e.position != nil {
		t = e.position.used
	}
	if e.repair != nil {
		t = e.repair.used
	}
	for _, v := range e.variants {
		if v.used.After(t) {
			t = v.used
		}
	}
	return t
}

func newEntries(l *Ledger, scope storage.Scope) *Entries {
	return &Entries{
		ledger: l, scope: scope, loadStarted: time.Now(), created: l.forgets.Load(),
		loaded: make(chan struct{}), entries: map[Hash]*entry{},
	}
}

// Await waits until the entries are loaded. It returns ctx's error if that ends
// first, and the store's if loading failed.
func (s *Entries) Await(ctx context.Context) error {
	select {
	case <-s.loaded:
	default:
		select {
		case <-s.loaded:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.err
}

// Loading reports whether the entries are still being loaded, and since when.
func (s *Entries) Loading() (since time.Time, loading bool) {
	select {
	case <-s.loaded:
		return s.loadStarted, false
	default:
		return s.loadStarted, true
	}
}

func (s *Entries) failed() bool {
	select {
	case <-s.loaded:
		return s.err != nil
	default:
		return false
	}
}

func (s *Entries) chainSeed(secret []byte) Hash {
	s.seedOnce.Do(func() { s.seed = chainSeed(secret, s.scope) })
	return s.seed
}

// at returns the entry for h, or nil. Needs s.mu.
func (s *Entries) at(h Hash) *entry {
	if !s.filter.mayContain(h) {
		return nil
	}
	return s.entries[h]
}

// set makes e the entry for h. Needs s.mu.
func (s *Entries) set(h Hash, e *entry) {
	s.entries[h] = e
	if e.repair != nil {
		s.repaired.Add(1)
	}
	s.filter.add(h, s.entries)
}

// touch records a use. The store learns of it at most every eighth of the TTL,
// to save writes. Needs s.mu.
func (s *Entries) touch(h Hash, v *variant, now time.Time) {
	if now.Sub(v.used) > s.ledger.cfg.TTL/8 && !v.observeOnly {
		defer s.save(h)
	}
	v.used = now
}

// write adds a variant at h, in memory; confirm stores it. Beyond maxVariants
// the least recently used one is dropped. If another request wrote one within
// window, v is not added: duplicate is that variant and found a copy of what it
// inserts, which may change later. stale reports that some of the scope was
// forgotten since forgets was read; v may hold such a memory, so it is added
// without its block.
func (s *Entries) write(h Hash, v *variant, named string, window time.Duration, forgets int64) (duplicate *variant, found Injection, stale bool) {
	now := s.ledger.now()
	v.created, v.used, v.unsaved = now, now, true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	if stale = s.forgets != forgets || s.erased; stale {
		v.Block = fence.Block{}
	}
	e := s.entries[h]
	if e == nil {
		e = &entry{}
		e.variants = e.first[:0]
		s.set(h, e)
	}
	if duplicate = e.retry(named, v.Conversation, now, window); duplicate != nil && (!duplicate.observeOnly || v.observeOnly) {
		return duplicate, duplicate.Injection, stale
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
		v.ambiguous = true
	}
	s.charge(grown)
	if v.Block.Text != "" && !v.observeOnly { // while the upstream works; if it refuses, clear says so
		s.save(h)
	}
	return nil, Injection{}, stale
}

// move records that v's block has another placement now.
func (s *Entries) move(h Hash, v *variant, p dialect.Placement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.Placement = p
	s.save(h)
}

// confirm records that the upstream has accepted the turn at h, sent as that
// variant, and stores what the store has not seen: the entry at h and those of
// earlier turns whose blocks the request carried. They may have been written by
// a request that was refused, of which this one is a retry or a successor.
func (s *Entries) confirm(h Hash, sent *variant, earlier []Replay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = true
	if sent != nil {
		sent.accepted = true
	}
	for _, r := range earlier {
		r.variant.accepted = true
		if r.variant.unsaved {
			s.save(r.at)
		}
	}
	if e := s.entries[h]; e != nil && slices.ContainsFunc(e.variants, func(v *variant) bool { return v.unsaved }) {
		s.save(h)
	}
}

// clear removes v's block: the upstream went on without it.
func (s *Entries) clear(h Hash, v *variant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := v.size()
	v.Block = fence.Block{}
	s.partial = true
	s.charge(v.size() - before)
	s.save(h)
}

// noteAnswer records the answer to the turn at h, sent as v.
func (s *Entries) noteAnswer(h Hash, v *variant, m answerMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.at(h); e != nil && slices.Contains(e.variants, v) {
		before := v.size()
		v.answer = m
		s.charge(v.size() - before)
		if len(e.variants) > 1 { // otherwise nothing needs to be told apart
			s.save(h)
		}
	}
}

// forget removes the lines of these memories from every block. If memory holds
// only a part of the scope, the store keeps no more than that part.
func (s *Entries) forget(ids map[string]struct{}) {
	s.ledger.forgets.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgets++
	changed, freed := false, int64(0)
	for _, e := range s.entries {
		for _, v := range e.variants {
			if !slices.ContainsFunc(v.Block.Spans, func(sp fence.Span) bool { _, ok := ids[sp.ID]; return ok }) {
				continue
			}
			freed += v.size()
			v.Block = v.Block.Without(ids)
			freed -= v.size()
			changed = true
		}
	}
	s.charge(-freed)
	if (changed || s.partial) && s.ledger.store != nil && s.confirmed {
		s.ledger.store.replace(s.scope, s.entries, s.ledger.cfg.TTL)
		s.partial = false
	}
}

// sweep drops entries past their TTL, at most once in a sixteenth of it. The
// store expires its own copies. Needs s.mu.
func (s *Entries) sweep(now time.Time) {
	ttl := s.ledger.cfg.TTL
	if now.Sub(s.swept) < ttl/16 {
		return
	}
	s.swept = now
	freed := int64(0)
	for h, e := range s.entries {
		e.variants = slices.DeleteFunc(e.variants, func(v *variant) bool {
			old := now.Sub(v.used) > ttl
			if old {
				freed += v.size()
			}
			return old
		})
		if e.position != nil && now.Sub(e.position.used) > ttl {
			freed += e.position.size()
			e.position = nil
		}
		if e.repair != nil && now.Sub(e.repair.used) > ttl {
			freed += repairSize
			e.repair = nil
		}
		if len(e.variants) == 0 && e.position == nil && e.repair == nil {
			delete(s.entries, h)
		}
	}
	s.partial = s.partial || freed > 0
	s.charge(-freed)
}

// save hands the entry at h to the writer. This is the only way by which a
// single entry reaches the store. Needs s.mu.
func (s *Entries) save(h Hash) {
	e := s.entries[h]
	if s.ledger.store == nil || !s.confirmed || s.erased || e == nil || s.outlived() {
		return
	}
	if e.position == nil && e.repair == nil && !slices.ContainsFunc(e.variants, func(v *variant) bool { return !v.observeOnly }) {
		return
	}
	if s.saves++; s.saves >= compactAt && !s.partial {
		s.saves = 0
		s.ledger.store.compact(s.scope, s.entries, s.ledger.cfg.TTL)
	}
	t := s.ledger.store.put(s.scope, h, e, storage.TimeOf(e.lastUse().Add(s.ledger.cfg.TTL)))
	for _, v := range e.variants {
		if v.unsaved && t != nil {
			v.unsaved, v.ticket = false, t
		}
	}
}

// outlived reports whether s was evicted while a request still uses it and
// something was forgotten since, which s has not seen.
func (s *Entries) outlived() bool {
	l := s.ledger
	if l.forgets.Load() == s.created {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.scopes[s.scope]
	return !ok || e.Value != s
}
