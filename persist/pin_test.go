package persist

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// pin sets the tag, or takes it away.
func (p running) pin(t *testing.T, id string, pinned bool) storage.Memory {
	t.Helper()
	return p.edit(t, id, func(m *storage.Memory) error {
		m.Tags = slices.DeleteFunc(m.Tags, func(tag string) bool { return tag == storage.PinnedTag })
		if pinned {
			m.Tags = append(m.Tags, storage.PinnedTag)
		}
		return nil
	})
}

// What is pinned does not expire, also if it is said again, and expires as
// though said now once it is pinned no more.
func TestPinnedDoesNotExpire(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, _ *handIndex) {
		p.settle(t, userTurn("t1", "I live in Porto."))
		fact, passage := factWith(t, store, "Porto"), "t1.0"
		for _, id := range []string{fact, passage} {
			if stored(t, store, id).ExpiresAt == 0 {
				t.Fatalf("%s never expires", id)
			}
			if m := p.pin(t, id, true); m.ExpiresAt != 0 {
				t.Errorf("%s: pinned, it expires at %d", id, m.ExpiresAt)
			}
		}
		p.settle(t, userTurn("t2", "I live in Porto."))
		p.settle(t, userTurn("t1", "I live in Porto."))
		if m := stored(t, store, fact); m.ExpiresAt != 0 || !facts.Pinned(&m) || m.Confidence <= 0.6 {
			t.Errorf("said again: %+v", m)
		}
		if m := stored(t, store, passage); m.ExpiresAt != 0 || !facts.Pinned(&m) {
			t.Errorf("its turn again: %+v", m)
		}
		time.Sleep(3 * 365 * 24 * time.Hour)
		for id, keep := range map[string]time.Duration{fact: p.cfg.Facts.LongRetention, passage: p.cfg.Retention} {
			want := storage.TimeOf(time.Now().Add(keep))
			if m := p.pin(t, id, false); m.ExpiresAt != want {
				t.Errorf("%s: pinned no more, it expires at %d, want %d", id, m.ExpiresAt, want)
			}
			if _, err := p.Undo(t.Context(), testScope, id, Cause{}); err != nil {
				t.Fatal(err)
			}
			if m := stored(t, store, id); m.ExpiresAt != 0 || !facts.Pinned(&m) {
				t.Errorf("%s: taken back: %+v", id, m)
			}
		}
	})
}

// Taking back a pin that is older than the memory would have lived does not
// make it vanish.
func TestUndoOfAnOldPin(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, _ *handIndex) {
		m := given("I live in Porto.")
		m.ExpiresAt = storage.TimeOf(time.Now().Add(time.Hour))
		id := p.remember(t, m)[0].Memory.ID
		p.pin(t, id, true)
		time.Sleep(2 * time.Hour)
		if _, err := p.Undo(t.Context(), testScope, id, Cause{}); err != nil {
			t.Fatal(err)
		}
		if m := stored(t, store, id); facts.Pinned(&m) || m.ExpiresAt <= storage.TimeOf(time.Now()) {
			t.Errorf("got %+v", m)
		}
		// Given with the tag, it never had an expiry.
		m = given("I play the oboe.")
		m.Tags, m.ExpiresAt = []string{storage.PinnedTag}, storage.TimeOf(time.Now().Add(time.Hour))
		if m := p.remember(t, m)[0].Memory; m.ExpiresAt != 0 {
			t.Errorf("given as pinned: %+v", m)
		}
	})
}

// Pinned facts are not evicted, whatever their value, and are superseded all
// the same.
func TestPinnedIsNotEvicted(t *testing.T) {
	withPipeline(t, func(c *Config) { c.Facts.Max = 5; c.Audit.PerAudit = 20 }, func(t *testing.T, p running, store *faulty, _ *indexed) {
		p.settle(t, userTurn("first", "I live in Porto."))
		kept := factWith(t, store, "Porto")
		m := p.pin(t, kept, true)
		year := storage.TimeOf(time.Now().Add(365 * 24 * time.Hour))
		if v := p.cfg.Facts.Value(&m, year); v != m.Priority {
			t.Errorf("in a year it is worth %g, want its priority, %g", v, m.Priority)
		}
		p.edit(t, kept, func(m *storage.Memory) error { m.Priority = 0; return nil })
		more := func(turns int, name rune) {
			for i := range turns {
				time.Sleep(24 * time.Hour)
				p.settle(t, userTurn(fmt.Sprintf("%c%d", name, i), fmt.Sprintf("My friend %c%s plays chess.", name+rune(i), strings.Repeat("x", i+3))))
			}
		}
		more(8, 'A')
		stored(t, store, kept)
		if n := len(factsOf(t, store, testScope)); n != 5 {
			t.Errorf("%d facts, want 5", n)
		}
		p.settle(t, userTurn("last", "I live in Rome."))
		if m := stored(t, store, kept); m.SupersededBy == "" || m.ExpiresAt != 0 {
			t.Errorf("superseded: %+v", m)
		}
		// Pinned no more, it goes.
		p.pin(t, kept, false)
		more(4, 'M')
		if _, err := store.Memory(t.Context(), testScope, kept); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("pinned no more: %v", err)
		}
	})
}

// If more is pinned than fits, all else goes and nothing worse happens.
func TestMorePinnedThanFit(t *testing.T) {
	withPipeline(t, func(c *Config) { c.Facts.Max = 2 }, func(t *testing.T, p running, store *faulty, _ *indexed) {
		for _, text := range []string{"I live in Porto.", "I play the oboe.", "I have two cats."} {
			m := given(text)
			m.Tags = []string{storage.PinnedTag}
			p.remember(t, m)
		}
		p.settle(t, userTurn("t1", "My sister works as a surgeon."))
		if got := current(factsOf(t, store, testScope)); len(got) != 3 {
			t.Errorf("facts: %v", got)
		}
	})
}

func TestPinnedPassagesAreNotTrimmed(t *testing.T) {
	withPipeline(t, func(c *Config) { c.Facts.EpisodeBytes = 1 << 20; c.TurnsPerSecond = 0 }, func(t *testing.T, p running, store *faulty, _ *indexed) {
		for i := range 30 {
			p.settle(t, userTurn(fmt.Sprintf("t%02d", i), strings.Repeat(fmt.Sprintf("word%d and more words. ", i), 2500)))
			if i == 0 {
				p.pin(t, "t00.0", true)
			}
		}
		stored(t, store, "t00.0")
		if _, err := store.Memory(t.Context(), testScope, "t00.1"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("the next oldest: %v", err)
		}
	})
}

// A fact that is borne out elsewhere stays pinned when its conversation goes.
func TestPinnedStaysElsewhere(t *testing.T) {
	byHand(t, func(t *testing.T, p running, store *faulty, _ *handIndex) {
		for i, conversation := range []string{"c1", "c2"} {
			turn := userTurn(fmt.Sprint("t", i), "I live in Porto.")
			turn.Conversation = conversation
			p.settle(t, turn)
			time.Sleep(time.Hour)
		}
		p.pin(t, factWith(t, store, "Porto"), true)
		if _, err := p.ForgetConversation(t.Context(), testScope, "c1"); err != nil {
			t.Fatal(err)
		}
		if m := stored(t, store, factWith(t, store, "Porto")); m.Conversation != "c2" || !facts.Pinned(&m) || m.ExpiresAt != 0 {
			t.Errorf("got %+v", m)
		}
	})
}
