package proxy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// blocksIn are the blocks in a body, wherever they stand.
func blocksIn(t *testing.T, body string) (out []string) {
	t.Helper()
	var walk func(v any)
	block := regexp.MustCompile(`(?s)<remora-memory-[0-9a-f]+>.*?</remora-memory-[0-9a-f]+>\n?`)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, block.FindAllString(v, -1)...)
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	walk(v)
	return out
}

// TestConversationIsBoundedInTokens: the block that would pass the bound has
// fewer memories, or is none.
func TestConversationIsBoundedInTokens(t *testing.T) { inEach(t, testConversationIsBoundedInTokens) }

func testConversationIsBoundedInTokens(t *testing.T, a api) {
	const most = 500
	r := a.rig(t, func(c *Config, _ *Deps) { c.Ledger.MaxTokens = most })
	var history []string
	for i := range 4 {
		var facts []string
		for k := range 3 {
			facts = append(facts, fmt.Sprintf("fact %d of turn %d: %s", k, i, strings.Repeat("long ", 20)))
		}
		r.recall.set(facts...)
		history = append(history, fmt.Sprintf("user: q%d", i))
		r.post(a.body(history...))
		history = append(history, "assistant: fine")
	}
	var memories []int
	for _, got := range r.sent() {
		tokens, lines := 0, 0
		for _, b := range blocksIn(t, got.body) {
			tokens += (len(b) + 1) / 2
			lines += strings.Count(b, "\n- ")
		}
		if tokens > most {
			t.Errorf("%d tokens, want at most %d", tokens, most)
		}
		memories = append(memories, lines)
	}
	if memories[0] != 3 || memories[1] <= 3 || memories[1] >= 6 || memories[3] != memories[1] {
		t.Errorf("memories in the requests: %v", memories)
	}
}
