package recall

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// known returns the ids of the memories in an index.
func (ix *index) known() map[string]bool {
	ids := map[string]bool{}
	for n := range ix.turns {
		t := &ix.turns[n]
		for i := t.mem; i < t.mem+int32(t.count) && t.flags&turnDead == 0; i++ {
			ids[string(ix.appendID(nil, i))] = true
		}
	}
	return ids
}

// halted returns an engine with alice's memories. Its rebuilds wait until the
// test receives from running.
func halted(t *testing.T, ms []storage.Memory) (*Engine, *digesting) {
	t.Helper()
	src := newDigesting(t, ms)
	e := New(patient(), src, nil, nil)
	t.Cleanup(e.Close)
	if _, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "load"}); err != nil {
		t.Fatal(err)
	}
	resting(t, e)
	e.rebuilder.running <- struct{}{}
	return e, src
}

// A rebuilt index gives the same answers. Memories that were added, replaced or
// forgotten during any step of the rebuild are neither lost nor restored.
func TestRebuiltIndexIsTheSame(t *testing.T) {
	ms := town(3000)
	e, src := halted(t, ms)
	want := map[string]bool{}
	for _, m := range ms {
		want[m.ID] = true
	}
	forget := func(ms ...storage.Memory) {
		var ids []string
		for _, m := range ms {
			ids = append(ids, m.ID)
			delete(want, m.ID)
		}
		if _, err := src.Delete(t.Context(), alice, ids...); err != nil {
			t.Fatal(err)
		}
		e.Forget(alice, ids...)
	}
	added := 0
	tell := func(text string) storage.Memory {
		m := said(90_000+added, text)
		added++
		m.ID = storage.TurnMemoryID(m.Provenance.Turn, 0)
		src.put(t, m.Provenance.Turn, m)
		e.Add(alice, m.Provenance.Turn, []storage.Memory{m})
		want[m.ID] = true
		return m
	}
	again := func(m storage.Memory) { // its turn is left with one passage
		m.Text = "It was regenerated: zanzibar."
		src.put(t, m.Provenance.Turn, m)
		e.Add(alice, m.Provenance.Turn, []storage.Memory{m})
		delete(want, storage.TurnMemoryID(m.Provenance.Turn, 1))
	}
	for c := 0; c < 2800; c += 20 { // no conversation loses all it has: an empty one counts in the mean length until the rebuild
		forget(ms[c : c+8]...)
	}
	s := scopeOf(e)
	a := s.rebuild
	if a == nil {
		t.Fatal("no rebuild is waiting")
	}
	forget(ms[1008])
	tell("Before it began: my parrot is called Coco.")
	from := e.rebuilder.begin(s, a)
	forget(ms[1108:1118]...)
	early := tell("While it was made: my tortoise is called Hector.")
	again(ms[2010])
	made := (compactor{from}).fitted(e.cfg.MaxScopeBytes, func() bool { return true })
	for c := 1200; c < 1400; c += 20 {
		forget(ms[c+8 : c+18]...)
	}
	forget(ms[1409]) // one of two passages
	forget(early)
	again(ms[2110])
	left := e.rebuilder.swap(s, a, made, false)
	if len(left) != 16 || s.ix == made {
		t.Fatalf("%d changes to be made before, want 16", len(left))
	}
	late := tell("In the last moment: my goldfish is called Bubbles.")
	for _, c := range left {
		made.apply(c)
	}
	forget(ms[1428])
	again(ms[2210])
	ask := []string{"what is my tortoise called?", "and my parrot and the goldfish Bubbles?", "what about zanzibar?", ms[1510].Text, ms[1119].Text, ms[1219].Text}
	answers := func() (all []Result) {
		for _, q := range ask {
			res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: q, Now: ms[2999].EventTime.Std(), TopK: 20, Explain: true})
			if err != nil {
				t.Fatal(err)
			}
			res.Took = 0
			all = append(all, res)
		}
		return all
	}
	before, tally := answers(), s.saved.tally.digest
	if d := cmp.Diff(want, s.ix.known()); d != "" {
		t.Fatalf("the answering index has (-want +got): %s", d)
	}
	if left := e.rebuilder.swap(s, a, made, false); left != nil || s.ix != made || s.rebuild != nil {
		t.Fatalf("not swapped: %d changes left", len(left))
	}
	<-e.rebuilder.running
	resting(t, e)
	if d := cmp.Diff(want, s.ix.known()); d != "" {
		t.Errorf("the rebuilt index has (-want +got): %s", d)
	}
	if d := cmp.Diff(before, answers(), aboutTheSame); d != "" {
		t.Errorf("answers before (-) and after (+): %s", d)
	}
	if digest, err := src.Digest(t.Context(), alice); err != nil || digest != tally || digest != s.saved.tally.digest {
		t.Errorf("digest %v, before %v, of the store %v, %v", s.saved.tally.digest, tally, digest, err)
	}
	if got, want := e.Stats().Bytes, s.ix.bytes()+slotOverhead; got != want || made.dead > 150 {
		t.Errorf("%d bytes counted, want %d; %d turns dead", got, want, made.dead)
	}
	wantIDs(t, "late", recallIDs(t, e, Request{Newest: "Is my goldfish called Bubbles?", TopK: 1}), late.ID)
}

