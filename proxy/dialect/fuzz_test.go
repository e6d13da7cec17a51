package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/tidwall/gjson"
)

// goldenInputs returns the files of that name in all goldens of a dialect, as
// seeds.
func goldenInputs(tb testing.TB, d Dialect, name string) [][]byte {
	tb.Helper()
	files, err := filepath.Glob("testdata/" + d.Name() + "/*.txtar")
	if err != nil {
		tb.Fatal(err)
	}
	var inputs [][]byte
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range archive.Files {
			if f.Name == name {
				inputs = append(inputs, f.Data)
			}
		}
	}
	if len(inputs) == 0 {
		tb.Fatalf("no golden has a %s", name)
	}
	return inputs
}

// oddRequests are shapes that the goldens lack.
var oddRequests = []string{
	`{"messages":[{"role":"user","content":[1,null,"a",{"type":"text"},{"text":"b"},{"type":"text","text":"c","text":"d"},{"t\u0079pe":"text","text":"e"},[[]]]}]}`,
	`{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":7},{"role":"user","content":false}]}`,
	`{"messages":[{}, {"role":"user"}],"a":[[],{},[{}],{"b":[]}],"":""}`,
	"\t{ \"messages\" : [ { \"role\" : \"user\" , \"content\" : [ { \"type\" : \"text\" , \"text\" : \"a\" } ] } ] }\r\n",
	`{"messages":[{"role":"system","content":[{"type":"text","text":"a"} ]},{"role":"user","content":[ {"type":"text","text":"a"}]}]}`,
	"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xc3\\ud800\"}]}",
	`{"messages":[{"role":"user","content":"a"}],"\u00e9":1}`,
	`{"messages":[{"role":"user","ſontent":"x","content":"a"}]}`,
	`{"messages":[{"role":"user","content":"a"},7]}`,
	`{"system":[],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"b"},{"type":"tool_result"}]}]}`,
	`{"system":null,"messages":[{"role":"user","content":[[],{},{"type":7}]},{"role":"user","content":[]}]}`,
	`{"input":"a","instructions":null}`, `{"input":" \u00e9","conversation":{"id":"c"}}`, `{"previous_response_id":"p"}`,
	`{"input":[{"role":"user","content":[]},{"type":"message","role":"user"},{"type":"x","role":"user"},{"id":"i"}],"instructions":["a"]}`,
	`{ "previous_response_id" : "p" , "input" : [ ] , "instructions" : "" }`,
	"{\"model\":\"m\",\"x\":[\"\\q\n\"],\"messages\":[{\"role\":\"user\",\"content\":\"\\u12\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"\\q\"}]},{\"role\":\"user\",\"content\":\"a\"}]}",
	"{\"system\":\"\\q\",\"metadata\":{\"user_id\":\"u\"},\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"content\":\"\x01\"},{\"type\":\"text\",\"text\":\"a\"}]}]}",
	"{\"instructions\":\"\\q\",\"input\":[{\"type\":\"function_call_output\",\"output\":\"\x01\"},{\"role\":\"user\",\"content\":\"a\"}]}",
	`{"messages":{"role":"user"}}`,
	`[{"role":"user"}]`,
	``,
	"\xef\xbb\xbf{}",
}

func decode(tb testing.TB, body []byte) any {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("decode %q: %v", body, err)
	}
	return v
}

// shape is what a test must know of a dialect to find its way in a decoded
// body.
type shape struct {
	d        Dialect
	list     string // key of the messages
	system   string // key of the system prompt, "" = it is a message
	textPart string // type of the text parts that it inserts
	texts    []string
}

var shapes = []shape{
	{Chat{}, "messages", "", "text", []string{"text"}},
	{Messages{}, "messages", "system", "text", []string{"text"}},
	{Responses{}, "input", "instructions", "input_text", []string{"text", "input_text", "output_text"}},
	{Ollama{}, "messages", "", "text", []string{"text"}},
}

// messages returns the messages of a decoded body. String input is one.
func (s shape) messages(body any) []any {
	switch list := body.(map[string]any)[s.list].(type) {
	case []any:
		return list
	case string:
		return []any{map[string]any{"role": "user", "content": list}}
	default:
		return nil
	}
}

