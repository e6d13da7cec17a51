package ledger

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

func storedEntry() *entry {
	at := time.UnixMilli(1780000000123).UTC()
	return &entry{variants: []*variant{{Injection: Injection{Conversation: "c", Placement: dialect.InUser, Block: fence.Block{Text: "<x>\n- a\n- b\n</x>\n", Spans: []fence.Span{{ID: "a", Start: 4, End: 8}, {ID: "b", Start: 8, End: 12}}}},
		next: xxh3.Uint128{Hi: 1, Lo: 1 << 63}, created: at, used: at.Add(time.Second), accepted: true}, {created: at, used: at, accepted: true}}}
}

func TestEntryCodec(t *testing.T) {
	want := storedEntry()
	ghostly := storedEntry()
	ghostly.variants = append(ghostly.variants, &variant{Injection: Injection{Conversation: "g"}, observeOnly: true})
	for _, e := range []*entry{want, ghostly} {
		got, err := decodeEntry(appendEntry(nil, e))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.variants, got.variants, cmp.AllowUnexported(variant{}, answerMark{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	whole := appendEntry(nil, want)
	for n := range whole {
		if _, err := decodeEntry(whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are read as an entry", n, len(whole))
		}
	}
	if _, err := decodeEntry(append(whole, 0)); err == nil {
		t.Error("a trailing byte is taken")
	}
}

func FuzzEntryCodec(f *testing.F) {
	f.Add(appendEntry(nil, storedEntry()))
	f.Add([]byte{entryVersion, 0})
	f.Add(appendEntry(nil, storedPosition()))
	f.Add([]byte{positionVersion, 0})
	f.Add(appendEntry(nil, &entry{pointer: &pointer{root: Hash{Hi: 1}, used: time.UnixMilli(1780000000123).UTC()}}))
	f.Add(appendEntry(nil, &entry{repair: &repair{first: 2, flags: repairsCuts, used: time.UnixMilli(1780000000123).UTC()}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEntry(b)
		if err != nil {
			return
		}
		for _, v := range e.variants {
			v.Block.Without(map[string]struct{}{"a": {}}) // spans must be in range
		}
		again, err := decodeEntry(appendEntry(nil, e))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, again, cmp.AllowUnexported(entry{}, variant{}, answerMark{}, position{}, repair{}, pointer{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func storedPosition() *entry {
	return &entry{position: &position{
		conversation: "c", parent: Hash{Hi: 1}, self: Hash{Lo: 2}, newest: Hash{Hi: 3, Lo: 4}, turns: []Hash{{Hi: 5}, {Lo: 6}},
		used: time.UnixMilli(1780000000123).UTC(),
	}}
}

func TestPositionCodec(t *testing.T) {
	want := storedPosition()
	said := storedPosition()
	said.position.said, said.position.before = "what is not redacted", []string{"nor is this"}
	whole := appendEntry(nil, said)
	if bytes.Contains(whole, []byte(said.position.said)) || bytes.Contains(whole, []byte(said.position.before[0])) {
		t.Error("what was said would be stored")
	}
	got, err := decodeEntry(whole)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{}, position{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for n := range whole {
		if _, err := decodeEntry(whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are read as a position", n, len(whole))
		}
	}
	if _, err := decodeEntry(append(whole, 0)); err == nil {
		t.Error("a trailing byte is taken")
	}
}

// What was said is kept for the step that runs and the one before it, not for
// as long as positions are.
func TestSaidIsForgotten(t *testing.T) {
	l := New(DefaultConfig(), nil, discarding, time.Now)
	s := groupOf(l, storage.Scope{User: "u"})
	key := func(i int) Hash { return Hash{Lo: uint64(i)} }
	for i := 1; i <= 5; i++ { // two turns: of three steps, and of two
		p := position{conversation: "c", newest: key(100), said: "first", before: []string{"earlier"}}
		if i > 3 {
			p.newest, p.said, p.before = key(200), "second", nil
		}
		if i > 1 {
			p.parent = key(i - 1)
		}
		s.place(p, key(i))
	}
	var got []string
	size := s.key.size()
	for i := 1; i <= 5; i++ {
		p, _ := s.positionAt(key(i))
		got = append(got, strings.Join(append(p.before, p.said), ", "))
		size += p.size()
	}
	if diff := cmp.Diff([]string{"", "earlier, first", "", "second", "second"}, got); diff != "" || s.bytes != size {
		t.Errorf("%d bytes counted, want %d (-want +got):\n%s", s.bytes, size, diff)
	}
}

// Positions count for the ledger's bounds, and go with time.
func TestPositionsAreBounded(t *testing.T) {
	now := time.Unix(1780000000, 0)
	cfg := DefaultConfig()
	cfg.MaxBytes = 16 << 20
	l := New(cfg, nil, discarding, func() time.Time { return now })
	s := groupOf(l, storage.Scope{User: "u"})
	for i := range uint64(10000) {
		now = now.Add(time.Second)
		s.place(position{conversation: "conversation", turns: make([]Hash, positionTurns)}, Hash{Hi: i})
	}
	if n := len(s.entries); n < 100 || n > 1000 || l.bytes > cfg.maxGroup() {
		t.Errorf("%d positions in %d bytes, want some hundred within %d", n, l.bytes, cfg.maxGroup())
	}
	if _, ok := s.positionAt(Hash{Hi: 9999}); !ok {
		t.Error("the newest position is gone")
	}
	now = now.Add(cfg.TTL + time.Minute)
	if _, ok := s.positionAt(Hash{Hi: 9999}); ok {
		t.Error("a position outlives its time")
	}
	s.place(position{}, Hash{Lo: 1})
	size := int64(0)
	for _, e := range s.entries {
		size += e.size()
	}
	if n := len(s.entries); n != 1 || s.bytes != size+s.key.size() {
		t.Errorf("%d positions left, %d bytes counted, want 1 and %d", n, s.bytes, size+s.key.size())
	}
}

func TestSegment(t *testing.T) {
	a, b := Hash{Hi: 1, Lo: 2}, Hash{Hi: 3}
	older, newer := &entry{}, storedEntry()
	segment := appendRow(nil, a, older)
	first := len(segment)
	segment = appendRow(segment, b, older)
	second := len(segment)
	segment = appendRow(segment, a, newer)
	got := map[Hash]*entry{}
	if _, err := readRows(segment, got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || len(got[a].variants) != 2 || len(got[b].variants) != 0 {
		t.Errorf("read %d entries, %d and %d variants; want 2, 2 and 0", len(got), len(got[a].variants), len(got[b].variants))
	}
	for n := 1; n < len(segment); n++ {
		if _, err := readRows(segment[:n], map[Hash]*entry{}); err == nil && n != first && n != second {
			t.Errorf("the first %d bytes are a whole segment", n)
		}
	}
}

// TestContinuationIsACopy: what was said must not keep the request's body in
// memory.
func TestContinuationIsACopy(t *testing.T) {
	said := strings.Repeat("word ", 1000)
	w := Walk{entries: newEntries(New(DefaultConfig(), nil, discarding, time.Now), groupKey{})}
	next := w.Continue(&dialect.Request{Turn: -1}, "c", said[:4], []string{said[5:9]}).next
	if next.said != "word" || shares(next.said, said) || shares(next.before[0], said) {
		t.Error("what was said keeps what it was cut from")
	}
}

// shares reports whether part refers to the bytes of whole.
func shares(part, whole string) bool {
	at, start := uintptr(unsafe.Pointer(unsafe.StringData(part))), uintptr(unsafe.Pointer(unsafe.StringData(whole)))
	return part != "" && start <= at && at < start+uintptr(len(whole))
}
