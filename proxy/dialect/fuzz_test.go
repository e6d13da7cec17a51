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

// goldenInputs are the files of that name in all goldens: the seeds.
func goldenInputs(tb testing.TB, name string) [][]byte {
	tb.Helper()
	files, err := filepath.Glob("testdata/chat/*.txtar")
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

// oddRequests are shapes that the goldens leave out.
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

// FuzzSplice checks the scanner and the insertions against encoding/json: inserting bytes must be the same as decoding,
// inserting and encoding, and nothing else may change.
func FuzzSplice(f *testing.F) {
	for _, body := range goldenInputs(f, "request") {
		f.Add(body, goldenBlock)
	}
	for _, body := range oddRequests {
		f.Add([]byte(body), "block \xff\\")
	}
	f.Fuzz(func(t *testing.T, body []byte, text string) {
		req, err := Chat{}.Parse(body)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooDeep) && !errors.Is(err, ErrAmbiguous) && !errors.Is(err, ErrNoUser) {
				t.Errorf("Parse: %v wraps none of the documented errors", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("accepted, but not JSON: %q", body)
		}
		checkFound(t, req)
		for turn, m := range req.Messages {
			if m.Role != RoleUser {
				continue
			}
			for _, p := range placements {
				checkInsert(t, req, turn, p.placement, text)
			}
			if turn > 8 && turn < req.Turn {
				break // quadratic
			}
		}
	})
}

// checkFound compares req with the decoded body and with what gjson finds.
func checkFound(t *testing.T, req *Request) {
	t.Helper()
	messages := decode(t, req.Body).(map[string]any)["messages"].([]any)
	if got, want := len(req.Messages), len(messages); got != want {
		t.Fatalf("found %d messages, want %d", got, want)
	}
	var raws []string
	gjson.GetBytes(req.Body, "messages").ForEach(func(_, m gjson.Result) bool {
		raws = append(raws, m.Raw)
		return true
	})
	newest := -1
	for i, m := range req.Messages {
		raw := req.Body[m.Start:m.End]
		if diff := cmp.Diff(messages[i], decode(t, raw)); diff != "" {
			t.Errorf("bounds of message %d (-want +got):\n%s", i, diff)
		}
		if i >= len(raws) || raws[i] != string(raw) {
			t.Errorf("message %d: %q, but not for gjson: %q", i, raw, raws)
		}
		object := messages[i].(map[string]any)
		if object["role"] == "user" {
			newest = i
		}
		if got, want := m.Role == RoleUser, object["role"] == "user"; got != want {
			t.Errorf("message %d is of the user: got %v, want %v", i, got, want)
		}
		if got, want := req.Text(i), textOf(object["content"]); got != want {
			t.Errorf("text of message %d: got %q, want %q", i, got, want)
		}
	}
	if req.Turn != newest {
		t.Errorf("turn: got %d, want %d", req.Turn, newest)
	}
	checkHashes(t, req, json.Compact)
	checkHashes(t, req, func(dst *bytes.Buffer, src []byte) error { return json.Indent(dst, src, "\r", " \t") })
}

// checkHashes formats the body anew, which must not change its hashes.
func checkHashes(t *testing.T, req *Request, format func(*bytes.Buffer, []byte) error) {
	t.Helper()
	var b bytes.Buffer
	if err := format(&b, req.Body); err != nil {
		t.Fatal(err)
	}
	again, err := Chat{}.Parse(b.Bytes())
	if err != nil {
		t.Fatalf("formatted anew: %v", err)
	}
	for i, m := range req.Messages {
		if m.Hash != again.Messages[i].Hash {
			t.Errorf("whitespace changed the hash of message %d", i)
		}
	}
}

// textOf is Request.Text on the decoded tree.
func textOf(content any) string {
	switch content := content.(type) {
	case string:
		return content
	case []any:
		var texts []string
		for _, part := range content {
			part, _ := part.(map[string]any)
			if text, ok := part["text"].(string); ok && part["type"] == "text" {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, "\n")
	default:
		return ""
	}
}

func checkInsert(t *testing.T, req *Request, turn int, p Placement, text string) {
	t.Helper()
	insertions, err := Chat{}.Insert(req, turn, p, text)
	if err != nil {
		if !errors.Is(err, ErrNoPlace) || p == BeforeUser {
			t.Errorf("Insert(%d, %d): %v", turn, p, err)
		}
		return
	}
	spliced := Join(Splice(req.Body, insertions))

	// All other bytes are as they were: cutting the inserted ones out again gives the body.
	if len(insertions) != 1 {
		t.Fatalf("got %d insertions, want 1", len(insertions))
	}
	in := insertions[0]
	if got := slices.Delete(bytes.Clone(spliced), in.At, in.At+len(in.Text)); !bytes.Equal(got, req.Body) {
		t.Errorf("without the insertion: got %q, want %q", got, req.Body)
	}

	want := decode(t, req.Body).(map[string]any)
	want["messages"] = insertTree(want["messages"].([]any), turn, p, string([]rune(text)))
	if diff := cmp.Diff(any(want), decode(t, spliced)); diff != "" {
		t.Errorf("Insert(%d, %d) into %q (-want +got):\n%s", turn, p, req.Body, diff)
	}
}

// insertTree is Insert on the decoded messages.
func insertTree(messages []any, turn int, p Placement, text string) []any {
	message := func(role string) any { return map[string]any{"role": role, "content": text} }
	part := map[string]any{"type": "text", "text": text}
	switch p {
	case BeforeUser:
		return slices.Insert(messages, turn, message("user"))
	case InUser:
		m := messages[turn].(map[string]any)
		switch content := m["content"].(type) {
		case string:
			m["content"] = text + "\n\n" + content
		case []any:
			m["content"] = slices.Insert(content, 0, any(part))
		}
		return messages
	default:
		last := -1
		for i, m := range messages {
			if role := m.(map[string]any)["role"]; role != "system" && role != "developer" {
				break
			}
			last = i
		}
		if last < 0 {
			return slices.Insert(messages, 0, message("system"))
		}
		m := messages[last].(map[string]any)
		switch content := m["content"].(type) {
		case string:
			m["content"] = content + "\n\n" + text
		case []any:
			m["content"] = append(content, part)
		}
		return messages
	}
}

// FuzzScan: the scanner accepts what encoding/json accepts, no more and no less, up to the nesting it allows.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`0`, `-0`, `01`, `1.`, `.5`, `1e`, `1e+`, `-`, `1E-0`, `tru`, `truex`, `null null`, `"\q"`, `"\u12g4"`, `"\u12`, `"\`, `"`, "\"\n\"", "\"\x7f\xff\"",
		`[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{1:2}`, `{"a" : [ { } , [ ] ] }`, `[}`, `{]`, `[[[[`, `]`, ` `,
		`"12345678901234567890123456789012345678901234567890\"12345678901234567890123456789012345678901234567890\\"`,
	} {
		f.Add([]byte(seed))
	}
	for _, body := range goldenInputs(f, "request") {
		f.Add(body)
	}
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
		if got && (s.depth != 0 || hashCompact(body[v.start:v.end]) != compactHash(t, body)) {
			t.Errorf("%q: depth %d, or another hash than that of the compact form", body, s.depth)
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
		if json.Unmarshal(raw, &want) == nil {
			if got := unquote(raw); got != want {
				t.Errorf("unquote(%q): got %q, want %q", raw, got, want)
			}
		}
	})
}

// FuzzHash: what must not change a hash, and what must.
func FuzzHash(f *testing.F) {
	f.Add("hello", "other")
	f.Add("", `"},{"`)
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = "a"+a, "a"+b // empty ones make some of the messages below the same
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