// FuzzSplice checks the scanner and the insertions against encoding/json:
// inserting bytes must equal decoding, inserting and encoding, and nothing else
// may change.
func FuzzSplice(f *testing.F) {
	for which, s := range shapes {
		for _, body := range goldenInputs(f, s.d, "request") {
			f.Add(uint8(which), body, goldenBlock)
		}
		for _, body := range oddRequests {
			f.Add(uint8(which), []byte(body), "block \xff\\")
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte, text string) {
		s := shapes[int(which)%len(shapes)]
		req, err := s.d.Parse(body)
		if !json.Valid(body) {
			req = s.checkRepaired(t, req, err, body, text)
		}
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooDeep) && !errors.Is(err, ErrAmbiguous) && !errors.Is(err, ErrNoUser) {
				t.Errorf("Parse: %v wraps none of the documented errors", err)
			}
			return
		}
		s.checkFound(t, req)
		if req.Turn < 0 {
			s.checkInsert(t, req, -1, System, text)
		}
		for turn, m := range req.Messages {
			if m.Role != RoleUser {
				continue
			}
			for _, p := range placements {
				s.checkInsert(t, req, turn, p.placement, text)
			}
			if turn > 8 && turn < req.Turn {
				break // quadratic
			}
		}
	})
}

// isUser reports whether a decoded message is a user's, and has more than tool
// results.
func (s shape) isUser(message any) bool {
	m, _ := message.(map[string]any)
	if m["role"] != "user" {
		return false
	}
	if kind, typed := m["type"]; s.d.Name() == "responses" && typed && kind != "message" {
		return false
	}
	blocks, ok := m["content"].([]any)
	if s.d.Name() != "messages" || !ok {
		return true
	}
	results := 0
	for _, b := range blocks {
		if isResult(b) {
			results++
		}
	}
	return results == 0 || results < len(blocks)
}

func isResult(block any) bool {
	b, _ := block.(map[string]any)
	return b["type"] == "tool_result"
}

// checkFound compares req with the decoded body and with the findings of gjson.
func (s shape) checkFound(t *testing.T, req *Request) {
	t.Helper()
	body := decode(t, req.Body)
	messages := s.messages(body)
	if got, want := len(req.Messages), len(messages); got != want {
		t.Fatalf("found %d messages, want %d", got, want)
	}
	_, isString := body.(map[string]any)[s.list].(string)
	var raws []string
	gjson.GetBytes(req.Body, s.list).ForEach(func(_, m gjson.Result) bool {
		raws = append(raws, m.Raw)
		return true
	})
	newest := -1
	for i, m := range req.Messages {
		raw := req.Body[m.Start:m.End]
		if !isString {
			if diff := cmp.Diff(messages[i], decode(t, raw)); diff != "" {
				t.Errorf("bounds of message %d (-want +got):\n%s", i, diff)
			}
		}
		if i >= len(raws) || raws[i] != string(raw) {
			t.Errorf("message %d: %q, but not for gjson: %q", i, raw, raws)
		}
		object := messages[i].(map[string]any)
		if s.isUser(object) {
			newest = i
		}
		if got, want := m.Role == RoleUser, s.isUser(object); got != want {
			t.Errorf("message %d is the user's: got %v, want %v", i, got, want)
		}
		if got, want := req.Text(i), s.textOf(object["content"]); got != want {
			t.Errorf("text of message %d: got %q, want %q", i, got, want)
		}
	}
	if req.Turn != newest {
		t.Errorf("turn: got %d, want %d", req.Turn, newest)
	}
	s.checkHashes(t, req, json.Compact)
	s.checkHashes(t, req, func(dst *bytes.Buffer, src []byte) error { return json.Indent(dst, src, "\r", " \t") })
}

// checkHashes reformats the body, which must not change its hashes.
func (s shape) checkHashes(t *testing.T, req *Request, format func(*bytes.Buffer, []byte) error) {
	t.Helper()
	var b bytes.Buffer
	if err := format(&b, req.Body); err != nil {
		t.Fatal(err)
	}
	again, err := s.d.Parse(b.Bytes())
	if err != nil {
		t.Fatalf("reformat: %v", err)
	}
	for i, m := range req.Messages {
		if m.Hash != again.Messages[i].Hash {
			t.Errorf("whitespace changed the hash of message %d", i)
		}
	}
}

