package persist

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// watchedFacts is a store that reports puts of facts. The auditor makes them,
// inside its round.
type watchedFacts struct {
	*faulty
	put func(facts int)
}

func (w *watchedFacts) Put(ctx context.Context, writes []storage.Write) error {
	facts := 0
	for i := range writes {
		for j := range writes[i].Memories {
			if writes[i].Memories[j].Kind == storage.KindFact {
				facts++
			}
		}
	}
	if facts > 0 {
		w.put(facts)
	}
	return w.faulty.Put(ctx, writes)
}

// TestRoundsAreBounded has many users talk at a time: a round holds the facts
// of as many as the limit allows, and changes those of a limited number of
// audits. No conversation is left out for that.
func TestRoundsAreBounded(t *testing.T) {
	const users, each = 12, 40
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.TurnsPerSecond = 0
		cfg.Audit.MaxConversations = 64
		cfg.Facts.CacheBytes = 16 << 10
		store := &watchedFacts{faulty: newFaulty()}
		p := start(t, New(cfg, store, store, &indexed{}, newRedactor(t), nil, nil))
		rounds := 0
		store.put = func(facts int) {
			rounds++
			if facts > roundAudits {
				t.Errorf("a round changes %d facts, want at most %d", facts, roundAudits)
			}
			all, largest := int64(0), int64(0)
			for _, d := range p.auditor.scopes {
				all, largest = all+d.Size(), max(largest, d.Size())
			}
			if all > cfg.Facts.CacheBytes+2*largest { // one that was held, one that was loaded
				t.Errorf("facts of %d users in %d bytes, the largest %d", len(p.auditor.scopes), all, largest)
			}
			if n := len(p.auditor.conversations); n > cfg.Audit.MaxConversations+cfg.Audit.MaxConversations/overflowShare+1 {
				t.Errorf("%d conversations are held, want at most %d", n, cfg.Audit.MaxConversations)
			}
		}
		for i := range each {
			for u := range users {
				id := fmt.Sprintf("t%d-%d", u, i)
				turn := turnOf(userScope(u), id, fmt.Sprintf("My friend %c%c%d plays chess.", 'A'+i%26, 'a'+i/26, i), "I see.")
				turn.Conversation = "c" + id
				mustEnqueue(t, p.Pipeline, turn)
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if rounds < users*each/roundAudits {
			t.Errorf("%d rounds are too few to show anything", rounds)
		}
		if n := p.Metrics().Audits.Shed; n != 0 {
			t.Errorf("%d turns were not audited", n)
		}
		for u := range users {
			got := current(factsOf(t, store.faulty, userScope(u)))
			if len(slices.Compact(got)) != each {
				t.Errorf("user %d: %d facts, want %d", u, len(got), each)
			}
		}
		p.stop()
	})
}
