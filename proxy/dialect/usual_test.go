package dialect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readers read a message key by key, in the dialects that have ways of their own.
var readers = []struct {
	name  string
	ways  []usual
	parts partTypes
	read  func(*scanner) Message
}{
	{"chat", chatUsuals, chatParts, (*scanner).chatMessage},
	{"messages", chatUsuals, messagesParts, (*scanner).blockMessage},
	{"responses", responsesUsuals, responsesParts, (*scanner).item},
}

// usualMessages are the ways in which the load of a real client's conversation is written, and some that are nearly so.
var usualMessages = []string{
	`{"role":"user","content":"hi"}`, `{"role": "assistant", "content": "say \"hi\"\n"}`, `{"role":"user","content":""}`,
	`{"role":"user","content":[{"type":"text","text":"hi"}]}`, `{"role": "user", "content": [{"type": "text", "text": "hi"}]}`,
	`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi \\"}]}`,
	`{"role":"assistant","content":[{"type":"output_text","text":"hi"}]}`, `{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}`,
	`{"role":"user","content":"hi","name":"x"}`, `{"role":"assistant","content":"hi","tool_calls":[{}]}`, `{"role":"user","content":"hi","role":"user"}`,
	`{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}`, `{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"hi"}]}`,
	`{"role":"user","content":"hi`, `{"role":"user","content":"hi"`, `{"role":"user","content":"hi"]`, `{"role":"user","content":"hi" }`, `{"role":"user","content":[{"type":"text","text":"hi"}}`,
	`{"role":"user","content":[{"type":"input_text","text":"hi"}]}`, `{"role":"user","content":"a\u0000\q` + "\n" + `"}`, `{"role":"tool","content":"hi"}`,
}

// A message that is written in a usual way is what it is key by key, and what was found of any other does not show.
func checkUsual(t *testing.T, text string) {
	t.Helper()
	for _, r := range readers {
		fresh := scanner{b: []byte(text), skims: true, parts: r.parts}
		want := r.read(&fresh)
		s := scanner{b: []byte(text), skims: true, parts: r.parts}
		got, ok := s.usualMessage(r.ways)
		if !ok {
			if s.i != 0 || s.err != nil {
				t.Fatalf("%s: %q is no usual message, and at %d, error %v", r.name, text, s.i, s.err)
			}
			got = r.read(&s)
		}
		if (s.err == nil) != (fresh.err == nil) {
			t.Fatalf("%s: %q: error %v, want %v", r.name, text, s.err, fresh.err)
		}
		if fresh.err == nil && (got != want || s.i != fresh.i || s.depth != fresh.depth) {
			t.Fatalf("%s: %q: up to %d, want %d\n%s", r.name, text, s.i, fresh.i, cmp.Diff(want, got, cmp.AllowUnexported(Message{})))
		}
	}
}

func FuzzUsual(f *testing.F) {
	for _, s := range usualMessages {
		f.Add(s)
		f.Add(s + `,{"role":"user","content":"more"}]`)
	}
	f.Fuzz(func(t *testing.T, text string) { checkUsual(t, text) })
}

// Every byte of a usual message matters: whatever stands in its place, or is left out or doubled.
func TestUsualFlaws(t *testing.T) {
	for _, s := range usualMessages {
		for at := range len(s) {
			for _, c := range "\"\\{}[],: \nrx" {
				checkUsual(t, s[:at]+string(c)+s[at+1:])
			}
			checkUsual(t, s[:at]+s[at+1:])
			checkUsual(t, s[:at]+s[at:at+1]+s[at:])
			checkUsual(t, s[:at])
		}
	}
}

// Messages of each way are read as such.
func TestUsualTaken(t *testing.T) {
	for _, r := range readers {
		for _, u := range r.ways {
			text := u.begin + strings.Repeat(`The \"end\". `, 20) + `"` + u.end
			s := scanner{b: []byte(text + ","), skims: true, parts: r.parts}
			m, ok := s.usualMessage(r.ways)
			if !ok || m.End != len(text) || text[m.contentStart] != text[len(u.begin)-1] && text[m.contentStart] != '[' {
				t.Errorf("%s: %q is not taken: %+v", r.name, text, m)
			}
			checkUsual(t, text)
		}
	}
}
