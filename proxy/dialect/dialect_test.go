package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustParse(tb testing.TB, body string) *Request {
	tb.Helper()
	req, err := Chat{}.Parse([]byte(body))
	if err != nil {
		tb.Fatalf("Parse(%s): %v", body, err)
	}
	return req
}

func TestParseRefuses(t *testing.T) {
	const user = `{"role":"user","content":"a"}`
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		name, body string
		want       error // nil = accepted
	}{
		{"plain", `{"messages":[` + user + `]}`, nil},
		{"whitespace around", " \r\n\t{\"messages\":[" + user + "]} \n", nil},
		{"empty", ``, ErrMalformed},
		{"byte order mark", "\xef\xbb\xbf" + `{"messages":[` + user + `]}`, ErrMalformed},
		{"NUL after it", `{"messages":[` + user + "]}\x00", ErrMalformed},
		{"two bodies", `{"messages":[` + user + `]}{"messages":[` + user + `]}`, ErrMalformed},
		{"array", `[` + user + `]`, ErrMalformed},
		{"no messages", `{"model":"m"}`, ErrMalformed},
		{"messages null", `{"messages":null}`, ErrMalformed},
		{"messages object", `{"messages":{"0":` + user + `}}`, ErrMalformed},
		{"message is a string", `{"messages":[` + user + `,"b"]}`, ErrMalformed},
		{"trailing comma", `{"messages":[` + user + `,]}`, ErrMalformed},
		{"no comma", `{"messages":[` + user + user + `]}`, ErrMalformed},
		{"control character in a string", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\nb\"}]}", ErrMalformed},
		{"bad escape", `{"messages":[{"role":"user","content":"\q"}]}`, ErrMalformed},
		{"invalid UTF-8 in a key", "{\"a\xff\":1,\"messages\":[" + user + `]}`, ErrMalformed},
		{"invalid UTF-8 in a key of a message", "{\"messages\":[{\"role\":\"user\",\"con\xfftent\":\"a\"}]}", ErrMalformed},
		{"invalid UTF-8 in a value", "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", nil},
		{"invalid UTF-8 in a key deeper down", "{\"a\":{\"\xff\":1},\"messages\":[" + user + `]}`, nil},
		{"escaped key", `{"\u006dodel":"m","messages":[` + user + `]}`, ErrAmbiguous},
		{"escaped key before messages", `{"m\u0065ssages":[],"messages":[` + user + `]}`, ErrAmbiguous},
		{"folded key alone", `{"MESSAGES":[` + user + `]}`, ErrAmbiguous},
		{"key folded by Unicode", `{"meſſages":[],"messages":[` + user + `]}`, ErrAmbiguous},
		{"messages twice, first null", `{"messages":null,"messages":[` + user + `]}`, ErrMalformed},
		{"role twice", `{"messages":[{"role":"user","role":"system","content":"a"}]}`, ErrAmbiguous},
		{"role folded", `{"messages":[{"role":"user","Role":"system","content":"a"}]}`, ErrAmbiguous},
		{"content folded", `{"messages":[{"role":"user","content":"a","CONTENT":"b"}]}`, ErrAmbiguous},
		{"escaped key in a message", `{"messages":[{"role":"user","content":"a","\u0063ontent":"b"}]}`, ErrAmbiguous},
		{"escaped key in a part", `{"messages":[{"role":"user","content":[{"t\u0065xt":"b"}]}]}`, nil},
		{"messages deeper down", `{"a":{"messages":1,"messages":2},"messages":[` + user + `]}`, nil},
		{"no user", `{"messages":[{"role":"system","content":"a"}]}`, ErrNoUser},
		{"as deep as allowed", `{"a":` + deep(MaxDepth-1) + `,"messages":[` + user + `]}`, nil},
		{"too deep", `{"a":` + deep(MaxDepth) + `,"messages":[` + user + `]}`, ErrTooDeep},
		{"too deep in objects", `{"a":` + strings.Repeat(`{"a":`, MaxDepth) + `1` + strings.Repeat(`}`, MaxDepth) + `,"messages":[` + user + `]}`, ErrTooDeep},
		{"too deep and cut", strings.Repeat(`{"a":`, 1<<20), ErrTooDeep},
		{"too deep in content", `{"messages":[{"role":"user","content":` + deep(MaxDepth) + `}]}`, ErrTooDeep},
		{"too deep in a part", `{"messages":[{"role":"user","content":[{"text":` + deep(MaxDepth-4) + `}]}]}`, ErrTooDeep},
		{"as deep as allowed in a part", `{"messages":[{"role":"user","content":[{"text":` + deep(MaxDepth-5) + `}]}]}`, nil},
		{"as many messages as allowed", `{"messages":[` + user + strings.Repeat(`,{}`, MaxMessages-1) + `]}`, nil},
		{"too many messages", `{"messages":[` + user + strings.Repeat(`,{}`, MaxMessages) + `]}`, ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := (Chat{}).Parse([]byte(tt.body)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestParseCutAnywhere checks that no prefix of a body is accepted as a whole
// one, and that no error quotes the body.
func TestParseCutAnywhere(t *testing.T) {
	for _, d := range dialects {
		for _, body := range goldenInputs(t, d, "request") {
			body = bytes.TrimRight(body, "\n")
			if _, err := d.Parse(body); err != nil {
				continue
			}
			for n := range body {
				_, err := d.Parse(body[:n])
				if err == nil {
					t.Fatalf("%s accepted %q", d.Name(), body[:n])
				}
				if s := err.Error(); len(s) > 60 || strings.ContainsAny(s, `"{[`) {
					t.Fatalf("%s: error quotes the body: %s", d.Name(), s)
				}
			}
		}
	}
}

func TestParseLeavesBodyAlone(t *testing.T) {
	for _, d := range dialects {
		for _, body := range goldenInputs(t, d, "request") {
			before := bytes.Clone(body)
			req, err := d.Parse(body)
			if err != nil {
				continue
			}
			for _, p := range placements {
				if insertions, err := d.Insert(req, req.Turn, p.placement, goldenBlock); err == nil {
					bytes.Join(Splice(body, insertions), nil)
				}
			}
			if !bytes.Equal(body, before) {
				t.Fatalf("%s: body is now %q, want %q", d.Name(), body, before)
			}
		}
	}
}

// TestParseAllocations guards the request path: apart from the text of the
// newest turn, allocations do not grow with the body.
func TestParseAllocations(t *testing.T) {
	for _, like := range conversations {
		body := like.body(256<<10, 40, prose+code)
		allocs := testing.AllocsPerRun(10, func() {
			if _, err := like.d.Parse(body); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 9 {
			t.Errorf("%s: got %v allocations, want <= 9", like.d.Name(), allocs)
		}
	}
}

func TestPrevious(t *testing.T) {
	req := mustParse(t, `{"messages":[{"role":"system"},{"role":"user"},{"role":"assistant"},{"role":"user"},{"role":"tool"}]}`)
	for i, want := range []int{-1, -1, 1, 1, 3} {
		if got := req.Previous(i); got != want {
			t.Errorf("Previous(%d): got %d, want %d", i, got, want)
		}
	}
}

func TestInsertRefuses(t *testing.T) {
	req := mustParse(t, `{"messages":[{"role":"system","content":{}},{"role":"user","content":7},{"role":"assistant","content":"a"},{"role":"user","content":"b"}]}`)
	tests := []struct {
		name      string
		turn      int
		placement Placement
	}{
		{"no such message", 4, BeforeUser},
		{"negative", -1, BeforeUser},
		{"not a user message", 2, BeforeUser},
		{"content is a number", 1, InUser},
		{"system content is an object", 3, System},
		{"unknown placement", 3, 9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := (Chat{}).Insert(req, tt.turn, tt.placement, "x"); !errors.Is(err, ErrNoPlace) {
				t.Errorf("got %v, %v, want %v", got, err, ErrNoPlace)
			}
		})
	}
}

// TestInsertionsCompose checks that blocks for several turns, with different
// placements and in any order, give one valid body.
func TestInsertionsCompose(t *testing.T) {
	req := mustParse(t, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"user","content":[]},{"role":"user","content":"c"}]}`)
	var insertions []Insertion
	for _, p := range []struct {
		turn      int
		placement Placement
		text      string
	}{
		{3, BeforeUser, "3"}, {3, System, "first"}, {1, BeforeUser, "1"}, {2, InUser, "2"}, {1, System, "second"}, {3, InUser, "in"}, {2, BeforeUser, "before"},
	} {
		ins, err := Chat{}.Insert(req, p.turn, p.placement, p.text)
		if err != nil {
			t.Fatal(err)
		}
		insertions = append(insertions, ins...)
	}
	before := slices.Clone(insertions)
	got := string(bytes.Join(Splice(req.Body, insertions), nil))
	want := `{"messages":[{"role":"system","content":"s\n\nfirst\n\nsecond"},{"role":"user","content":"1"},{"role":"user","content":"a"},` +
		`{"role":"user","content":"before"},{"role":"user","content":[{"type":"text","text":"2"}]},{"role":"user","content":"3"},{"role":"user","content":"in\n\nc"}]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !json.Valid([]byte(got)) {
		t.Error("not JSON")
	}
	if diff := cmp.Diff(before, insertions); diff != "" {
		t.Errorf("Splice changed what it was given:\n%s", diff)
	}
}

func TestSplice(t *testing.T) {
	in := func(at int, text string) Insertion { return Insertion{At: at, Text: []byte(text)} }
	tests := []struct {
		name       string
		body       string
		insertions []Insertion
		want       []string
	}{
		{"nothing", "abc", nil, []string{"abc"}},
		{"at the start", "abc", []Insertion{in(0, "x")}, []string{"x", "abc"}},
		{"at the end", "abc", []Insertion{in(3, "x")}, []string{"abc", "x"}},
		{"between", "abc", []Insertion{in(1, "x"), in(2, "y")}, []string{"a", "x", "b", "y", "c"}},
		{"out of order", "abc", []Insertion{in(2, "y"), in(1, "x")}, []string{"a", "x", "b", "y", "c"}},
		{"same place keeps its order", "abc", []Insertion{in(2, "x"), in(1, "w"), in(2, "y")}, []string{"a", "w", "b", "x", "y", "c"}},
		{"empty text", "abc", []Insertion{in(1, "")}, []string{"a", "bc"}},
		{"empty body", "", []Insertion{in(0, "x")}, []string{"x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, piece := range Splice([]byte(tt.body), tt.insertions) {
				got = append(got, string(piece))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestReplayGrowsOnly guards the prompt cache: with the blocks of earlier turns
// replayed, each request's messages start with those of the request before.
func TestReplayGrowsOnly(t *testing.T) {
	messages := []string{
		`{"role":"system","content":"s"}`, `{"role":"user","content":"one"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a"}]}`, `{"role":"tool","tool_call_id":"a","content":"r"}`,
		`{"role":"assistant","content":"done"}`, `{"role":"user","content":[{"type":"text","text":"two"}]}`,
		`{"role":"assistant","content":"ok"}`, `{"role":"user","content":"three"}`,
	}
	for _, placement := range []Placement{BeforeUser, InUser} {
		previous := ""
		for n := 2; n <= len(messages); n++ {
			head := `{"messages":[` + strings.Join(messages[:n], ",")
			req := mustParse(t, head+`],"n":`+fmt.Sprint(n)+`}`)
			var insertions []Insertion
			for i, m := range req.Messages {
				if m.Role == RoleUser {
					ins, err := Chat{}.Insert(req, i, placement, fmt.Sprintf("block for %d", i))
					if err != nil {
						t.Fatal(err)
					}
					insertions = append(insertions, ins...)
				}
			}
			spliced := string(bytes.Join(Splice(req.Body, insertions), nil))
			got := spliced[:strings.LastIndex(spliced, `],"n":`)]
			if !strings.HasPrefix(got, previous) {
				t.Errorf("placement %d, %d messages: %s\ndoes not start with %s", placement, n, got, previous)
			}
			previous = got
		}
	}
}

// TestLinearTime guards against quadratic time, with which each of these takes
// minutes.
func TestLinearTime(t *testing.T) {
	const size = 4 << 20
	fill := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	user := `{"role":"user","content":"a"}`
	for _, body := range []string{
		`{"messages":[` + user + `],"a":"` + fill(`\\`) + `"}`,
		`{"messages":[` + user + `],"a":"` + fill(`\"`) + `"}`,
		`{"messages":[` + user + `],"a":"` + fill(`\ud800`) + `"}`,
		`{"messages":[` + user + `],"a":[` + fill(`[],`) + `0]}`,
		`{"messages":[` + user + `],"a":{` + fill(`"a":1,`) + `"b":0}}`,
		`{"messages":[` + user + `],` + fill(`"model":"m",`) + `"b":0}`,
		`{"messages":[{"role":"user","content":"` + fill(`\ud83d\ude00`) + `"}]}`,
		`{"messages":[{"role":"user","content":[` + fill(`{"type":"text","text":"a"},`) + `0]}]}`,
		`{"messages":[{"role":"user","content":"a","x":[` + fill(`1 , `) + `0]}]}`,
		`{"messages":[{"role":"user","content":"a","tool_calls":[` + fill(" \n") + `]}]}`,
	} {
		req := mustParse(t, body)
		if req.Turn != 0 {
			t.Errorf("turn: got %d, want 0", req.Turn)
		}
		req.Text(0)
		if _, err := (Chat{}).Insert(req, 0, InUser, "x"); err != nil {
			t.Error(err)
		}
	}
	stream := fill("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ab\"}}]}\n\n")
	if reply, err := (Chat{}).ReplyStream([]byte(stream)); err != nil || !strings.HasPrefix(reply.Text, "abab") {
		t.Errorf("got %d bytes of text, %v", len(reply.Text), err)
	}
}

// TestReplyStreamReadsAllOfADelta checks what the goldens of replies cannot
// show.
func TestReplyStreamReadsAllOfADelta(t *testing.T) {
	const stop = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	tests := []struct {
		name, stream string
		want         Reply
		final        bool
	}{
		{"call after the second piece of a refusal",
			`data: {"choices":[{"delta":{"refusal":"I"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"refusal":"x","tool_calls":[{}]}}]}` + "\n\n" + stop,
			Reply{Finish: "stop", Calls: true, Ended: true}, false},
		{"call after the second piece of a call",
			`data: {"choices":[{"delta":{"tool_calls":[{}],"content":"a"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"tool_calls":[{}],"content":"b"}}]}` + "\n\n" + stop,
			Reply{Text: "ab", Finish: "stop", Calls: true, Ended: true}, false},
		{"key that can't be read in a delta",
			"data: {\"choices\":[{\"delta\":{\"\xff\":1,\"content\":\"a\"}}]}\n\n" + stop, Reply{Ended: true}, false},
		{"key that can't be read in a part",
			"data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"\xff\":1}]}}]}\n\n" + stop, Reply{Text: "a", Ended: true}, false},
		{"end mark with a space, and no end mark",
			`data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" + stop + "data: [DONE] \n\n", Reply{Text: "a", Finish: "stop", Ended: true}, true},
		{"choices are nonsense", `data: {"choices":{"0":1}}` + "\n\n" + `data: {"choices":[1,{"index":null},{"index":0,"delta":7}],"usage":{"prompt_tokens":-3,"completion_tokens":1e300}}` + "\n\n" + stop,
			Reply{Finish: "stop", Ended: true}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Chat{}.ReplyStream([]byte(tt.stream))
			got.Usage = Usage{}
			if err != nil || got != tt.want || got.Final() != tt.final {
				t.Errorf("got %+v, final %v, %v, want %+v, final %v", got, got.Final(), err, tt.want, tt.final)
			}
		})
	}
}
