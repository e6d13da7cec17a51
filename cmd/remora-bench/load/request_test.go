package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/prose"
)

func splitRequest(t *testing.T, raw []byte) (head string, body []byte) {
	t.Helper()
	h, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !ok {
		t.Fatal("request without an empty line")
	}
	if !json.Valid(body) {
		t.Fatalf("body is not JSON:\n%s", body)
	}
	return string(h), body
}

func testRequestTemplate(t *testing.T, a api, size, events int) {
	script := replyScript{latency: 20 * time.Millisecond, events: events, gap: 2 * time.Millisecond}
	tpl, err := newRequestTemplate(requestSpec{api: a, host: "h:1", memory: "read", size: size, script: script}, prose.New(5))
	if err != nil {
		t.Fatal(err)
	}
	const question = "What about the question?"
	head, body := splitRequest(t, bytes.Clone(tpl.buffer().patch(77, 4321, question)))
	if n := len(body); n != size {
		t.Errorf("body has %d bytes, want %d", n, size)
	}
	for _, want := range []string{
		"POST " + a.path + " HTTP/1.1\r\n", "Host: h:1\r\n", benchKey + "\r\n", "X-Remora-User: user-4321\r\n", "X-Remora-Memory: read\r\n",
		fmt.Sprintf("Content-Length: %d\r\n", size),
	} {
		if !strings.Contains(head+"\r\n", want) {
			t.Errorf("head lacks %q:\n%s", want, head)
		}
	}
	if got, ok := parseReplyScript(body[:min(len(body), upstreamFront)]); !ok || got != script {
		t.Errorf("script = %+v, %v, want %+v", got, ok, script)
	}
	if req := checkConversation(t, a, body, question); req.Stream != (events > 0) {
		t.Errorf("stream = %v with %d events", req.Stream, events)
	}
}

func TestRequestTooSmall(t *testing.T) {
	if _, err := newRequestTemplate(requestSpec{api: chatAPI(), host: "h", size: minBody - 1}, prose.New(5)); err == nil {
		t.Error("no error for a body without room")
	}
}

// A patch leaves nothing of the one before it and changes nothing but the
// slots.
func TestPatch(t *testing.T) {
	tpl, err := newRequestTemplate(requestSpec{api: chatAPI(), host: "h", size: 1 << 10}, prose.New(5))
	if err != nil {
		t.Fatal(err)
	}
	buf := tpl.buffer()
	first := bytes.Clone(buf.patch(1, 1, "short?"))
	buf.patch(999, 63, strings.Repeat("long ", 100))
	if got := buf.patch(1, 1, "short?"); !bytes.Equal(got, first) {
		t.Errorf("patched twice:\n%s\nwant\n%s", got, first)
	}
	if head, _ := splitRequest(t, first); strings.Contains(head, "X-Remora-Memory") {
		t.Error("mode of memory sent though none was given")
	}
	seen := map[string]uint64{}
	for n := range uint64(100_000) {
		ref := string(buf.patch(n, 0, "")[tpl.refs[0]:][:refLen])
		if other, twice := seen[ref]; twice {
			t.Fatalf("requests %d and %d are both %s", n, other, ref)
		}
		seen[ref] = n
	}
}

func TestParseReplyScriptRefuses(t *testing.T) {
	for _, body := range []string{"", `{"model":"gpt-5"}`, `{"model":"mock-1-2"}`, `{"model":"mock-1-x-3"}`, `{"model":"mock-1-2-3`} {
		if s, ok := parseReplyScript([]byte(body)); ok {
			t.Errorf("parseReplyScript(%q) = %+v", body, s)
		}
	}
}

// The question that is asked shares rare words with the memory it is about, and
// the same seed gives the same texts.
func TestTexts(t *testing.T) {
	a, b := prose.New(9), prose.New(9)
	for range 200 {
		statement := a.Statement()
		if other := b.Statement(); other != statement {
			t.Fatalf("same seed, other text:\n%s\n%s", statement, other)
		}
		q := a.Question(statement, questionLen)
		words := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(q, "What did I say about"), "?"))
		if len(q) > questionLen || len(words) < 2 {
			t.Fatalf("question %q of %d bytes", q, len(q))
		}
		for _, w := range words {
			if !strings.Contains(statement, w) {
				t.Errorf("%q of %q is not in %q", w, q, statement)
			}
		}
	}
}
