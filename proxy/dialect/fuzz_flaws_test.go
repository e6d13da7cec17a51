package dialect

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// repair replaces, in the strings of body that are not keys, control characters
// and the backslashes of invalid escapes by mark. Every other byte stays where
// it was.
func repair(body []byte, mark byte) []byte {
	out := bytes.Clone(body)
	for i := 0; i < len(body); i++ {
		if body[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(body) && body[end] != '"' {
			if body[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(body) {
			return out
		}
		if !bytes.HasPrefix(bytes.TrimLeft(body[end+1:], " \t\r\n"), []byte{':'}) {
			for at := i + 1; at < end; at++ {
				switch c := body[at]; {
				case c < ' ':
					out[at] = mark
				case c != '\\':
				case bytes.IndexByte([]byte(`"\/bfnrt`), body[at+1]) >= 0:
					at++
				case !json.Valid([]byte(`"` + string(body[at:min(at+6, end)]) + `"`)):
					out[at] = mark
				}
			}
		}
		i = end
	}
	return out
}

// value is a string of a body that is not a key: its position, and the keys
// that lead to it as they are written, "" for an element.
type value struct {
	start, end int
	path       []string
}

// values finds them with encoding/json.
func values(t *testing.T, body []byte) (all []value) {
	t.Helper()
	type level struct {
		object, key bool // key: one comes next
		name        string
	}
	var open []level
	d := json.NewDecoder(bytes.NewReader(body))
	for {
		before := d.InputOffset()
		token, err := d.Token()
		if err != nil {
			return all
		}
		top := len(open) - 1
		if c, ok := token.(json.Delim); ok {
			if c == '}' || c == ']' {
				if open = open[:top]; top > 0 {
					open[top-1].key = open[top-1].object
				}
			} else {
				open = append(open, level{object: c == '{', key: c == '{'})
			}
			continue
		}
		_, isString := token.(string)
		start, end := int(before), int(d.InputOffset())
		if isString {
			start += bytes.IndexByte(body[before:], '"')
		}
		if top >= 0 && open[top].key {
			open[top].key, open[top].name = false, string(body[start+1:end-1])
			continue
		}
		if isString {
			v := value{start: start, end: end}
			for _, l := range open {
				v.path = append(v.path, l.name)
			}
			all = append(all, v)
		}
		if top >= 0 {
			open[top].key = open[top].object
		}
	}
}

// reads reports whether Parse must decode the string at path, which must then
// be valid.
func (s shape) reads(path []string) bool {
	key := func(n int) string {
		if n < len(path) {
			return path[n]
		}
		return ""
	}
	responses, chat := s.d.Name() == "responses", s.list == "messages" && s.system == ""
	switch key(0) {
	case "model":
		return len(path) == 1
	case "user", "safety_identifier", "prompt_cache_key":
		return len(path) == 1 && (chat || responses)
	case "previous_response_id":
		return len(path) == 1 && responses
	case "metadata":
		return true
	case "conversation":
		return chat || responses
	case "max_tokens":
		return !responses
	case "max_completion_tokens":
		return chat
	case "max_output_tokens":
		return responses
	case s.list:
		return len(path) > 2 && key(1) == "" && (key(2) == "role" || key(2) == "type" && responses) ||
			len(path) > 4 && key(2) == "content" && key(3) == "" && key(4) == "type"
	}
	return false
}

// checkRepaired gets a body that is not JSON, and the result of Parse. Only
// flaws inside strings that are not read may be accepted, and all of them are:
// findings and insertions must equal those of the body without flaws. It
// returns the request of that body, nil if there is none.
func (s shape) checkRepaired(t *testing.T, req *Request, err error, body []byte, text string) *Request {
	t.Helper()
	whole, other := repair(body, '~'), repair(body, '^')
	if !json.Valid(whole) {
		if err == nil {
			t.Fatalf("accepted, but not JSON: %q", body)
		}
		return nil
	}
	want, werr := s.d.Parse(whole)
	if werr != nil {
		if err == nil {
			t.Fatalf("accepted, but refused without its flaws: %v: %q", werr, body)
		}
		return nil
	}
	read := slices.ContainsFunc(values(t, whole), func(v value) bool {
		return s.reads(v.path) && !bytes.Equal(body[v.start:v.end], whole[v.start:v.end])
	})
	// Repaired strings differ by the mark.
	a, b := s.messages(decode(t, whole)), s.messages(decode(t, other))
	textOf := func(messages []any, i int) string { return s.textOf(messages[i].(map[string]any)["content"]) }
	if want.Turn >= 0 {
		read = read || textOf(a, want.Turn) != textOf(b, want.Turn)
	}
	if read != (err != nil) {
		t.Fatalf("got %v; strings that are read have flaws: %v: %q", err, read, body)
	}
	if err != nil {
		return nil
	}
	for i := range req.Messages {
		if got, want := req.Text(i), textOf(a, i); textOf(b, i) != want && got != "" || textOf(b, i) == want && got != want {
			t.Errorf("text of message %d: got %q, want %q", i, got, want)
		}
	}
	found := *req
	found.Body, found.texts, found.pooled = want.Body, want.texts, want.pooled
	found.Messages = slices.Clone(req.Messages)
	for i := range found.Messages {
		found.Messages[i].Hash = want.Messages[i].Hash
	}
	if diff := cmp.Diff(*want, found, cmp.AllowUnexported(Request{}, Message{})); diff != "" {
		t.Fatalf("%q (-without flaws +got):\n%s", body, diff)
	}
	for turn := range req.Messages {
		for _, p := range placements {
			wins, werr := s.d.Insert(want, turn, p.placement, text)
			ins, err := s.d.Insert(req, turn, p.placement, text)
			if diff := cmp.Diff(wins, ins); diff != "" || (err == nil) != (werr == nil) {
				t.Errorf("Insert(%d, %d) into %q: %v, want %v (-without flaws +got):\n%s", turn, p.placement, body, err, werr, diff)
			}
			checkRest(t, body, ins)
		}
		if turn > 8 {
			break // quadratic
		}
	}
	return want
}

// TestParseFlaws checks that flaws in strings that are not read do no harm, and
// that those in strings that are read are refused.
func TestParseFlaws(t *testing.T) {
	flaws := []string{`\q`, `\u12g4`, `\u12`, "\x00", "a\nb", `\u`, `\\\"\x\\`}
	for _, d := range []Dialect{Chat{}, Messages{}, Responses{}, Ollama{}} {
		list := "messages"
		if d.Name() == "responses" {
			list = "input"
		}
		body := func(model, role, old, kind, text string) string {
			return `{"model":"` + model + `","x":{"y":["` + old + `"]},"` + list + `":[` +
				`{"role":"user","content":"` + old + `"},{"role":"assistant","content":[{"type":"text","text":"` + old + `","x":"` + old + `"}]},` +
				`{"role":"` + role + `","content":[{"type":"` + kind + `","text":"` + text + `","more":"` + old + `"}]}]}`
		}
		for _, flaw := range flaws {
			req, err := d.Parse([]byte(body("m", "user", flaw, "text", "t")))
			if err != nil || req.Turn != 2 || req.Text(2) != "t" || req.Text(0) != "" || req.Text(1) != "" {
				t.Errorf("%s, %q in a string that is not read: got %v, %+v", d.Name(), flaw, err, req)
			}
			for name, b := range map[string]string{
				"model": body(flaw, "user", "", "text", "t"), "role": body("m", flaw, "", "text", "t"),
				"type": body("m", "user", "", flaw, "t"), "newest text": body("m", "user", "", "text", flaw),
				"key": strings.Replace(body("m", "user", "", "text", "t"), `"y"`, `"`+flaw+`"`, 1),
			} {
				if _, err := d.Parse([]byte(b)); err == nil {
					t.Errorf("%s accepted %q in %s", d.Name(), flaw, name)
				}
			}
		}
	}
}
