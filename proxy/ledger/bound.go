package ledger

import (
	"container/list"
	"slices"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Rough heap costs, for the byte bound.
const (
	scopeOverhead   = 512
	variantOverhead = 256
)

func scopeSize(s storage.Scope) int64 {
	return scopeOverhead + int64(len(s.Tenant)+len(s.App)+len(s.Project)+len(s.User))
}

func (v *variant) size() int64 {
	return variantOverhead + int64(len(v.Conversation)+len(v.Block.Text)+96*len(v.Block.Spans)+len(v.answer.call))
}

// busyScope: a scope that was used within it is not evicted but cut down.
// Evicting what returns at once would load it over and over.
const busyScope = time.Minute

// minShare is the share of the bound, in bytes, below which scopes are evicted
// even if they are busy: a crowd of users who come once have one turn each, and
// nothing can be cut.
const minShare = 4 << 10

// account adds n bytes to s and, over the bound, evicts the least recently used
// scopes as far as busyScope and minShare allow. Needs l.mu.
func (l *Ledger) account(s *Entries, n int64) {
	s.bytes += n
	l.bytes += n
	for l.bytes > l.cfg.MaxBytes && l.recent.Len() > 1 {
		oldest := l.recent.Back()
		if l.now().Sub(oldest.Value.(*Entries).lastUsed) < busyScope && l.share() >= minShare {
			return
		}
		l.evict(oldest)
	}
}

// evict drops a scope from memory. What is not stored yet is with the writer.
// Needs l.mu.
func (l *Ledger) evict(e *list.Element) {
	s := e.Value.(*Entries)
	l.recent.Remove(e)
	delete(l.scopes, s.scope)
	l.bytes -= s.bytes
	s.bytes = 0
}

// share returns what a scope may hold where all are busy. Needs l.mu.
func (l *Ledger) share() int64 { return l.cfg.MaxBytes / int64(max(len(l.scopes), 1)) }

// charge is account for a caller that holds s.mu. A scope that has been evicted
// no longer counts. Over the bound, scopes above an equal share are cut down by
// a quarter at a time: first the one that grows, then others.
func (s *Entries) charge(n int64) {
	over, large := s.book(n)
	if !over || n <= 0 {
		return
	}
	if large {
		_, _ = s.book(-shrink(s.entries))
		s.partial = true
	}
	s.ledger.cutDown(s)
}

// book reports whether the ledger is over its bound, and whether s holds more
// than its share.
func (s *Entries) book(n int64) (over, large bool) {
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.scopes[s.scope]; ok && e.Value == s {
		l.account(s, n)
		return l.bytes > l.cfg.MaxBytes, s.bytes > l.share()
	}
	return false, false
}

// cutDown keeps the bound where all scopes are busy: those above their share
// are cut down to it, least recently used first. A locked one is in use and
// stays; it is cut when it grows. The caller holds s.mu.
func (l *Ledger) cutDown(s *Entries) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.recent.Back(); e != nil && l.bytes > l.cfg.MaxBytes; e = e.Prev() {
		o := e.Value.(*Entries)
		if o == s || o.bytes <= l.share() || !o.mu.TryLock() {
			continue
		}
		for l.bytes > l.cfg.MaxBytes && o.bytes > l.share() && len(o.entries) > 0 {
			freed := shrink(o.entries)
			o.bytes -= freed
			l.bytes -= freed
			o.partial = true
		}
		o.mu.Unlock()
	}
}

// shrink drops about a quarter of the entries, the least recently used ones,
// and returns their size.
func shrink(entries map[Hash]*entry) int64 {
	var uses []int64 // of a sample: the order of a map has nothing to do with age
	for _, e := range entries {
		if uses = append(uses, e.lastUse().UnixNano()); len(uses) == shrinkSample {
			break
		}
	}
	if len(uses) == 0 {
		return 0
	}
	slices.Sort(uses)
	freed, last := int64(0), uses[len(uses)/4]
	for h, e := range entries {
		if e.lastUse().UnixNano() <= last {
			freed += e.size()
			delete(entries, h)
		}
	}
	return freed
}

const shrinkSample = 1024
