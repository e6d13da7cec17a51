package recall

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// Posting lists that are built through the log equal those to which each turn
// was added directly, whenever the log is emptied, also with removed and
// replaced turns and with facts.
func TestLoggedPostings(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	logged, plain := newIndex(1, text.NewAnalyzer(64)), newIndex(1, text.NewAnalyzer(64))
	logged.building = true
	for i := range 3000 {
		turn := i
		if i%5 == 0 {
			turn = r.IntN(i + 1) // said anew, some at once, some after the log was emptied
		}
		m := said(turn, "x")
		if turn%7 == 0 {
			m.Kind = storage.KindFact
		}
		var terms []string
		for range 1 + r.IntN(12) {
			terms = append(terms, strings.Repeat("w", 1+r.IntN(3))+fmt.Sprint(int(r.ExpFloat64()*40)))
		}
		for _, ix := range []*index{logged, plain} {
			ix.put([]passage{{memory: &m, terms: terms}})
		}
		if r.IntN(200) == 0 {
			(listBuilder{logged}).spreadLog()
		}
	}
	(listBuilder{logged}).compactLists()
	if len(logged.posts) != len(plain.posts) {
		t.Fatalf("%d terms, want %d", len(logged.posts), len(plain.posts))
	}
	room := int64(0)
	for i := range plain.posts {
		got, want := &logged.posts[i], &plain.posts[i]
		if !bytes.Equal(got.buf, want.buf) || got.last != want.last || got.df != want.df || got.facts != want.facts {
			t.Errorf("%s: got %+v, want %+v", plain.spelled(uint32(i)), got, want)
		}
		room += int64(cap(got.buf))
	}
	if room != logged.postBytes {
		t.Errorf("%d bytes counted, %d taken", logged.postBytes, room)
	}
}

// One turn may fill several chunks of the log.
func TestPostingLogChunks(t *testing.T) {
	var l postingLog
	list := make([]termCount, 2*logChunk+5)
	for i := range list {
		list[i] = termCount{term: uint32(len(list) - i), tell: 1}
	}
	l.add(3, false, list[:7])
	l.add(4, false, list)
	entries, ends := l.sorted(len(list) + 1)
	if len(entries) != len(list)+7 || l.used != 0 || int(ends[len(list)]) != len(entries) {
		t.Fatalf("%d entries, %d chunks left, the last ends at %d", len(entries), l.used, ends[len(list)])
	}
	once := len(list) - 7 // terms that stand in one turn
	for i, e := range entries {
		want := uint32(4<<8 | 1)
		if i >= once && (i-once)%2 == 0 {
			want = 3<<8 | 1
		}
		if e != want {
			t.Fatalf("entry %d: %x, want %x", i, e, want)
		}
	}
}

// filterPostings returns exactly the postings of turns in the set.
func TestFilterPostings(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	kept := 0
	for range 3000 {
		far, every := pick(1, 20, 100, 300, 2000, 40_000), 1+r.IntN(12)
		var p postings
		var want []uint32
		n := r.IntN(far)
		for range r.IntN(pick(4, 40, 400, 4000)) {
			if n >= maxTurns {
				break
			}
			f := frequency(r.IntN(256))
			p.add(uint32(n), f)
			if r.IntN(every) == 0 {
				want = append(want, uint32(n)<<8|uint32(f))
			}
			if n += 1 + r.IntN(far); r.IntN(8) == 0 {
				n += r.IntN(200)
			}
		}
		set := make(bitset, p.last/64+1) // as small as can be
		for _, e := range want {
			set.set(int32(e >> 8))
		}
		got := filterPostings([]uint32{7}, p.buf, set)
		if got[0] != 7 || !slices.Equal(got[1:], want) {
			t.Fatalf("%d postings up to turn %d: got %d, want %d", p.df, p.last, len(got)-1, len(want))
		}
		kept += len(want)
	}
	if kept < 100_000 {
		t.Errorf("only %d kept: too few cases for a test", kept)
	}
}
