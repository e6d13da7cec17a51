package ledger

import (
	"container/list"
	"slices"
)

// Rough heap costs, for the byte bound.
const (
	groupOverhead   = 768
	variantOverhead = 256
)

func (k groupKey) size() int64 {
	return groupOverhead + int64(len(k.scope.Tenant)+len(k.scope.App)+len(k.scope.Project)+len(k.scope.User))
}

func (v *variant) size() int64 {
	return variantOverhead + int64(len(v.Conversation)+len(v.Block.Text)+96*len(v.Block.Spans)+len(v.answer.call))
}

// account adds n bytes to s and, over the bound, evicts the least recently used
// groups. Needs l.mu.
func (l *Ledger) account(s *Entries, n int64) {
	s.bytes += n
	l.bytes += n
	for l.bytes > l.cfg.MaxBytes && l.recent.Len() > 1 {
		l.evict(l.recent.Back())
	}
}

// evict drops a group from memory. What is not stored yet is with the writer.
// Needs l.mu.
func (l *Ledger) evict(e *list.Element) {
	s := e.Value.(*Entries)
	l.recent.Remove(e)
	delete(l.groups, s.key)
	l.bytes -= s.bytes
	s.bytes = 0
}

// charge is account for a caller that holds s.mu. A group that has been evicted
// no longer counts. One that is too large loses its least recently used
// entries, a quarter at a time.
func (s *Entries) charge(n int64) {
	if s.book(n) > s.ledger.cfg.maxGroup() && n > 0 {
		s.book(-shrink(s.entries))
	}
}

// book returns the bytes of the group.
func (s *Entries) book(n int64) int64 {
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.groups[s.key]; ok && e.Value == s {
		l.account(s, n)
	}
	return s.bytes
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