// textOf is Request.Text on the decoded tree.
func (s shape) textOf(content any) string {
	switch content := content.(type) {
	case string:
		return content
	case []any:
		var texts []string
		for _, part := range content {
			part, _ := part.(map[string]any)
			kind, _ := part["type"].(string)
			if text, ok := part["text"].(string); ok && slices.Contains(s.texts, kind) {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, "\n")
	default:
		return ""
	}
}

func (s shape) checkInsert(t *testing.T, req *Request, turn int, p Placement, text string) {
	t.Helper()
	insertions, err := s.d.Insert(req, turn, p, text)
	if err != nil {
		if !errors.Is(err, ErrNoPlace) || p == BeforeUser && s.d.Name() != "messages" {
			t.Errorf("Insert(%d, %d): %v", turn, p, err)
		}
		return
	}
	spliced := bytes.Join(Splice(req.Body, insertions), nil)

	// A string that becomes a list takes two insertions, one on each side.
	if len(insertions) > 2 || len(insertions) == 2 && req.Body[insertions[0].At] != '"' {
		t.Fatalf("got %d insertions, want 1", len(insertions))
	}
	checkRest(t, req.Body, insertions)

	want := decode(t, req.Body).(map[string]any)
	s.insertTree(want, turn, p, string([]rune(text)))
	if diff := cmp.Diff(any(want), decode(t, spliced)); diff != "" {
		t.Errorf("Insert(%d, %d) into %q (-want +got):\n%s", turn, p, req.Body, diff)
	}
}

// checkRest checks that all other bytes are unchanged: without the inserted
// ones the body is as before.
func checkRest(t *testing.T, body []byte, insertions []Insertion) {
	t.Helper()
	bare := bytes.Join(Splice(body, insertions), nil)
	for _, in := range slices.Backward(insertions) {
		at := in.At
		for _, before := range insertions {
			if before.At < in.At {
				at += len(before.Text)
			}
		}
		bare = slices.Delete(bare, at, at+len(in.Text))
	}
	if !bytes.Equal(bare, body) {
		t.Errorf("without the insertion: got %q, want %q", bare, body)
	}
}

// insertTree is Insert on the decoded body.
func (s shape) insertTree(body map[string]any, turn int, p Placement, text string) {
	part := func(text any) any { return map[string]any{"type": s.textPart, "text": text} }
	message := func(role string, text any) any {
		if s.d.Name() == "responses" {
			return map[string]any{"type": "message", "role": role, "content": []any{part(text)}}
		}
		return map[string]any{"role": role, "content": text}
	}
	if p == System && s.system != "" {
		switch system := body[s.system].(type) {
		case string:
			body[s.system] = system + "\n\n" + text
		case []any:
			body[s.system] = append(system, part(text))
		default:
			body[s.system] = text
		}
		return
	}
	if input, ok := body[s.list].(string); ok {
		body[s.list] = []any{message("user", text), message("user", input)}
		if p == InUser {
			body[s.list] = text + "\n\n" + input
		}
		return
	}
	messages := body[s.list].([]any)
	defer func() { body[s.list] = messages }()
	switch {
	case p == BeforeUser && s.d.Name() != "messages":
		messages = slices.Insert(messages, turn, message("user", text))
	case p == BeforeUser || p == InUser:
		m := messages[turn].(map[string]any)
		switch content := m["content"].(type) {
		case string:
			m["content"] = text + "\n\n" + content
			if p == BeforeUser {
				m["content"] = []any{part(text), part(content)}
			}
		case []any:
			at := 0
			if s.d.Name() == "messages" {
				for i, b := range content {
					if !isResult(b) {
						at = i
					}
				}
			}
			m["content"] = slices.Insert(content, at, part(text))
		}
	default:
		last := -1
		for i, m := range messages {
			if role := m.(map[string]any)["role"]; role != "system" && role != "developer" {
				break
			}
			last = i
		}
		if last < 0 {
			messages = slices.Insert(messages, 0, message("system", text))
			return
		}
		m := messages[last].(map[string]any)
		switch content := m["content"].(type) {
		case string:
			m["content"] = content + "\n\n" + text
		case []any:
			m["content"] = append(content, part(text))
		}
	}
}

// FuzzScan checks that the scanner accepts exactly what encoding/json accepts,
// up to MaxDepth. An unchecked one also accepts what encoding/json would accept
// if its string values had no flaws inside.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`0`, `-0`, `01`, `1.`, `.5`, `1e`, `1e+`, `-`, `1E-0`, `tru`, `truex`, `null null`, `"\q"`, `"\u12g4"`, `"\u12`, `"\`, `"`, "\"\n\"", "\"\x7f\xff\"",
		`[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{1:2}`, `{"a" : [ { } , [ ] ] }`, `[}`, `{]`, `[[[[`, `]`, ` `,
		`"12345678901234567890123456789012345678901234567890\"12345678901234567890123456789012345678901234567890\\"`,
	} {
		f.Add([]byte(seed))
	}
	for _, body := range goldenInputs(f, Chat{}, "request") {
		f.Add(body)
	}
	f.Add([]byte(`["\q",` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth+1)))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := scanner{b: body}
		s.begin()
		v := s.skip()
		s.end()
		got, want := s.err == nil, json.Valid(body)
		if errors.Is(s.err, ErrTooDeep) {
			return
		}
		if got != want {
			t.Fatalf("%q: got %v, want %v", body, s.err, want)
		}
		lenient := scanner{b: body, unchecked: true}
		lenient.begin()
		value := lenient.skip()
		lenient.end()
		if errors.Is(lenient.err, ErrTooDeep) { // after a flaw that ended the first walk
			return
		}
		if got, want := lenient.err == nil, json.Valid(repair(body, '~')); got != want {
			t.Fatalf("%q, unchecked: got %v, want %v", body, lenient.err, want)
		} else if raw := body[value.start:value.end]; got && hashWithoutMarkers(raw) != hashCompact(raw) && !bytes.Contains(body, []byte(cacheMarker)) {
			t.Errorf("%q, unchecked: the hash without markers differs, though it has none", body)
		}
		if got && (hashWithoutMarkers(body[v.start:v.end]) != compactHash(t, body)) && !bytes.Contains(body, []byte(cacheMarker)) {
			t.Errorf("%q: the hash without markers differs, though it has none", body)
		}
		if got && (s.depth != 0 || hashCompact(body[v.start:v.end]) != compactHash(t, body)) {
			t.Errorf("%q: depth %d, or a hash other than that of the compact form", body, s.depth)
		}
	})
}

