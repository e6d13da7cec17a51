package recall

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// Terms that countTerms accepts are read to their end, and it accepts what was
// packed.
func TestCountTerms(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	damaged, accepted := 0, 0
	for range 100_000 {
		below := 1 + r.IntN(1<<r.IntN(18))
		var b []byte
		want := r.IntN(30)
		for range want {
			b = binary.AppendUvarint(b, uint64(r.IntN(below)))
		}
		changed := len(b) > 0 && r.IntN(2) == 0
		if changed {
			b[r.IntN(len(b))] = byte(r.Uint32())
			damaged++
		}
		got := countTerms(b, below)
		if !changed && got != want {
			t.Fatalf("%x below %d: got %d, want %d", b, below, got, want)
		}
		if got < 0 {
			continue
		}
		if changed {
			accepted++
		}
		n, at := 0, 0
		for ; at < len(b); n++ {
			var id uint32
			if id, at = nextTerm(b, at); int(id) >= below {
				t.Fatalf("%x: accepted term %d, the limit is %d", b, id, below)
			}
		}
		if n != got || at != len(b) {
			t.Fatalf("%x: counted %d terms, read %d up to byte %d", b, got, n, at)
		}
	}
	if accepted < 10_000 || accepted > damaged-10_000 {
		t.Errorf("accepted %d of %d damaged lists, want some of both", accepted, damaged)
	}
	for _, b := range []string{"\x80", "\x01\x80", "\x05", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if got := countTerms([]byte(b), 5); got != -1 {
			t.Errorf("%x below 5: got %d, want -1", b, got)
		}
	}
}

// Postings that count accepts are read to their end, and it accepts what was
// added.
func TestCountPostings(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	damaged, accepted := 0, 0
	for range 100_000 {
		var p postings
		turns := uint32(0)
		for range r.IntN(30) {
			turns += r.Uint32N(2 << r.IntN(9))
			p.add(turns, frequency(r.Uint32()))
			turns++
		}
		changed := len(p.buf) > 0 && r.IntN(2) == 0
		if changed {
			p.buf[r.IntN(len(p.buf))] = byte(r.Uint32()) * byte(r.IntN(2))
			damaged++
		}
		last, df, ok := p.count(turns)
		if !changed && (!ok || last != p.last || df != p.df) {
			t.Fatalf("%x of %d turns: got %d, %d, %v, want %d, %d", p.buf, turns, last, df, ok, p.last, p.df)
		}
		if !changed && p.last > 0 {
			if _, _, ok := p.count(p.last - 1); ok {
				t.Fatalf("%x: accepted turn %d of %d", p.buf, p.last, p.last-1)
			}
		}
		if !ok {
			continue
		}
		if changed {
			accepted++
		}
		now, n := uint32(0), uint32(0)
		for buf := p.buf; len(buf) > 0; n++ {
			before := now
			if buf, now, _ = next(buf, now); now <= before || now > turns {
				t.Fatalf("%x of %d turns: accepted turn %d after %d", p.buf, turns, now, before)
			}
		}
		if now != last || n != df {
			t.Fatalf("%x: counted %d up to %d, read %d up to %d", p.buf, df, last, n, now)
		}
	}
	if accepted < 10_000 || accepted > damaged-10_000 {
		t.Errorf("accepted %d of %d damaged lists, want some of both", accepted, damaged)
	}
}

// An id has the same hash as text and in a record, and no two of these ids
// share a hash.
func TestHashOfAnID(t *testing.T) {
	ix := newIndex(1, text.NewAnalyzer(cachedWords))
	seen := map[uint64]string{}
	long := strings.Repeat("ab", storage.MaxID/2)
	for _, turn := range []string{"deadbeef", "\xde\xad\xbe\xef", "abc", "ABCDEF01", "a.3", "deadbeef.3", "x.", ".5", "1.07", long, "0123456789abcdef"} {
		for _, seq := range []int{0, 3, 10, 999_999_999, 1_000_000_000, -1} {
			id := storage.TurnMemoryID(turn, seq)
			var p packer
			p.string(turn)
			u := unpacker{b: p.b}
			d := identity{seq: seq}
			d.turn, d.turnHex = u.raw()
			hash := ix.hash(id)
			if got := ix.hashOf(&d); len(id) <= storage.MaxID && got != hash {
				t.Errorf("%q: %x in a record, %x as text", id, got, hash)
			}
			if before, ok := seen[hash]; ok && before != id {
				t.Errorf("%q and %q share a hash", id, before)
			}
			seen[hash] = id
		}
	}
}

