package proxy

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
	return variantOverhead + int64(len(v.conv)+len(v.block.Text)+96*len(v.block.Spans)+len(v.answer.call))
}

// account adds n bytes to s and, over the bound, evicts scopes that were not used lately, the oldest first, or where
// there is nothing to cut down, whichever were not used for longest. Needs l.mu.
func (l *ledger) account(s *scopeLedger, n int64) {
	s.bytes += n
	l.bytes += n
	for l.bytes > l.cfg.MaxBytes && l.recent.Len() > 1 {
		oldest := l.recent.Back()
		if l.now().Sub(oldest.Value.(*scopeLedger).asked) < busyScope && l.share() >= leastShare {
			return
		}
		l.drop(oldest)
	}
}

// busyScope: a scope used within it is not evicted but cut down. Evicting what comes back at once would load it over and
// over.
const busyScope = time.Minute

// leastShare is the share of the bound, in bytes, below which scopes are not cut down but evicted, however lately they were
// used: users that come once, in crowds, have a turn each, and there is nothing to cut.
const leastShare = 4 << 10

// drop takes a scope out of memory. Needs l.mu. What is not stored yet is with the writer.
func (l *ledger) drop(e *list.Element) {
	s := e.Value.(*scopeLedger)
	l.recent.Remove(e)
	delete(l.scopes, s.scope)
	l.bytes -= s.bytes
	s.bytes = 0
}

// charge is account for a caller that holds s.mu. A scope that was evicted meanwhile no longer counts. Over the bound,
// scopes that hold more than an equal share are cut down, by a quarter at a time: the one that grows, then others.
func (l *ledger) charge(s *scopeLedger, n int64) {
	over, large := l.book(s, n)
	if !over || n <= 0 {
		return
	}
	if large {
		_, _ = l.book(s, -shrink(s.entries))
		s.partial = true
	}
	l.cut(s)
}

// book says whether the ledger is over its bound, and whether s holds more than its share.
func (l *ledger) book(s *scopeLedger, n int64) (over, large bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.scopes[s.scope]; ok && e.Value == s {
		l.account(s, n)
		return l.bytes > l.cfg.MaxBytes, s.bytes > l.share()
	}
	return false, false
}

// share is what a scope may hold where all are busy. Needs l.mu.
func (l *ledger) share() int64 { return l.cfg.MaxBytes / int64(max(len(l.scopes), 1)) }

// cut keeps the bound where all scopes are busy: the least recently used of those that hold more than their share are cut down
// to it first. One that is locked is in use and stays as it is: it is cut when it grows. The caller holds s.mu.
func (l *ledger) cut(s *scopeLedger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.recent.Back(); e != nil && l.bytes > l.cfg.MaxBytes; e = e.Prev() {
		o := e.Value.(*scopeLedger)
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

// shrink drops about a quarter of the entries, those that were used longest ago, and returns their size.
func shrink(entries map[chainHash]*entry) int64 {
	var uses []int64 // of a sample: where an entry stands in the map has nothing to do with its age
	for _, e := range entries {
		if uses = append(uses, lastUse(e).UnixNano()); len(uses) == shrinkSample {
			break
		}
	}
	if len(uses) == 0 {
		return 0
	}
	slices.Sort(uses)
	freed, last := int64(0), uses[len(uses)/4]
	for h, e := range entries {
		if lastUse(e).UnixNano() <= last {
			freed += e.size()
			delete(entries, h)
		}
	}
	return freed
}

const shrinkSample = 1024
