package dialect

import (
	"errors"
	"strings"
	"testing"
)

func TestMessagesRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	user := `{"role":"user","content":"a"}`
	for _, tt := range []struct {
		name, body string
		want       error
	}{
		{"plain", `{"messages":[` + user + `]}`, nil},
		{"messages twice", `{"messages":[` + user + `],"messages":[` + user + `]}`, ErrAmbiguous},
		{"messages escaped", `{"m\u0065ssages":[],"messages":[` + user + `]}`, ErrAmbiguous},
		{"messages folded", `{"Messages":[],"messages":[` + user + `]}`, ErrAmbiguous},
		{"system twice", `{"system":"a","system":"a","messages":[` + user + `]}`, ErrAmbiguous},
		{"system twice, once empty", `{"system":"","messages":[` + user + `],"system":""}`, ErrAmbiguous},
		{"system folded", `{"System":"a","messages":[` + user + `]}`, ErrAmbiguous},
		{"role twice", `{"messages":[{"role":"user","role":"user","content":"a"}]}`, ErrAmbiguous},
		{"content twice", `{"messages":[{"role":"user","content":"a","content":"a"}]}`, ErrAmbiguous},
		{"content folded", `{"messages":[{"role":"user","content":"a","Content":"a"}]}`, ErrAmbiguous},
		{"type folded in a block", `{"messages":[{"role":"user","content":[{"type":"text","TYPE":"tool_result"}]}]}`, ErrAmbiguous},
		{"type spelled in escapes", `{"messages":[{"role":"user","content":[{"type":"tool_r\u0065sult"},{"type":"text","text":"a"}]}]}`, ErrAmbiguous},
		{"type twice deeper down", `{"messages":[{"role":"user","content":[{"type":"text","text":"a","x":{"type":1,"type":2}}]}]}`, nil},
		{"no array", `{"messages":{}}`, ErrMalformed},
		{"null", `{"messages":null}`, ErrMalformed},
		{"string", `{"messages":"a"}`, ErrMalformed},
		{"too deep in a block", `{"messages":[{"role":"user","content":[{"type":"text","x":` + deep(MaxDepth) + `}]}]}`, ErrTooDeep},
		{"too deep in system", `{"system":` + deep(MaxDepth) + `,"messages":[` + user + `]}`, ErrTooDeep},
		{"too many messages", `{"messages":[` + user + strings.Repeat(`,{}`, MaxMessages) + `]}`, ErrMalformed},
		{"no user", `{"messages":[{"role":"assistant","content":"a"}]}`, ErrNoUser},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := (Messages{}).Parse([]byte(tt.body)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestMessagesHash checks that cache marks do not count wherever they are, and
// everything else does.
func TestMessagesHash(t *testing.T) {
	hash := func(message string) digest {
		t.Helper()
		req, err := Messages{}.Parse([]byte(`{"messages":[{"role":"user","content":"x"},` + message + `]}`))
		if err != nil {
			t.Fatalf("%s: %v", message, err)
		}
		return req.Messages[1].Hash
	}
	const mark = `"cache_control":{"type":"ephemeral","x":[{"cache_control":1}]}`
	result := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"b"},{"type":"image","source":{"type":"base64","data":"c"}}]}]}`
	for _, alike := range []string{
		strings.Replace(result, `"tool_use_id"`, mark+`,"tool_use_id"`, 1),
		strings.Replace(result, `"text":"b"`, `"text":"b",`+mark, 1),
		strings.Replace(result, `{"type":"text"`, `{`+mark+`,"type":"text"`, 1),
		strings.Replace(result, `"data":"c"`, mark+` , "data":"c" , `+mark, 1),
		strings.Replace(strings.Replace(result, `"text":"b"`, ` "text" : "b" ,`+mark, 1), `{"role"`, `{`+mark+`,"role"`, 1),
	} {
		if hash(alike) != hash(result) {
			t.Errorf("a mark changes the hash: %s", alike)
		}
	}
	seen := map[digest]string{hash(result): result}
	for _, other := range []string{
		strings.Replace(result, `"b"`, `"cache_control"`, 1),
		strings.Replace(result, `"text":"b"`, `"text":"b","cache_controls":1`, 1),
		strings.Replace(result, `{"type":"image"`, `{"type":"image","x":{}`, 1),
		strings.Replace(result, `{"type":"image"`, `[],{"type":"image"`, 1),
		strings.Replace(result, `"tool_use_id":"a"`, `"tool_use_id":"a","is_error":true`, 1),
		strings.Replace(result, `{"type":"text","text":"b"},`, ``, 1),
	} {
		h := hash(other)
		if before, ok := seen[h]; ok {
			t.Errorf("%s hashes like %s", other, before)
		}
		seen[h] = other
	}
}

// TestChatHashWithoutMarks checks the same in a chat message, including its
// calls.
func TestChatHashWithoutMarks(t *testing.T) {
	hash := func(mark string) digest {
		t.Helper()
		req, err := Chat{}.Parse([]byte(`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"a"` + mark + `}]}]}`))
		if err != nil {
			t.Fatalf("%s: %v", mark, err)
		}
		return req.Messages[1].Hash
	}
	if hash(`,"cache_control":{"type":"ephemeral"}`) != hash("") {
		t.Error("a mark in a call changes the hash")
	}
	if hash(`,"cache":1`) == hash("") {
		t.Error("a member that is not a mark does not change the hash")
	}
}

func TestDemote(t *testing.T) {
	body := func(text string) string {
		return `{"messages":[{"role":"user","content":"do it"},{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"` + text + `"}]}]}`
	}
	human := func(text string) bool { return text != "" && text[0] != '<' }
	for _, tt := range []struct {
		text string
		turn int
		loop bool
	}{{"<reminder>", 0, true}, {"", 0, true}, {"stop", 2, false}} {
		req, err := Messages{}.Parse([]byte(body(tt.text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := req.Demote(func(i int) bool { return human(req.Text(i)) }); err != nil || req.Turn != tt.turn || req.Loop != tt.loop {
			t.Errorf("%q: turn %d, loop %v, %v, want %d, %v", tt.text, req.Turn, req.Loop, err, tt.turn, tt.loop)
		}
	}
	call := func(more string) string { // a call that was answered, and what follows the answer
		return `{"messages":[{"role":"user","content":"do it"},{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"tool","content":"ok"}` + more + `]}`
	}
	const picture, reminder, person = `,{"role":"user","content":[{"type":"image_url"}]}`, `,{"role":"user","content":"<r>"}`, `,{"role":"user","content":"stop"}`
	const answer = `,{"role":"assistant","content":"done"}`
	for _, tt := range []struct {
		more string
		turn int
		loop bool
		read int // messages that the callback was asked about
	}{
		{picture, 0, true, 1},
		{picture + reminder, 0, true, 2},
		{person, 3, false, 1},
		{picture + person, 4, false, 2},
		{person + picture + reminder, 5, false, 1}, // a person's turn, though these say nothing
		{picture + person + reminder, 5, false, 2},
		{answer + picture, 4, false, 0},
		{answer + person + picture, 5, false, 0},
	} {
		for _, d := range []Dialect{Chat{}, Ollama{}} {
			req, err := d.Parse([]byte(call(tt.more)))
			if err != nil {
				t.Fatal(err)
			}
			read := 0
			err = req.Demote(func(i int) bool { read++; return human(req.Text(i)) })
			if err != nil || req.Turn != tt.turn || req.Loop != tt.loop || read != tt.read {
				t.Errorf("%s: turn %d, loop %v, %d read, %v, want %d, %v, %d", tt.more, req.Turn, req.Loop, read, err, tt.turn, tt.loop, tt.read)
			}
		}
	}
	req, err := Messages{}.Parse([]byte(`{"messages":[{"role":"user","content":[{"type":"tool_result"},{"type":"text","text":"<x>"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := req.Demote(func(i int) bool { return human(req.Text(i)) }); !errors.Is(err, ErrNoUser) {
		t.Errorf("got %v, want %v", err, ErrNoUser)
	}
}

func TestResponsesRefuses(t *testing.T) {
	user := `{"role":"user","content":"a"}`
	for _, tt := range []struct {
		name, body string
		want       error
	}{
		{"string", `{"input":"a"}`, nil},
		{"array", `{"input":[` + user + `]}`, nil},
		{"input twice", `{"input":"a","input":[` + user + `]}`, ErrAmbiguous},
		{"input twice, first null", `{"input":null,"input":"a"}`, ErrAmbiguous},
		{"input folded", `{"INPUT":"a"}`, ErrAmbiguous},
		{"instructions twice", `{"instructions":"a","input":"a","instructions":"a"}`, ErrAmbiguous},
		{"conversation twice", `{"conversation":null,"input":"a","conversation":"c"}`, ErrAmbiguous},
		{"conversation folded", `{"Conversation":"c","input":"a"}`, ErrAmbiguous},
		{"background twice", `{"background":true,"input":"a","background":false}`, ErrAmbiguous},
		{"role twice", `{"input":[{"role":"user","role":"user","content":"a"}]}`, ErrAmbiguous},
		{"type twice", `{"input":[{"type":"message","type":"message","role":"user","content":"a"}]}`, ErrAmbiguous},
		{"content twice", `{"input":[{"role":"user","content":"a","content":"a"}]}`, ErrAmbiguous},
		{"type spelled in escapes", `{"input":[{"type":"mess\u0061ge","role":"user","content":"a"}]}`, ErrAmbiguous},
		{"escaped key in an item", `{"input":[{"role":"user","c\u006fntent":"b","content":"a"}]}`, ErrAmbiguous},
		{"object", `{"input":{}}`, ErrMalformed},
		{"nothing", `{"model":"m"}`, ErrMalformed},
		{"empty array", `{"input":[]}`, ErrMalformed},
		{"empty array that continues", `{"previous_response_id":"r","input":[]}`, nil},
		{"no user", `{"input":[{"role":"system","content":"a"}]}`, ErrNoUser},
		{"no user but at the server", `{"conversation":"c","input":[{"type":"function_call_output"}]}`, nil},
		{"bad string", `{"input":"a\q"}`, ErrMalformed},
		{"too deep", `{"input":[{"role":"user","content":` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth) + `}]}`, ErrTooDeep},
		{"too many items", `{"input":[` + user + strings.Repeat(`,{}`, MaxMessages) + `]}`, ErrMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := (Responses{}).Parse([]byte(tt.body)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestReplyID(t *testing.T) {
	const created = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"object\":\"response\",\"id\":\"resp_1\",\"x\":"
	for _, tt := range []struct{ name, head, want string }{
		{"whole", `{"id":"resp_1"}`, "resp_1"},
		{"cut after it", ` {"object":"response","usage":{"id":"no"},"id":"resp_1","outp`, "resp_1"},
		{"cut within it", `{"id":"resp_`, ""},
		{"none", `{"error":{"id":"no"}}`, ""},
		{"events", created + "{}}}\n\n", "resp_1"},
		{"event not whole", created, "resp_1"},
		{"event not whole before the id", created[:90], ""},
		{"another event first", ": hi\n\ndata: {\"type\":\"ping\",\"id\":\"no\"}\n\n" + created + "1}}\n\n", "resp_1"},
		{"nothing", "", ""},
		{"no JSON", "data: x\n\n", ""},
	} {
		if got := (Responses{}).ReplyID([]byte(tt.head)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestLinearTimeElsewhere is TestLinearTime for the other dialects.
func TestLinearTimeElsewhere(t *testing.T) {
	const size = 4 << 20
	fill := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	for _, tt := range []struct {
		d    Dialect
		body string
	}{
		{Messages{}, `{"messages":[{"role":"user","content":[` + fill(`{"type":"text","text":"a","cache_control":{}},`) + `{"type":"text","text":"a"}]}]}`},
		{Messages{}, `{"messages":[{"role":"user","content":[{"type":"document","x":[` + fill(`{"cache_control":1,"a":2},`) + `0]}]}]}`},
		{Messages{}, `{"messages":[{"role":"user","content":[{"type":"document","x":"cache_control","y":[` + fill(`"cache_control",`) + `0]}]}]}`},
		{Responses{}, `{"input":[{"role":"user","content":[` + fill(`{"type":"input_text","text":"a"},`) + `0]}]}`},
		{Responses{}, `{"input":"` + fill(`\u0041`) + `"}`},
	} {
		req, err := tt.d.Parse([]byte(tt.body))
		if err != nil {
			t.Fatalf("%s: %v", tt.d.Name(), err)
		}
		req.Text(0)
		if _, err := tt.d.Insert(req, 0, BeforeUser, "x"); err != nil {
			t.Error(err)
		}
	}
	for _, tt := range []struct {
		d     Dialect
		event string
	}{
		{Messages{}, "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"ab\"}}\n\n"},
		{Responses{}, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"ab\"}\n\n"},
		{Ollama{}, "{\"message\":{\"content\":\"ab\"},\"done\":false}\n"},
	} {
		if reply, err := tt.d.ReplyStream([]byte(fill(tt.event))); err != nil || !strings.HasPrefix(reply.Text, "abab") {
			t.Errorf("%s: got %d bytes of text, %v", tt.d.Name(), len(reply.Text), err)
		}
	}
}

// TestManySmallThings checks that memory for a body is a small multiple of its size, however it is divided.
func TestManySmallThings(t *testing.T) {
	for _, tt := range []struct {
		d    Dialect
		body string
	}{
		{Messages{}, `{"messages":[{"role":"user","content":"a"}` + strings.Repeat(`,{}`, MaxMessages-1) + `]}`},
		{Responses{}, `{"input":[{"role":"user","content":"a"}` + strings.Repeat(`,{}`, MaxMessages-1) + `]}`},
	} {
		req, err := tt.d.Parse([]byte(tt.body))
		if err != nil || len(req.Messages) != MaxMessages {
			t.Errorf("%s: %v", tt.d.Name(), err)
		}
	}
}