// When an index learns to code texts, it codes those that it has. They stay
// readable, and so does an earlier capture.
func TestLearningKeepsMemories(t *testing.T) {
	ix := newIndex(1, text.NewAnalyzer(cachedWords))
	a := text.NewAnalyzer(cachedWords)
	var all []storage.Memory
	said := town(97)
	i := 0
	add := func() {
		m := said[i%len(said)]
		m.Provenance.Turn = fmt.Sprintf("%032x", i/2)
		m.ID = storage.TurnMemoryID(m.Provenance.Turn, m.Provenance.Seq)
		switch i % 9 {
		case 1:
			m.ID = fmt.Sprint("odd-", i)
		case 2:
			m.Entities, m.Tags = []string{"E"}, []string{"t", "u"}
		case 3:
			m.CreatedAt, m.Version, m.Priority = m.EventTime+5, 3, 0.25
		case 4:
			m.Conversation = "elsewhere"
		case 5:
			m.ExpiresAt = m.EventTime + 1000
		case 6:
			m.Provenance.Chain = "not hex"
		}
		out := new(text.Analysis)
		a.Analyze(m.Text, text.English, out)
		ix.merge([]passage{{memory: &m, terms: out.Terms, traits: out.Traits}})
		i++
	}
	for ix.plain < learnFrom-2000 {
		add()
	}
	for k := range ix.mems {
		all = append(all, ix.memory(int32(k), alice))
	}
	used := func(of *index) (n int) {
		for _, c := range of.arena.chunks {
			n += len(c)
		}
		return n
	}
	captured := ix.capture()
	ix.learn()
	for _, of := range []*index{ix, captured} {
		var got []storage.Memory
		for k := range of.mems {
			got = append(got, of.memory(int32(k), alice))
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Fatal(diff)
		}
	}
	if now, before := used(ix), used(captured); now > before*4/5 {
		t.Errorf("%d bytes of records, before %d", now, before)
	}
}

// A turn with an id in hex and a single memory whose id is those bytes do not
// replace each other.
func TestHexIDIsNoSoleMemory(t *testing.T) {
	turn, fact := said(1, "We planted a quince."), said(2, "The gate is green.")
	turn.Provenance.Turn = "7a7a7a7a"
	turn.ID = storage.TurnMemoryID(turn.Provenance.Turn, 0)
	fact.ID, fact.Kind, fact.Provenance = "zzzz", storage.KindFact, storage.Provenance{Role: storage.RoleUser}
	e, _ := newEngine(t, patient(), nil)
	wantIDs(t, "before", recallIDs(t, e, Request{Newest: "Where is the quince?", NoGate: true}))
	e.Add(alice, turn.Provenance.Turn, []storage.Memory{turn})
	e.Add(alice, "", []storage.Memory{fact})
	wantIDs(t, "the turn", recallIDs(t, e, Request{Newest: "Where is the quince?", NoGate: true}), turn.ID)
	wantIDs(t, "the fact", recallIDs(t, e, Request{Newest: "Is the gate green?", NoGate: true}), fact.ID)
	if live := resting(t, e).ix.live; live != 2 {
		t.Errorf("%d turns, want 2", live)
	}
}

// If the end of a record is unknown, as in a damaged snapshot, all records stay
// uncoded.
func TestLearnFromADamagedRecord(t *testing.T) {
	m := said(1, "We planted a quince.")
	m.Tags = []string{"garden", "autumn"}
	m.CreatedAt, m.UpdatedAt, m.ValidFrom, m.Version = m.EventTime, m.EventTime, m.EventTime, 1 // so that the lists come first
	e, _ := newEngine(t, patient(), []storage.Memory{m, said(2, "The gate is green.")})
	recallIDs(t, e, Request{Newest: "Where is the quince?", NoGate: true})
	ix := resting(t, e).ix
	u := ix.head(0).rest
	ix.identity(&u, ix.mems[0].turn)
	u.b[0] = 0x7f // more entities than there are bytes
	u = ix.head(0).rest
	if skipToText(&u); !u.failed {
		t.Fatal("the record can be read")
	}
	places, size := fmt.Sprint(ix.mems), ix.arena.size
	ix.learn()
	if got := fmt.Sprint(ix.mems); got != places || ix.arena.size != size {
		t.Errorf("records at %s take %d bytes, want %s and %d", got, ix.arena.size, places, size)
	}
}
