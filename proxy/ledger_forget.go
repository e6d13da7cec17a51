package proxy

import (
	"slices"

	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// forget takes the lines of these memories out of every block of the scope. Privacy beats the cache: of what memory
// holds only a part of, the store keeps no more than that part.
func (l *ledger) forget(s *scopeLedger, ids map[string]struct{}) {
	l.forgets.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgets++
	changed, freed := false, int64(0)
	for _, e := range s.entries {
		for _, v := range e.variants {
			if !slices.ContainsFunc(v.block.Spans, func(sp fence.Span) bool { _, ok := ids[sp.ID]; return ok }) {
				continue
			}
			freed += v.size()
			v.block = v.block.Without(ids)
			freed -= v.size()
			changed = true
		}
	}
	l.charge(s, -freed)
	if (changed || s.partial) && l.store != nil && s.confirmed {
		l.store.replace(s.scope, s.entries, l.cfg.TTL)
		s.partial = false
	}
}

// erase drops a scope from memory and from the store. A request that is under way keeps its entries to itself.
func (l *ledger) erase(scope storage.Scope) {
	l.forgets.Add(1)
	l.mu.Lock()
	var s *scopeLedger
	if e, ok := l.scopes[scope]; ok {
		s = e.Value.(*scopeLedger)
		l.drop(e)
	}
	l.mu.Unlock()
	if s != nil {
		s.mu.Lock()
		s.gone = true
		clear(s.entries)
		s.mu.Unlock()
	}
	if l.store != nil {
		l.store.replace(scope, nil, l.cfg.TTL) // also what is being written at this moment
	}
}

// outlived: s was evicted while a request still uses it, and something was forgotten since. Nobody told s.
func (l *ledger) outlived(s *scopeLedger) bool {
	if l.forgets.Load() == s.born {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.scopes[s.scope]
	return !ok || e.Value != s
}
