package dialect

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// viaSjson inserts a message before the last one as a JSON editor does: it
// replaces the last element and appends it again.
func viaSjson(body []byte, last int, message string) ([]byte, error) {
	path := fmt.Sprintf("messages.%d", last)
	was := gjson.GetBytes(body, path).Raw
	out, err := sjson.SetRawBytes(body, path, []byte(message))
	if err != nil {
		return nil, err
	}
	return sjson.SetRawBytes(out, "messages.-1", []byte(was))
}

// TestSpliceAgreesWithSjson compares with a JSON editor that shares no code
// with the scanner.
func TestSpliceAgreesWithSjson(t *testing.T) {
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
		`{"messages":[{"role":"system","content":"be \"kind\""},{"role":"user","content":"h\u00e9 \\ ]}"}],"n":1.50e0,"stream":true}`,
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"x","function":{"arguments":"{\"a\":[1]}"}}]},{"role":"tool","content":"r"},{"role":"user","content":[{"type":"text","text":"b"}]}],"user":"u"}`,
	} {
		req, err := Chat{}.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		ins, err := Chat{}.Insert(req, req.Turn, BeforeUser, "a \"block\"\n")
		if err != nil {
			t.Fatal(err)
		}
		want, err := viaSjson([]byte(body), req.Turn, `{"role":"user","content":"a \"block\"\n"}`)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(bytes.Join(Splice([]byte(body), ins), nil))); diff != "" {
			t.Errorf("(-sjson +splice)\n%s", diff)
		}
	}
}

func BenchmarkSplice(b *testing.B) {
	var body bytes.Buffer
	body.WriteString(`{"model":"m","messages":[`)
	for i := range 40 {
		fmt.Fprintf(&body, `{"role":%q,"content":"%s"},`, []string{"user", "assistant"}[i%2], strings.Repeat("some words of prose ", 320))
	}
	body.WriteString(`{"role":"user","content":"and now?"}]}`)
	block := strings.Repeat("- 2026-05-03 user: a memory\n", 8)
	b.Run("splice", func(b *testing.B) {
		b.SetBytes(int64(body.Len()))
		for b.Loop() {
			req, _ := Chat{}.Parse(body.Bytes())
			ins, _ := Chat{}.Insert(req, req.Turn, BeforeUser, block)
			Splice(body.Bytes(), ins)
		}
	})
	b.Run("sjson", func(b *testing.B) {
		b.SetBytes(int64(body.Len()))
		message := `{"role":"user","content":` + string(appendQuoted([]byte{'"'}, block)) + `"}`
		for b.Loop() {
			if _, err := viaSjson(body.Bytes(), 40, message); err != nil {
				b.Fatal(err)
			}
		}
	})
}