func compactHash(t *testing.T, body []byte) digest {
	var b bytes.Buffer
	if err := json.Compact(&b, body); err != nil {
		t.Fatal(err)
	}
	s := scanner{b: b.Bytes()}
	return s.hashValue(s.skip())
}

func FuzzText(f *testing.F) {
	f.Add(goldenBlock)
	f.Add("\x00\x1f\x7f\u2028\u2029\ufeff<>&'/\xed\xa0\x80")
	f.Add(`\u00e9\ud83d\ude00\ud83dx\ude00\/\b\f\n\r\t\"\\`)
	f.Fuzz(func(t *testing.T, text string) {
		quoted := []byte(`"` + string(appendQuoted(nil, text)) + `"`)
		var got string
		if err := json.Unmarshal(quoted, &got); err != nil {
			t.Fatalf("appendQuoted(%q) is not JSON: %v", text, err)
		}
		if want := string([]rune(text)); got != want {
			t.Errorf("appendQuoted: got %q, want %q", got, want)
		}
		raw := []byte(`"` + text + `"`)
		var want string
		valid := json.Unmarshal(raw, &want) == nil
		decoded, ok := unquote(raw)
		if ok != valid || ok && decoded != want {
			t.Errorf("unquote(%q): got %q, %v; want %q, %v", raw, decoded, ok, want, valid)
		}
		if valid {
			for n := range len(raw) {
				got, _ := unquotePrefix(raw, n)
				if !strings.HasPrefix(want, got) || len(got) < min(n/6, len(want)) {
					t.Errorf("unquotePrefix(%q, %d): got %q of %q", raw, n, got, want)
				}
			}
		}
	})
}

// FuzzHash checks what must not change a hash, and what must.
func FuzzHash(f *testing.F) {
	f.Add("hello", "other")
	f.Add("", `"},{"`)
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = "a"+a, "a"+b // empty ones would make some of the messages below equal
		hash := func(format string, text string) digest {
			body := fmt.Sprintf(`{"messages":[{"role":"user"`+format+`}]}`, appendQuoted(nil, text))
			req, err := Chat{}.Parse([]byte(body))
			if err != nil {
				t.Fatalf("Parse(%s): %v", body, err)
			}
			return req.Messages[0].Hash
		}
		const str = `,"content":"%s"`
		want := hash(str, a)
		for _, alike := range []string{
			`,"content":[{"type":"text","text":"%s"}]`,
			`,"content":[{"text":"%s","type":"text"}]`,
			`,"content":[{"type":"text","cache_control":{"type":"ephemeral"},"text":"%s"}]`,
			`,"cache_control":null,"content":"%s"`,
			` , "content" : [ { "type" : "text" , "text" : "%s" } ] `,
		} {
			if hash(alike, a) != want {
				t.Errorf("%s does not hash like a string", alike)
			}
		}
		seen := map[digest]string{want: str}
		for _, other := range []string{
			`,"name":"%s"`, `,"content":null,"name":"%s"`, `,"content":"","name":"%s"`, `,"content":[],"name":"%s"`,
			`,"content":["%s"]`, `,"content":["%s",""]`, `,"content":[{"type":"text","text":"%s"},{"type":"text","text":""}]`,
			`,"content":[{"type":"text","text":"%s","x":1}]`, `,"content":[{"type":"input_text","text":"%s"}]`,
			`,"content":[{"text":"%s"}]`, `,"content":[[{"type":"text","text":"%s"}]]`, `,"content":{"type":"text","text":"%s"}`,
			`,"content":"%s","name":""`, `,"content":"%s","x":[]`, `,"content":"%s","y":[]`, `,"content":"%s","x":[1,2]`, `,"content":"%s","x":[12]`,
		} {
			h := hash(other, a)
			if before, ok := seen[h]; ok {
				t.Errorf("%s hashes like %s", other, before)
			}
			seen[h] = other
		}
		if (string([]rune(a)) == string([]rune(b))) != (hash(str, b) == want) {
			t.Errorf("texts %q and %q: hashes equal: %v", a, b, hash(str, b) == want)
		}
	})
}
