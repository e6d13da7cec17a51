package dialect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// messageReaders read a message key by key.
var messageReaders = []struct {
	name  string
	forms []commonForm
	parts partTypes
	read  func(*requestReader) Message
}{
	{"chat", chatForms, chatParts, (*requestReader).chatMessage},
	{"messages", chatForms, messagesParts, (*requestReader).blockMessage},
	{"responses", responsesForms, responsesParts, (*requestReader).item},
}

// formSamples are messages in the common forms, and some that nearly are.
var formSamples = []string{
	`{"role":"user","content":"hi"}`, `{"role": "assistant", "content": "say \"hi\"\n"}`, `{"role":"user","content":""}`,
	`{"role":"user","content":[{"type":"text","text":"hi"}]}`, `{"role": "user", "content": [{"type": "text", "text": "hi"}]}`,
	`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi \\"}]}`,
	`{"role":"assistant","content":[{"type":"output_text","text":"hi"}]}`, `{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}`,
	`{"role":"user","content":"hi","name":"x"}`, `{"role":"assistant","content":"hi","tool_calls":[{}]}`, `{"role":"user","content":"hi","role":"user"}`,
	`{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}`, `{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"hi"}]}`,
	`{"role":"user","content":"hi`, `{"role":"user","content":"hi"`, `{"role":"user","content":"hi"]`, `{"role":"user","content":"hi" }`, `{"role":"user","content":[{"type":"text","text":"hi"}}`,
	`{"role":"user","content":[{"type":"input_text","text":"hi"}]}`, `{"role":"user","content":"a\u0000\q` + "\n" + `"}`, `{"role":"tool","content":"hi"}`,
}

// checkCommonForm checks that reading text directly gives the same result as
// reading it key by key, and that a failed attempt leaves no trace.
func checkCommonForm(t *testing.T, text string) {
	t.Helper()
	for _, reader := range messageReaders {
		full := newRequestReader([]byte(text), reader.parts)
		want := reader.read(full)
		r := newRequestReader([]byte(text), reader.parts)
		got, ok := r.commonMessage(reader.forms)
		if !ok {
			if r.i != 0 || r.err != nil {
				t.Fatalf("%s: %q is in no common form, but the reader is at %d, error %v", reader.name, text, r.i, r.err)
			}
			got = reader.read(r)
		}
		if (r.err == nil) != (full.err == nil) {
			t.Fatalf("%s: %q: error %v, want %v", reader.name, text, r.err, full.err)
		}
		if full.err == nil && (got != want || r.i != full.i || r.depth != full.depth) {
			t.Fatalf("%s: %q: read up to %d, want %d\n%s", reader.name, text, r.i, full.i, cmp.Diff(want, got, cmp.AllowUnexported(Message{})))
		}
	}
}

func FuzzCommonForm(f *testing.F) {
	for _, s := range formSamples {
		f.Add(s)
		f.Add(s + `,{"role":"user","content":"more"}]`)
	}
	f.Fuzz(func(t *testing.T, text string) { checkCommonForm(t, text) })
}

// Every byte of a common form matters: replaced, removed or doubled.
func TestCommonFormMutations(t *testing.T) {
	for _, s := range formSamples {
		for at := range len(s) {
			for _, c := range "\"\\{}[],: \nrx" {
				checkCommonForm(t, s[:at]+string(c)+s[at+1:])
			}
			checkCommonForm(t, s[:at]+s[at+1:])
			checkCommonForm(t, s[:at]+s[at:at+1]+s[at:])
			checkCommonForm(t, s[:at])
		}
	}
}

func TestCommonFormsAreRecognised(t *testing.T) {
	for _, reader := range messageReaders {
		for _, f := range reader.forms {
			text := f.prefix + strings.Repeat(`The \"end\". `, 20) + `"` + f.suffix
			r := newRequestReader([]byte(text+","), reader.parts)
			m, ok := r.commonMessage(reader.forms)
			if !ok || m.End != len(text) || text[m.contentStart] != text[len(f.prefix)-1] && text[m.contentStart] != '[' {
				t.Errorf("%s: %q is not recognised: %+v", reader.name, text, m)
			}
			checkCommonForm(t, text)
		}
	}
}
