package persist

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

func TestEpisodes(t *testing.T) {
	turn := turnOf(testScope, "t1", "When is it?", "On Monday.")
	turn.Messages[0].Time, turn.Messages[0].Speaker = 5000, "Ana"
	turn.Messages[1].Time = 4000 // the clock went back
	got := episodesOf(turn, time.Second, nil, storage.MaxWrite)
	want := []storage.Memory{{
		ID: "t1.0", Scope: testScope, Conversation: "c1", Kind: storage.KindEpisode, Text: "When is it?", Trust: 1, Source: "test",
		Provenance: storage.Provenance{Turn: "t1", Chain: "c0ffee", Role: storage.RoleUser, Speaker: "Ana", Seq: 0, Model: "m"},
		EventTime:  5000, ValidFrom: 5000, ExpiresAt: 6000,
	}, {
		ID: "t1.1", Scope: testScope, Conversation: "c1", Kind: storage.KindEpisode, Text: "On Monday.", Trust: 0.5, Source: "test",
		Provenance: storage.Provenance{Turn: "t1", Chain: "c0ffee", Role: storage.RoleAssistant, Seq: 1, Model: "m"},
		EventTime:  5001, ValidFrom: 5001, ExpiresAt: 6001,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("episodes (-want +got):\n%s", diff)
	}
}

func TestPassages(t *testing.T) {
	sentence := "The quick brown fox jumps over the lazy dog. "
	for _, c := range []struct {
		name, text string
		check      func(t *testing.T, passages []string)
	}{
		{"fits exactly", strings.Repeat("x", PassageRunes), func(t *testing.T, p []string) {
			if len(p) != 1 || len(p[0]) != PassageRunes {
				t.Errorf("got %d passages", len(p))
			}
		}},
		{"sentences", strings.Repeat(sentence, 60), func(t *testing.T, p []string) {
			for i, passage := range p {
				if i < len(p)-1 && !strings.HasSuffix(passage, "dog....") {
					t.Errorf("passage %d ends in %q", i, passage[len(passage)-20:])
				}
				if i > 0 && !strings.HasPrefix(passage, "...The") {
					t.Errorf("passage %d starts with %q", i, passage[:20])
				}
			}
		}},
		{"words", strings.Repeat("word ", 500), func(t *testing.T, p []string) {
			if !strings.HasSuffix(p[0], "word...") {
				t.Errorf("ends in %q", p[0][len(p[0])-20:])
			}
		}},
		{"no border", strings.Repeat("é", 5000), nil},
		{"han", strings.Repeat("这是一个句子。", 500), func(t *testing.T, p []string) {
			if !strings.HasSuffix(p[0], "。...") {
				t.Errorf("ends in %q", p[0][len(p[0])-20:])
			}
		}},
		{"lines", strings.Repeat("a line without a full stop\n", 100), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ms := episodesOf(turnOf(testScope, "t1", c.text, ""), time.Hour, nil, storage.MaxWrite)
			var passages []string
			var whole strings.Builder
			for i, m := range ms {
				passages = append(passages, m.Text)
				if n := utf8.RuneCountInString(m.Text); n > PassageRunes || !utf8.ValidString(m.Text) {
					t.Errorf("passage %d has %d characters", i, n)
				}
				text := m.Text
				if i > 0 {
					text = strings.TrimPrefix(text, extract.CutMark)
				}
				if i < len(ms)-1 {
					text = strings.TrimSuffix(text, extract.CutMark)
				}
				whole.WriteString(text)
			}
			dense := func(s string) string { return strings.Join(strings.Fields(s), "") }
			if dense(whole.String()) != dense(c.text) {
				t.Error("the passages do not add up to the text")
			}
			if c.check != nil {
				c.check(t, passages)
			}
		})
	}
}

// TestEpisodesFitOneWrite checks that the episodes of any turn are a write that
// stores accept, with rising times.
func TestEpisodesFitOneWrite(t *testing.T) {
	turn := turnOf(testScope, strings.Repeat("i", MaxTurnID), strings.Repeat("很长的一段话 ", 400_000), "answer")
	turn.Conversation, turn.Chain, turn.Model = strings.Repeat("c", maxConversation), strings.Repeat("h", maxName), strings.Repeat("m", maxName)
	for i := range 3000 {
		turn.Messages = append(turn.Messages, Message{Role: storage.RoleUser, Text: fmt.Sprint("message ", i)})
	}
	for _, messages := range [][]Message{turn.Messages, turn.Messages[1:]} {
		turn.Messages = messages
		ms := episodesOf(turn, time.Hour, nil, storage.MaxWrite)
		if err := (storage.Write{Scope: testScope, Turn: turn.ID, Memories: ms}).Validate(); err != nil {
			t.Error(err)
		}
		for i := 1; i < len(ms); i++ {
			if ms[i].EventTime <= ms[i-1].EventTime {
				t.Fatalf("time of passage %d does not rise", i)
			}
		}
	}
}

func TestLongMessagesAreCutAfterRedaction(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxMessageBytes = 2048
	p := New(cfg, nil, nil, nil, newRedactor(t), nil, nil)
	secret := "ghp_q7Zk2mXv9Lr4Tb8Nw3Hs6Jd1Pc5Fg0YyA1B2"
	for at := cfg.MaxMessageBytes - 60; at < cfg.MaxMessageBytes+10; at++ {
		text := strings.Repeat("y", at-1) + " " + secret + strings.Repeat(" z", 1000)
		got, err := p.redactor.prepare(turnOf(testScope, "t", text, ""))
		if err != nil {
			t.Fatal(err)
		}
		if kept := got.Messages[0].Text; len(kept) > cfg.MaxMessageBytes+len(extract.CutMark) || strings.Contains(kept, secret[:8]) {
			t.Fatalf("secret at %d: %d bytes kept, end %q", at, len(kept), kept[len(kept)-40:])
		}
	}
}