// scopeOf returns alice's slot.
func scopeOf(e *Engine) *slot {
	v, _ := e.cache.slots.Load(alice)
	return v.(*slot)
}

var aboutTheSame = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*math.Abs(a) })

// A scope that is erased or evicted during its rebuild stays so, and does not
// count.
func TestRebuildOfDroppedScope(t *testing.T) {
	for name, end := range map[string]func(*Engine, *slot){
		"erased":  func(e *Engine, _ *slot) { e.Drop(alice) },
		"evicted": func(e *Engine, s *slot) { s.mu.Lock(); defer s.mu.Unlock(); e.cache.evict(s) },
	} {
		for _, stage := range []string{"waits", "begun", "made"} {
			ms := town(3000)
			e, _ := halted(t, ms)
			for _, m := range ms[:1000] {
				e.Forget(alice, m.ID)
			}
			s := scopeOf(e)
			a := s.rebuild
			var made *index
			goOn := func() bool { return s.ready.Load() }
			switch stage {
			case "waits":
				end(e, s)
				if e.rebuilder.begin(s, a) != nil {
					t.Errorf("%s, %s: the rebuild starts", name, stage)
				}
			case "begun":
				from := e.rebuilder.begin(s, a)
				end(e, s)
				if (compactor{from}).fitted(e.cfg.MaxScopeBytes, goOn) != nil {
					t.Errorf("%s, %s: the rebuild continues", name, stage)
				}
			case "made":
				made = (compactor{e.rebuilder.begin(s, a)}).fitted(e.cfg.MaxScopeBytes, goOn)
				end(e, s)
				e.rebuilder.swap(s, a, made, true)
			}
			<-e.rebuilder.running
			for until := time.Now().Add(time.Minute); len(e.rebuilder.running) > 0 && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
			if st := e.Stats(); isLoaded(e, alice) || s.ix != nil || s.rebuild != nil || st.Scopes != 0 || st.Bytes != 0 {
				t.Errorf("%s, %s: %+v, want nothing held", name, stage, st)
			}
		}
	}
}

// A rebuild with too many recorded changes is cancelled, and another starts.
func TestRebuildWithTooManyChanges(t *testing.T) {
	ms := town(3000)
	e, _ := halted(t, ms)
	for _, m := range ms[:1000] {
		e.Forget(alice, m.ID)
	}
	s := scopeOf(e)
	a := s.rebuild
	made := (compactor{e.rebuilder.begin(s, a)}).fitted(e.cfg.MaxScopeBytes, nil)
	a.bytes = e.cfg.MaxScopeBytes/changesShare + 1
	e.Forget(alice, ms[1000].ID)
	if s.rebuild == nil || s.rebuild == a {
		t.Fatal("no other rebuild started")
	}
	if !a.cancelled.Load() || s.rebuild.cancelled.Load() {
		t.Error("the old rebuild continues, or the new one does not")
	}
	if e.rebuilder.swap(s, a, made, true); s.ix == made {
		t.Error("the cancelled rebuild is used")
	}
	<-e.rebuilder.running
	if resting(t, e); s.ix.dead > 0 || s.ix.liveMems != 1999 {
		t.Errorf("%d turns dead, %d memories", s.ix.dead, s.ix.liveMems)
	}
}

