package recall

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/recall/vector"
	"github.com/remora-proxy/remora/storage"
)

// holds reports whether alice's index has a memory.
func holds(e *Engine, id string) bool {
	v, ok := e.cache.slots.Load(alice)
	if !ok {
		return false
	}
	s := v.(*slot)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.ix == nil {
		return false
	}
	_, ok = s.ix.memoryByHash(s.ix.hash(id))
	return ok
}

// A forgotten memory's vector is removed, whatever is being done with the
// memory at the time.
func TestForgottenVectorsGo(t *testing.T) {
	ms := memories(100)
	without := slices.Delete(slices.Clone(ms), 30, 31)
	gone := ms[30].ID
	forget := func(e *Engine, local *fakeLocal) { // as callers do: the store first
		local.mu.Lock()
		local.ms[alice] = without
		local.mu.Unlock()
		e.Forget(alice, gone)
	}
	t.Run("loaded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			local := newLocal(ms)
			e := vectorEngine(t, newFake(), local)
			settled(t, e, alice)
			forget(e, local)
			wantStored(t, "when Forget returns", local, without)
			settled(t, e, alice)
			wantStored(t, "later", local, without)
		})
	})
	t.Run("not loaded, and embeddings off", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			local := newLocal(ms)
			e := vectorEngine(t, newFake(), local)
			settled(t, e, alice)
			e.Close()
			off := New(patient(), local, nil, nil)
			defer off.Close()
			forget(off, local)
			wantStored(t, "when Forget returns", local, without)
		})
	})
	t.Run("while it is embedded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			local := newLocal(ms)
			em := newFake()
			rounds := 0
			var e *Engine
			started := make(chan struct{})
			em.onDocs = func() {
				<-started
				if rounds++; rounds == 1 {
					forget(e, local) // the first round has the newest 64, 30 is in the second
				} else if rounds == 2 {
					e.Forget(alice, ms[0].ID, ms[99].ID)
				}
			}
			e = vectorEngine(t, em, local)
			close(started)
			settled(t, e, alice)
			wantStored(t, "after two rounds", local, without[1:len(without)-1])
		})
	})
	t.Run("while it is stored", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			local := newLocal(ms)
			done := make(chan struct{})
			var e *Engine
			started := make(chan struct{})
			first := true
			local.onPut = func(rs []storage.Record) error {
				if _, ok := vector.SegmentOf(rs[0].Key); ok && first {
					first = false
					<-started
					go func() { forget(e, local); e.Forget(alice, ms[99].ID, ms[0].ID); close(done) }()
					for holds(e, gone) { // then the index has forgotten it, and Forget waits for this put
						runtime.Gosched() // not asleep: a bubble's clock stands while somebody waits for a mutex
					}
				}
				return nil
			}
			e = vectorEngine(t, newFake(), local)
			close(started)
			<-done
			settled(t, e, alice)
			wantStored(t, "after the put", local, without[1:len(without)-1])
		})
	})
	t.Run("before a crash", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			local := newLocal(ms)
			e := vectorEngine(t, newFake(), local)
			settled(t, e, alice)
			e.Close()
			local.ms[alice] = without // and the process died before Forget
			again := newFake()
			e = vectorEngine(t, again, local)
			settled(t, e, alice)
			wantStored(t, "after the next load", local, without)
			if len(again.seen) != 0 {
				t.Errorf("%d texts embedded again", len(again.seen))
			}
		})
	})
}

// Erasing a scope removes its vectors, and those that are being written.
func TestErasedScopesKeepNoVectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := newLocal(memories(100))
		var e *Engine
		started, dropped := make(chan struct{}), make(chan struct{})
		first := true
		local.onPut = func(rs []storage.Record) error {
			if _, ok := vector.SegmentOf(rs[0].Key); ok && first {
				first = false
				<-started
				local.mu.Lock()
				local.ms[alice] = nil // erased while the vectors are being written
				local.mu.Unlock()
				go func() { e.Drop(alice); close(dropped) }()
				for holds(e, memories(1)[0].ID) {
					runtime.Gosched()
				}
			}
			return nil
		}
		e = vectorEngine(t, newFake(), local)
		close(started)
		<-dropped
		time.Sleep(time.Hour)
		wantStored(t, "after Drop", local, nil)
		if s := e.Stats(); s.Vectors.Held != 0 || s.Bytes != 0 {
			t.Errorf("held: %+v", s)
		}
	})
}

