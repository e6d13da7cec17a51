package proxy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// provider simulates a prompt cache: of each request, the longest run of leading messages that an earlier request began
// with is billed as cached.
type provider struct{ seen map[string]bool }

// bill returns how many bytes of the client's own messages were cached, and how many there were. Inserted blocks count
// on neither side, so the figures compare with and without Remora.
func (p *provider) bill(t *testing.T, body string, own map[string]bool) (cached, all int) {
	t.Helper()
	var in struct{ Messages []json.RawMessage }
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		t.Fatal(err)
	}
	prefix, hit := "", true
	var prefixes []string
	for _, m := range in.Messages {
		prefix += string(m)
		prefixes = append(prefixes, prefix)
		hit = hit && p.seen[prefix]
		if n := len(m); own[string(m)] {
			all += n
			if hit {
				cached += n
			}
		}
	}
	for _, s := range prefixes {
		p.seen[s] = true
	}
	return cached, all
}

// conversations drives multi-turn, tool-looping conversations through f and returns the cached share.
func conversations(t *testing.T, post func(body string) string) float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	p := provider{seen: map[string]bool{}}
	cached, all := 0, 0
	for c := range 12 {
		own := map[string]bool{}
		history := []string{fmt.Sprintf(`{"role":"system","content":"You are agent %d. %s"}`, c, strings.Repeat("rule ", 80))}
		add := func(m string) { history = append(history, m); own[m] = true }
		own[history[0]] = true
		send := func() {
			body := `{"model":"m","messages":[` + strings.Join(history, ",") + `]}`
			a, b := p.bill(t, post(body), own)
			cached, all = cached+a, all+b
		}
		for turn := range 3 + rng.IntN(5) {
			add(fmt.Sprintf(`{"role":"user","content":"question %d of %d"}`, turn, c))
			send()
			for step := range rng.IntN(5) {
				add(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"t%d-%d-%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, c, turn, step))
				add(fmt.Sprintf(`{"role":"tool","tool_call_id":"t%d-%d-%d","content":"result %s"}`, c, turn, step, strings.Repeat("data ", 40)))
				send()
			}
			add(fmt.Sprintf(`{"role":"assistant","content":"answer %d of %d"}`, turn, c))
		}
	}
	return float64(cached) / float64(all)
}

// The promise of the ledger: the provider's prompt cache does not notice Remora.
func TestPromptCacheShare(t *testing.T) {
	share := func(opts ...rigOption) float64 {
		r := newRig(t, opts...)
		n := 0
		return conversations(t, func(body string) string {
			n++
			r.recall.set(fmt.Sprintf("a different memory for each request, %d", n))
			r.sleep(20 * time.Second)
			r.post(body)
			return r.one().body
		})
	}
	bare := conversations(t, func(body string) string { return body })
	ledger := share()
	system := share(func(c *Config, _ *Deps) { c.Injection.Placement = PlacementSystem })
	t.Logf("cached share: without Remora %.3f, beforeUser %.3f, system %.3f", bare, ledger, system)
	if ledger != bare {
		t.Errorf("cached share %.4f with the ledger, want %.4f as without Remora", ledger, bare)
	}
	if system >= ledger {
		t.Errorf("cached share %.4f with system placement; it should cost cache", system)
	}
}

// Step N+1 carries step N's messages as a byte prefix, always.
func TestEveryStepIsAPrefixOfTheNext(t *testing.T) {
	r := newRig(t)
	n, steps, previous := 0, 0, ""
	conversations(t, func(body string) string {
		n++
		r.recall.set(fmt.Sprintf("memory %d", n))
		r.sleep(90 * time.Second)
		r.post(body)
		got := r.one().body
		if prefix := strings.TrimSuffix(previous, "]}"); previous != "" && agent(body) == agent(previous) {
			steps++
			if !strings.HasPrefix(got, prefix) {
				t.Fatalf("request %d does not begin with the one before it\nbefore %s\nthen   %s", n, previous, got)
			}
		}
		previous = got
		return got
	})
	if steps < 50 {
		t.Errorf("only %d steps were compared", steps)
	}
}

// agent is the part of a body that tells its conversation.
func agent(body string) string {
	head, _, _ := strings.Cut(body, "rule")
	return head
}
