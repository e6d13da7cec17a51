package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

type chatBody struct {
	Model    string
	Stream   bool
	Messages []struct{ Role, Content string }
}

func splitRequest(t *testing.T, raw []byte) (head string, body chatBody, size int) {
	t.Helper()
	h, b, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !ok {
		t.Fatal("request without an empty line")
	}
	if err := json.Unmarshal(b, &body); err != nil {
		t.Fatalf("body is not JSON: %v", err)
	}
	return string(h), body, len(b)
}

func TestRequestTemplate(t *testing.T) {
	for _, size := range []int{minBody, 1 << 10, 5000, 16 << 10, 256 << 10} {
		for _, events := range []int{0, 7} {
			t.Run(fmt.Sprintf("%d bytes, %d events", size, events), func(t *testing.T) {
				script := replyScript{latency: 20 * time.Millisecond, events: events, gap: 2 * time.Millisecond}
				tpl, err := newRequestTemplate(requestSpec{host: "h:1", memory: "read", size: size, script: script}, newTexts(5))
				if err != nil {
					t.Fatal(err)
				}
				raw := bytes.Clone(tpl.buffer().patch(77, 4321, "What about the question?"))
				head, body, n := splitRequest(t, raw)
				if n != size {
					t.Errorf("body has %d bytes, want %d", n, size)
				}
				for _, want := range []string{"Host: h:1\r\n", "X-Remora-User: user-4321\r\n", "X-Remora-Memory: read\r\n", fmt.Sprintf("Content-Length: %d", size)} {
					if !strings.Contains(head+"\r\n", want) {
						t.Errorf("head lacks %q:\n%s", want, head)
					}
				}
				if body.Stream != (events > 0) {
					t.Errorf("stream = %v with %d events", body.Stream, events)
				}
				_, rawBody, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
				if got, ok := parseReplyScript(rawBody[:min(len(rawBody), upstreamFront)]); !ok || got != script {
					t.Errorf("script = %+v, %v, want %+v", got, ok, script)
				}
				if n := len(body.Messages); n < 4 || n > 80 {
					t.Fatalf("%d messages, want a conversation of 4 to 80", n)
				}
				last := body.Messages[len(body.Messages)-1]
				if last.Role != "user" || !strings.HasPrefix(last.Content, "What about the question? ") {
					t.Errorf("newest message = %+v", last)
				}
				for i, m := range body.Messages[1:] {
					if want := []string{"user", "assistant"}[i%2]; m.Role != want {
						t.Errorf("message %d has role %s, want %s", i+1, m.Role, want)
					}
				}
				ref := last.Content[len(last.Content)-refLen-1 : len(last.Content)-1]
				if !strings.HasPrefix(body.Messages[1].Content, ref) {
					t.Errorf("first user message %q lacks the reference %q", body.Messages[1].Content, ref)
				}
			})
		}
	}
}

func TestRequestTooSmall(t *testing.T) {
	if _, err := newRequestTemplate(requestSpec{host: "h", size: minBody - 1}, newTexts(5)); err == nil {
		t.Error("no error for a body without room")
	}
}

// A patch leaves nothing of the one before it and changes nothing but the slots.
func TestPatch(t *testing.T) {
	tpl, err := newRequestTemplate(requestSpec{host: "h", size: 1 << 10}, newTexts(5))
	if err != nil {
		t.Fatal(err)
	}
	buf := tpl.buffer()
	first := bytes.Clone(buf.patch(1, 1, "short?"))
	buf.patch(999, 63, strings.Repeat("long ", 100))
	if got := buf.patch(1, 1, "short?"); !bytes.Equal(got, first) {
		t.Errorf("patched twice:\n%s\nwant\n%s", got, first)
	}
	if head, _, _ := splitRequest(t, first); strings.Contains(head, "X-Remora-Memory") {
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

// The question that is asked shares rare words with the memory it is about, and the same seed gives the same texts.
func TestTexts(t *testing.T) {
	a, b := newTexts(9), newTexts(9)
	for range 200 {
		statement := a.statement()
		if other := b.statement(); other != statement {
			t.Fatalf("same seed, other text:\n%s\n%s", statement, other)
		}
		q := a.question(statement, questionLen)
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
