package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// Tokens are logged for each answer and summed up for its conversation.
func TestTokensAreCounted(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, func(_ *Config, d *Deps) { d.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
	r.answers(func(received) (int, string, string) {
		return 200, "application/json", strings.TrimSuffix(chatAnswer("", "fine"), "}") + `,"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":80}}}`
	})
	said := []string{"user: one"}
	for i := range 2 {
		r.post(chat(said...))
		r.settle()
		said = append(said, "assistant: fine", fmt.Sprint("user: ", i))
	}
	r.post(chat("user: another"))
	r.settle()
	type tokens struct{ Input, Cached, Written, Output int64 }
	var got []tokens
	for line := range strings.Lines(log.String()) {
		var entry struct {
			Msg string
			tokens
			Conversation tokens
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Msg == "tokens" {
			got = append(got, tokens{entry.Input, entry.Cached, entry.Written, entry.Output}, entry.Conversation)
		}
	}
	one, two := tokens{100, 80, 0, 7}, tokens{200, 160, 0, 14}
	if diff := cmp.Diff([]tokens{one, one, one, two, one, one}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUsagesAreBounded(t *testing.T) {
	var u usages
	for i := range 3 * maxUsages {
		u.add(conversationKey{conversation: fmt.Sprint(i)}, dialect.Usage{Input: 1})
		if got := u.add(conversationKey{conversation: "busy"}, dialect.Usage{Input: 1}); got.Input != int64(i+1) {
			t.Fatalf("%d tokens, want %d", got.Input, i+1)
		}
	}
	if n := len(u.recent) + len(u.older); n > 2*maxUsages {
		t.Errorf("%d conversations are kept", n)
	}
}