// A rebuild that panics leaves the index as it is and is not retried at once.
func TestRebuildThatPanics(t *testing.T) {
	ms := town(3000)
	e, _ := halted(t, ms)
	s := scopeOf(e)
	s.mu.Lock()
	s.ix.words = nil // which reads the assistant's texts
	s.mu.Unlock()
	var ids []string
	for _, m := range ms[:1000] {
		ids = append(ids, m.ID)
	}
	slices.SortFunc(ms[:1000], func(a, b storage.Memory) int { return b.Provenance.Seq - a.Provenance.Seq })
	s.mu.Lock()
	for n := range int32(500) {
		s.ix.remove(n)
	}
	e.rebuilder.refit(s)
	s.mu.Unlock()
	<-e.rebuilder.running
	resting(t, e)
	if got := e.Stats(); got.Failures != 1 || got.Bytes < s.ix.bytes() || s.ix.dead != 500 {
		t.Errorf("%+v, %d turns dead", got, s.ix.dead)
	}
	e.Forget(alice, ids[0]) // unknown by now
	if s.rebuild != nil {
		t.Error("retried at once")
	}
	if got := recallIDs(t, e, Request{Newest: ms[2001].Text, TopK: 1}); len(got) != 1 {
		t.Errorf("recalled %v", got)
	}
}

// Whatever changes during rebuilds, the index has the memories of the store.
func TestRebuildsUnderChanges(t *testing.T) {
	ms := town(4000)
	src := newDigesting(t, ms)
	e := New(patient(), src, nil, nil)
	defer e.Close()
	recallIDs(t, e, Request{Newest: "load"})
	s := resting(t, e)
	first := s.ix
	var mu sync.Mutex // makes a change of the store and of the engine one step
	want := map[string]storage.Memory{}
	for _, m := range ms {
		want[m.ID] = m
	}
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := e.Recall(t.Context(), Request{Scope: alice, Newest: ms[7].Text}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(5, 6))
	ids := slices.Sorted(maps.Keys(want))
	r.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
	rebuilds := 0
	for i, id := range ids[:3000] {
		if i%50 == 0 {
			time.Sleep(2 * time.Millisecond)
		}
		mu.Lock()
		switch {
		case i%5 == 0: // changed
			m := want[id]
			m.Text = fmt.Sprintf("changed %d: %s", i, m.Text)
			src.put(t, "", m)
			e.Add(alice, "", []storage.Memory{m})
			want[id] = m
		default:
			if _, err := src.Delete(t.Context(), alice, id); err != nil {
				t.Fatal(err)
			}
			e.Forget(alice, id)
			delete(want, id)
		}
		mu.Unlock()
		s.mu.RLock()
		if s.ix != first {
			first, rebuilds = s.ix, rebuilds+1
		}
		s.mu.RUnlock()
	}
	stop()
	all.Wait()
	if resting(t, e); s.ix != first {
		rebuilds++
	}
	got := s.ix.known()
	for id, m := range want {
		i, ok := s.ix.memoryOf(id)
		if !ok || !got[id] || s.ix.memory(i, alice).Text != m.Text {
			t.Fatalf("%s: known %v, want %q", id, ok, m.Text)
		}
	}
	if len(got) != len(want) || rebuilds == 0 {
		t.Errorf("%d memories, want %d; %d rebuilds", len(got), len(want), rebuilds)
	}
	if digest, err := src.Digest(t.Context(), alice); err != nil || digest != s.saved.tally.digest {
		t.Errorf("digest %v, of the store %v, %v", s.saved.tally.digest, digest, err)
	}
	if got, want := e.Stats().Bytes, s.ix.bytes()+slotOverhead; got != want {
		t.Errorf("%d bytes counted, want %d", got, want)
	}
}
