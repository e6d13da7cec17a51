package proxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/recall/fence"
)

// provider simulates a prompt cache. One without marks keeps every prefix of
// every request. One with marks keeps only prefixes that end at a marked piece,
// and finds one only at a mark or in the few pieces before it, as Anthropic
// does.
type provider struct {
	marks bool
	seen  map[string]bool
}

// lookback is how many pieces before a mark are looked at for a prefix that was
// kept.
const lookback = 20

// bill returns how many bytes of the client's own pieces were cached, and how
// many there were. Inserted blocks count on neither side, so the figures
// compare with and without Remora.
func (p *provider) bill(pieces []piece) (cached, all int) {
	var prefixes []string
	prefix := ""
	for _, one := range pieces {
		prefix += one.raw
		prefixes = append(prefixes, prefix)
	}
	hit := -1 // the last piece that is cached
	for i, one := range pieces {
		switch {
		case !p.marks:
			if hit == i-1 && p.seen[prefixes[i]] {
				hit = i
			}
		case one.marked:
			for j := i; j >= 0 && j > i-lookback; j-- {
				if p.seen[prefixes[j]] {
					hit = max(hit, j)
					break
				}
			}
		}
	}
	for i, one := range pieces {
		if !p.marks || one.marked {
			p.seen[prefixes[i]] = true
		}
		if fence.Contains(one.line) {
			continue
		}
		all += len(one.raw)
		if i <= hit {
			cached += len(one.raw)
		}
	}
	return cached, all
}

// conversations drives multi-turn, tool-looping conversations through post and
// returns the cached share.
func (a api) conversations(t *testing.T, post func(c int, body string) string) float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	p := provider{marks: a.marks, seen: map[string]bool{}}
	cached, all := 0, 0
	for c := range 12 {
		history := []string{fmt.Sprintf("system: You are agent %d. %s", c, strings.Repeat("rule ", 80))}
		send := func() {
			some, whole := p.bill(a.pieces(t, post(c, a.body(history...))))
			cached, all = cached+some, all+whole
		}
		for turn := range 3 + rng.IntN(5) {
			history = append(history, fmt.Sprintf("user: question %d of %d %s", turn, c, strings.Repeat("word ", 40)))
			send()
			for step := range rng.IntN(5) {
				id := fmt.Sprintf("t%d-%d-%d", c, turn, step)
				history = append(history, "call: "+id, "result: "+id)
				send()
			}
			history = append(history, fmt.Sprintf("assistant: answer %d of %d", turn, c))
		}
	}
	return float64(cached) / float64(all)
}

// The promise of the ledger: the provider's prompt cache does not notice
// Remora.
func TestPromptCacheShare(t *testing.T) { inEach(t, testPromptCacheShare) }

func testPromptCacheShare(t *testing.T, a api) {
	share := func(opts ...rigOption) float64 {
		r := a.rig(t, opts...)
		n := 0
		return a.conversations(t, func(_ int, body string) string {
			n++
			r.recall.set(fmt.Sprintf("a different memory for each request, %d", n))
			r.sleep(20 * time.Second)
			r.post(body)
			return r.one().body
		})
	}
	bare := a.conversations(t, func(_ int, body string) string { return body })
	ledger := share()
	system := share(func(c *Config, _ *Deps) { c.Injection.Placement = PlacementSystem })
	t.Logf("cached share: without Remora %.3f, beforeUser %.3f, system %.3f", bare, ledger, system)
	if bare < 0.3 {
		t.Errorf("cached share %.4f without Remora: the simulation shows nothing", bare)
	}
	if ledger != bare {
		t.Errorf("cached share %.4f with the ledger, want %.4f as without Remora", ledger, bare)
	}
	if system < bare-0.02 || system > bare { // conversations no longer have their system prompt in common
		t.Errorf("cached share %.4f with system placement, want little less than %.4f", system, bare)
	}
}

// Step N+1 carries step N's messages as a byte prefix, always.
func TestEveryStepIsAPrefixOfTheNext(t *testing.T) { inEach(t, testEveryStepIsAPrefixOfTheNext) }

func testEveryStepIsAPrefixOfTheNext(t *testing.T, a api) {
	r := a.rig(t)
	n, steps, previous, before := 0, 0, "", -1
	a.conversations(t, func(c int, body string) string {
		n++
		r.recall.set(fmt.Sprintf("memory %d", n))
		r.sleep(90 * time.Second)
		r.post(body)
		got := r.one().body
		if c == before {
			steps++
			a.grows(t, previous, got)
		}
		previous, before = got, c
		return got
	})
	if steps < 50 {
		t.Errorf("only %d steps were compared", steps)
	}
}
