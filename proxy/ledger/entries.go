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

// groupKey names what is kept and loaded together: the entries of a scope's
// conversations that begin alike. root is the hash after their first turn.
type groupKey struct {
	scope storage.Scope
	root  Hash
}

// Entries are the entries of one group. mu guards its fields unless noted;
// Ledger.mu may be taken while holding mu, never the other way round.
type Entries struct {
	ledger  *Ledger
	key     groupKey
	created int64 // Ledger.forgets at creation
	load    *load // nil = there was no need to load. Guarded by Ledger.mu
	begun   bool  // the group was begun here: nothing of it was stored

	mu       sync.Mutex
	entries  map[Hash]*entry // set adds to them
	bytes    int64           // guarded by Ledger.mu
	swept    time.Time
	forgets  int64        // number of forget calls
	saves    int          // since the segments were last rewritten
	repaired atomic.Int64 // 0 = no entry is a repair
	erased   bool         // nothing of the scope is stored any more
	// confirmed: an upstream has accepted a request of this group, or the store
	// knows it. Nothing is stored before.
	confirmed bool
}

// entry is what is known about one turn, with up to maxVariants ways in which
// it was sent, or about one position or repair.
type entry struct {
	variants []*variant  // in order of creation
	first    [1]*variant // room for them: most turns have one
	position *position   // nil for a turn
	repair   *repair     // nil for a turn
	pointer  *pointer    // nil for a turn
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
	if e.pointer != nil {
		n += pointerSize
	}
	return n
}

// over puts e over an older state of its turn. A group that was begun without
// being loaded does not have the variants that were stored before.
func (e *entry) over(older *entry) {
	if older == nil || len(e.variants) == 0 {
		return
	}
	var all []*variant
	for _, v := range older.variants {
		if !slices.ContainsFunc(e.variants, v.same) {
			all = append(all, v)
		}
	}
	all = append(all, e.variants...)
	e.variants = all[max(len(all)-maxVariants, 0):] // more could not be read back
}

// stored reports whether the entry is one for the store: what was only observed
// is not.
func (e *entry) stored() bool {
	return e.position != nil || e.repair != nil || e.pointer != nil || slices.ContainsFunc(e.variants, func(v *variant) bool { return !v.observeOnly })
}

// forget removes the lines of these memories from its blocks.
func (e *entry) forget(ids map[string]struct{}) (changed bool) {
	for _, v := range e.variants {
		if slices.ContainsFunc(v.Block.Spans, func(sp fence.Span) bool { _, ok := ids[sp.ID]; return ok }) {
			v.Block = v.Block.Without(ids)
			changed = true
		}
	}
	return changed
}

func (e *entry) lastUse() time.Time {
	var t time.Time
	if e.position != nil {
		t = e.position.used
	}
	if e.repair != nil {
		t = e.repair.used
	}
	if e.pointer != nil {
		t = e.pointer.used
	}
	for _, v := range e.variants {
		if v.used.After(t) {
			t = v.used
		}
	}
	return t
}

func newEntries(l *Ledger, key groupKey) *Entries {
	return &Entries{ledger: l, key: key, created: l.forgets.Load(), entries: map[Hash]*entry{}}
}

// load is the loading of a group. done is closed at its end; err is set then.
type load struct {
	done chan struct{}
	err  error
}

func newLoad() *load { return &load{done: make(chan struct{})} }

// ended reports whether there is a load, and it has ended.
func (d *load) ended() bool {
	if d == nil {
		return false
	}
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

func (d *load) failed() bool { return d.ended() && d.err != nil }

// await waits until the entries are loaded, if they must be. It returns ctx's
// error if that ends first, and the store's if loading failed.
func (s *Entries) await(ctx context.Context) error {
	d := s.loading()
	if d == nil {
		return nil
	}
	if !d.ended() {
		select {
		case <-d.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return d.err
}

func (s *Entries) loading() *load {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return s.load
}

// isLoading reports whether loading has begun and not ended.
func (s *Entries) isLoading() bool {
	d := s.loading()
	return d != nil && !d.ended()
}

// isLoaded reports whether the entries are all that is stored of the group.
func (s *Entries) isLoaded() bool {
	d := s.loading()
	return d.ended() && d.err == nil
}

// set makes e the entry for h. Needs s.mu.
func (s *Entries) set(h Hash, e *entry) {
	s.entries[h] = e
	if e.repair != nil {
		s.repaired.Add(1)
	}
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
// inserts, which may change later. One that found nothing does not prevent v, if
// that has a block. stale reports that some of the scope was forgotten since
// forgets was read; v may hold such a memory, so it is added without its block.
func (s *Entries) write(h Hash, v *variant, named string, window time.Duration, forgets int64) (duplicate *variant, found Injection, stale bool) {
	now := s.ledger.now()
	v.created, v.used, v.unsaved, v.unfound = now, now, true, v.Block.Text == ""
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
	if duplicate = e.retry(named, v.Conversation, now, window); duplicate != nil && (!duplicate.observeOnly || v.observeOnly) && (!duplicate.unfound || v.Block.Text == "") {
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
	}
	if e.variants = append(e.variants, v); len(e.variants) > 1 {
		e.first = [1]*variant{} // they have moved
		v.ambiguous = true
	}
	s.charge(grown)
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
	v.Block, v.unfound = fence.Block{}, false
	s.charge(v.size() - before)
	s.save(h)
}

// noteAnswer records the answer to the turn at h, sent as v.
func (s *Entries) noteAnswer(h Hash, v *variant, m answerMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[h]; e != nil && slices.Contains(e.variants, v) {
		before := v.size()
		v.answer = m
		s.charge(v.size() - before)
		if len(e.variants) > 1 || !s.begun && !s.isLoaded() { // otherwise nothing needs to be told apart
			s.save(h)
		}
	}
}

// forget removes the lines of these memories from every block. The store is
// told apart from it.
func (s *Entries) forget(ids map[string]struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgets++
	freed := int64(0)
	for _, e := range s.entries {
		before := e.size()
		if e.forget(ids) {
			freed += before - e.size()
		}
	}
	s.charge(-freed)
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
		if e.pointer != nil && now.Sub(e.pointer.used) > ttl {
			freed += pointerSize
			e.pointer = nil
		}
		if len(e.variants) == 0 && !e.stored() {
			delete(s.entries, h)
		}
	}
	s.charge(-freed)
}

// save hands the entry at h to the writer. This is the only way by which a
// single entry reaches the store. Needs s.mu.
func (s *Entries) save(h Hash) {
	e := s.entries[h]
	if s.ledger.store == nil || !s.confirmed || s.erased || e == nil || !e.stored() || s.outlived() {
		return
	}
	if s.saves++; s.saves >= compactAt {
		if s.isLoaded() {
			s.saves = 0
			s.ledger.store.compact(s.key, s.entries, s.ledger.cfg.TTL)
		} else {
			s.ledger.load(s) // there may be more than is in memory
		}
	}
	b, kept := s.ledger.store.put(s.key, h, e, storage.TimeOf(e.lastUse().Add(s.ledger.cfg.TTL)))
	for _, v := range e.variants {
		if v.unsaved {
			v.unsaved, v.batch, v.late = false, b, !kept
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
	e, ok := l.groups[s.key]
	return !ok || e.Value != s
}
