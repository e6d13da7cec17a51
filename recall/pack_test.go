package recall

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An index that was built from records codes its texts after the first request,
// even if it has less text than it usually waits for. Memories that are added
// or removed meanwhile are handled like all others.
func TestBuiltIndexLearns(t *testing.T) {
	ms := town(6000)
	e, _ := newEngine(t, patient(), ms[:5000])
	ix, _, _, err := e.loader.build(t.Context(), &slot{scope: alice})
	if err != nil {
		t.Fatal(err)
	}
	if ix.coder != nil || ix.building || ix.plain < learnFrom {
		t.Fatalf("building %v, coder %v, %d bytes of text", ix.building, ix.coder, ix.plain)
	}
	plain := ix.bytes()
	records, mems := ix.arena, ix.mems
	c := codeRecords(&records, mems)
	for i := 5000; i < len(ms); i++ {
		ix.apply(e.reader.change(ms[i].Provenance.Turn, ms[i:i+1]))
	}
	ix.apply(change{removed: []string{ms[7].ID}})
	all := func() (texts []string) {
		for i := range ix.mems {
			texts = append(texts, ix.memory(int32(i), alice).Text)
		}
		return texts
	}
	want, before := all(), ix.bytes()
	if ix.coder != nil {
		t.Error("Add coded all texts")
	}
	ix.take(c)
	if diff := cmp.Diff(want, all()); diff != "" {
		t.Errorf("texts (-plain +coded)\n%s", diff)
	}
	if now := ix.bytes(); now > before*9/10 || len(ix.mems) <= len(mems) {
		t.Errorf("%d memories in %d bytes, %d in %d before", len(ix.mems), now, len(mems), before)
	}

	recallIDs(t, e, Request{Newest: "hello"})
	s := resting(t, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	chunks := s.ix.arena.chunks
	if last := chunks[len(chunks)-1]; cap(last)-len(last) > len(last)/16+4<<10 {
		t.Errorf("%d bytes of records have room for %d more", len(last), cap(last)-len(last))
	}
	if now := s.ix.bytes(); s.ix.coder == nil || s.ix.later || now > plain*9/10 || s.counted.Load() != now+slotOverhead {
		t.Errorf("%d bytes, of which %d are counted, %d before its texts were to be coded; left to do: %v", now, s.counted.Load(), plain, s.ix.later)
	}
}
