package persist

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// memories returns all memories of a scope.
func memories(t *testing.T, s storage.Store, scope storage.Scope) []storage.Memory {
	t.Helper()
	page, err := s.Scan(context.Background(), scope, storage.Query{})
	if err != nil || page.Next != "" {
		t.Fatalf("scan: %v, next %q", err, page.Next)
	}
	return page.Memories
}

// TestOriginalsOfPersonalDataAreKept checks that the owner of a memory can
// restore the personal data in it, from every passage of a long message, that
// secrets can't be restored, and that the index has neither.
func TestOriginalsOfPersonalDataAreKept(t *testing.T) {
	store := newFaulty()
	index := &indexed{}
	p := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
	const secret = "ghp_q7Zk2mXv9Lr4Tb8Nw3Hs6Jd1Pc5Fg0YyA1B2"
	sentence := "Write to anna@example.org, or to [EMAIL], or call +41 44 668 18 00 about " + secret + ". "
	text := "  " + strings.Repeat(sentence, 40)
	mustEnqueue(t, p.Pipeline, turnOf(userScope(1), "t1", text, "ok"), turnOf(userScope(2), "t2", sentence, "ok"))
	mustFlush(t, p.Pipeline)

	var restored strings.Builder
	keys := map[string]bool{}
	of := memories(t, store, userScope(1))
	if len(of) < 3 {
		t.Fatalf("got %d memories, want several passages", len(of))
	}
	for _, m := range of {
		back, err := redact.Restore(m.Text, m.Redactions)
		if err != nil {
			t.Fatalf("%v: %q %v", err, m.Text, m.Redactions)
		}
		if strings.Count(back, "[PHONE]") > 0 || strings.Count(back, "[EMAIL]") != strings.Count(m.Text, "or to [EMAIL]") {
			t.Errorf("restored: %q", back)
		}
		restored.WriteString(back)
		for key, value := range m.Redactions {
			keys[key] = true
			if strings.Contains(value, secret[:12]) || strings.Contains(value, "API_KEY") {
				t.Error("a secret is among the originals")
			}
		}
	}
	if n := strings.Count(restored.String(), "anna@example.org"); n != 40 {
		t.Errorf("got the address back %d times, want 40", n)
	}
	if len(keys) != 2 {
		t.Errorf("got %d hashes of two originals", len(keys))
	}
	for _, m := range memories(t, store, userScope(2)) {
		for key := range m.Redactions {
			if keys[key] {
				t.Error("two users' hashes of one original are the same")
			}
		}
	}
	for _, ms := range index.turns {
		for _, m := range ms {
			if m.Redactions != nil {
				t.Error("the index was handed originals")
			}
		}
	}
}

func TestOriginalsCanBeDisabled(t *testing.T) {
	store := newFaulty()
	cfg := DefaultConfig()
	cfg.KeepOriginals = false
	p := start(t, New(cfg, store, store, nil, newRedactor(t), nil, nil))
	mustEnqueue(t, p.Pipeline, turnOf(userScope(1), "t1", "write to anna@example.org", "ok"))
	mustFlush(t, p.Pipeline)
	of := memories(t, store, userScope(1))
	if len(of) != 2 || of[0].Text != "write to [EMAIL]" || of[0].Redactions != nil {
		t.Errorf("got %+v", of)
	}
}

// TestTextsComeBeforeOriginals checks that originals are left out where a write
// has no room for both.
func TestTextsComeBeforeOriginals(t *testing.T) {
	red := newRedactor(t)
	turn := Turn{ID: "t1", Scope: testScope}
	for m := range 6 {
		var b strings.Builder
		for i := range redact.MaxOriginals {
			fmt.Fprintf(&b, "person%d.%d@example.org and the rest of the sentence. ", m, i)
		}
		text, originals := red.RedactWithOriginals(b.String())
		turn.Messages = append(turn.Messages, Message{Role: storage.RoleUser, Text: strings.TrimSpace(text), Originals: originals})
	}
	bare, full := episodesOf(turn, 1, nil, storage.MaxWrite), episodesOf(turn, 1, []byte("salt"), storage.MaxWrite)
	if len(bare) != len(full) {
		t.Fatalf("got %d memories, want %d", len(full), len(bare))
	}
	kept := 0
	for i := range full {
		if full[i].Text != bare[i].Text {
			t.Fatalf("memory %d: another text", i)
		}
		if full[i].Redactions != nil {
			kept++
		}
	}
	if err := (storage.Write{Scope: testScope, Turn: "t1", Memories: full}).Validate(); err != nil {
		t.Error(err)
	}
	if kept == 0 || kept == len(full) {
		t.Errorf("originals of %d of %d memories are kept, want some", kept, len(full))
	}
}
