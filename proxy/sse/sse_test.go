package sse

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// event is Event with strings, for tables and diffs.
type event struct{ Type, ID, Data string }

func collect(stream string) []event {
	var events []event
	for e := range Events([]byte(stream)) {
		events = append(events, event{string(e.Type), string(e.ID), string(e.Data)})
	}
	return events
}

var streams = []struct {
	name, stream string
	want         []event
}{
	{"empty", "", nil},
	{"one event", "data: a\n\n", []event{{Data: "a"}}},
	{"two events", "data: a\n\ndata: b\n\n", []event{{Data: "a"}, {Data: "b"}}},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []event{{Data: "a"}, {Data: "b"}}},
	{"CR", "data: a\r\rdata: b\r\r", []event{{Data: "a"}, {Data: "b"}}},
	{"line ends mixed", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", []event{{Data: "a"}, {Data: "b"}, {Data: "c"}}},
	{"CRLF is one line end, not two", "data: a\r\ndata: b\r\n\r\n", []event{{Data: "a\nb"}}},
	{"LF CR is two line ends", "data: a\n\rdata: b\n\r", []event{{Data: "a"}, {Data: "b"}}},
	{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []event{{Data: "a"}}},
	{"second byte order mark is part of a name", "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", nil},
	{"comments", ": hi\n\ndata: a\n: there\ndata: b\n\n:\n\n", []event{{Data: "a\nb"}}},
	{"several data lines", "data: a\ndata:b\ndata:  c\n\n", []event{{Data: "a\nb\n c"}}},
	{"only one space is cut", "data:   a\n\n", []event{{Data: "  a"}}},
	{"tab is not cut", "data:\ta\n\n", []event{{Data: "\ta"}}},
	{"colon in the value", "data: a:b: c\n\n", []event{{Data: "a:b: c"}}},
	{"no colon is an empty value", "data\n\n", []event{{Data: ""}}},
	{"two empty data lines", "data\ndata\n\n", []event{{Data: "\n"}}},
	{"empty data", "data:\n\n", []event{{Data: ""}}},
	{"no data, no event", "event: x\nid: 1\n\ndata: a\n\n", []event{{ID: "1", Data: "a"}}},
	{"type holds for one event", "event: x\ndata: a\n\ndata: b\n\n", []event{{Type: "x", Data: "a"}, {Data: "b"}}},
	{"last type wins", "event: x\nevent: y\ndata: a\n\n", []event{{Type: "y", Data: "a"}}},
	{"type after data", "data: a\nevent: x\n\n", []event{{Type: "x", Data: "a"}}},
	{"id stays", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []event{{ID: "1", Data: "a"}, {ID: "1", Data: "b"}, {Data: "c"}}},
	{"id with NUL is ignored", "id: 1\nid: 2\x003\ndata: a\n\n", []event{{ID: "1", Data: "a"}}},
	{"unknown fields", "retry: 10\nfoo: bar\nDATA: x\n data: y\ndata : z\ndata: a\n\n", []event{{Data: "a"}}},
	{"unfinished line", "data: a\n\ndata: b", []event{{Data: "a"}}},
	{"unfinished event", "data: a\n\ndata: b\n", []event{{Data: "a"}}},
	{"unfinished event of two lines", "data: a\ndata: b\n", nil},
	{"cut inside a CRLF", "data: a\r\n\r", []event{{Data: "a"}}},
	{"blank lines", "\n\n\r\n\rdata: a\n\n\n\n", []event{{Data: "a"}}},
	{"lone CR in a line that ends in LF", "data: a\rdata: b\n\n", []event{{Data: "a\nb"}}},
}

func TestEvents(t *testing.T) {
	for _, tt := range streams {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, collect(tt.stream)); diff != "" {
				t.Errorf("Events(%q) (-want +got):\n%s", tt.stream, diff)
			}
		})
	}
}

// A caller may stop early, and joining lines must not write into the stream.
func TestEventsLeaveStreamAlone(t *testing.T) {
	stream := []byte("data: a\ndata: b\n\ndata: c\n\n")
	before := bytes.Clone(stream)
	for e := range Events(stream) {
		_ = append(e.Data, "overwritten"...)
		if got, want := string(e.Data), "a\nb"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		break
	}
	for e := range Events(stream) {
		_ = append(e.Data, "overwritten"...)
	}
	if !bytes.Equal(stream, before) {
		t.Errorf("stream is now %q, want %q", stream, before)
	}
}

func TestEventsAllocateNothing(t *testing.T) {
	stream := []byte(strings.Repeat("event: x\nid: 7\ndata: {\"a\":1}\n\n", 100))
	var n int
	allocs := testing.AllocsPerRun(10, func() {
		for e := range Events(stream) {
			n += len(e.Data)
		}
	})
	if allocs != 0 {
		t.Errorf("got %v allocations, want 0", allocs)
	}
	if n == 0 {
		t.Error("no data was read")
	}
}

// naive is the standard's algorithm, written as it reads, without regard to
// cost.
func naive(stream string) []event {
	stream = strings.TrimPrefix(stream, "\xef\xbb\xbf")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	var (
		events   []event
		typ, id  string
		data     string
		complete = lines[:len(lines)-1]
	)
	for _, line := range complete {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != "" {
				events = append(events, event{typ, id, strings.TrimSuffix(data, "\n")})
			}
			typ, data = "", ""
		case name == "data":
			data += value + "\n"
		case name == "event":
			typ = value
		case name == "id" && !strings.Contains(value, "\x00"):
			id = value
		}
	}
	return events
}

func FuzzEvents(f *testing.F) {
	for _, tt := range streams {
		f.Add(tt.stream)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		got := collect(stream)
		if want := naive(stream); !slices.Equal(got, want) {
			t.Errorf("Events(%q)\n got %q\nwant %q", stream, got, want)
		}
	})
}

// Guards against time that grows with the square of the stream: 4 MiB of lone
// CRs would take minutes.
func TestEventsStayLinear(t *testing.T) {
	for _, unit := range []string{"\r", "\n", "\r\n", "data\r", ":\r\n"} {
		stream := strings.Repeat(unit, 4<<20/len(unit)) + "\rdata: end\r\r"
		got := collect(stream)
		if len(got) == 0 || !strings.HasSuffix(got[len(got)-1].Data, "end") {
			t.Errorf("stream of %q: the last event was not found", unit)
		}
	}
}

func BenchmarkEvents(b *testing.B) {
	stream := []byte(strings.Repeat(`data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":" word"}}]}`+"\n\n", 1000))
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		for range Events(stream) {
		}
	}
}