// When the limit is reached, memories that wait for a vector are dropped only
// if they are older than those that keep theirs. A round of older memories that
// ends late drops none of those that came meanwhile.
func TestWaitingNewestAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		em := newFake()
		em.dim = 512
		cfg := patient()
		cfg.MaxBytes, cfg.MaxScopeBytes = 2<<20, 3<<19
		cfg.Vectors.Embedder, cfg.Vectors.Redact = em, same
		all := memories(2200)
		var e *Engine
		started, added := make(chan struct{}), 2000
		em.onDocs = func() {
			<-started
			for range min(10, len(all)-added) { // in every round, so in the one that reaches the limit
				e.Add(alice, all[added].Provenance.Turn, all[added:added+1])
				added++
			}
		}
		e = vectorEngineOf(t, cfg, newLocal(all[:2000]))
		close(started)
		settled(t, e, alice)
		if s := e.Stats(); added == 2000 || s.Vectors.Omitted == 0 || s.Bytes > cfg.MaxScopeBytes+slotOverhead {
			t.Fatalf("%+v, want the limit reached", s)
		}
		v, _ := e.cache.slots.Load(alice)
		s := v.(*slot)
		lost := 0
		for _, m := range all[2000:added] {
			if _, ok := s.vec.all.Find(s.ix.hash(m.ID)); !ok {
				lost++
			}
		}
		if ok := s.vec.all.Knows(s.ix.hash(all[0].ID)); ok || lost > 0 {
			t.Errorf("%d of the %d newest have no vector; the oldest has one: %v", lost, added-2000, ok)
		}
	})
}

// Vectors count for the size of a scope and for eviction. In a scope that
// exceeds its limit the newest memories have vectors.
func TestVectorsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := memories(2000)
		em := newFake()
		em.dim = 512
		cfg := patient()
		cfg.MaxBytes, cfg.MaxScopeBytes = 2<<20, 3<<19
		cfg.Vectors.Embedder, cfg.Vectors.Redact = em, same
		local := newLocal(ms)
		e := vectorEngineOf(t, cfg, local)
		settled(t, e, alice)
		check := func(when string) {
			s := e.Stats()
			v, _ := e.cache.slots.Load(alice)
			if words := v.(*slot).ix.bytes(); s.Bytes != words+s.Vectors.Held+slotOverhead {
				t.Errorf("%s: counted %d bytes, want %d of words and %d of vectors", when, s.Bytes, words, s.Vectors.Held)
			}
			if s.Bytes > cfg.MaxScopeBytes+slotOverhead || s.Vectors.Held == 0 || s.Vectors.Held >= s.Bytes || s.Vectors.Omitted == 0 {
				t.Errorf("%s: %+v, want at most %d", when, s, cfg.MaxScopeBytes)
			}
		}
		check("embedded")
		has := func(m storage.Memory) bool {
			v, _ := e.cache.slots.Load(alice)
			s := v.(*slot)
			s.mu.RLock()
			defer s.mu.RUnlock()
			_, ok := s.vec.all.Find(s.ix.hash(m.ID))
			return ok
		}
		if !has(ms[1999]) || has(ms[0]) {
			t.Error("want the newest to have vectors and the oldest none")
		}
		more := memories(2300)
		for i := 2000; i < 2300; i++ {
			e.Add(alice, more[i].Provenance.Turn, more[i:i+1])
			if i%50 == 0 {
				settled(t, e, alice)
			}
		}
		settled(t, e, alice)
		check("grown")
		for _, m := range more[2200:] {
			if !has(m) {
				t.Errorf("%s, of the newest, has no vector", m.ID)
			}
		}
		bob := alice
		bob.User = "bob"
		local.ms[bob] = ms
		if _, err := e.Recall(t.Context(), Request{Scope: bob, Newest: "load"}); err != nil {
			t.Fatal(err)
		}
		settled(t, e, bob)
		time.Sleep(time.Second)
		if s := e.Stats(); s.Bytes > cfg.MaxBytes || s.Evicted == 0 {
			t.Errorf("two scopes: %+v, want at most %d and one evicted", s, cfg.MaxBytes)
		}
	})
}
