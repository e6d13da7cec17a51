package backend_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/backend"
)

// In curated mode a conversation has the files from its first turn on, byte for
// byte, in the system prompt or as a message, and nothing is remembered.
func TestCuratedConversation(t *testing.T) {
	for _, placement := range []string{proxy.PlacementSystem, proxy.PlacementBeforeUser} {
		dir, log := t.TempDir(), &logged{}
		file := filepath.Join(dir, backend.UserFile)
		if err := os.WriteFile(file, []byte("- Ines likes tea.\n- Her mail is ines@example.org\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		red := redactor(t)
		redacted := func(text string) string { text, _ = red.Redact(text); return text }
		c, err := backend.NewCurated(backend.CuratedConfig{Dir: dir}, nil, backend.Deps{Redact: redacted, Log: slog.New(slog.NewJSONHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		a := proxied(t, log, c, func(cfg *proxy.Config) { cfg.Injection.Placement = placement })
		first := []string{"system: You are helpful.", "user: Hello there, who am I?"}
		status, sent := a.says(first...)
		if status != "injected" || !strings.Contains(sent, "USER.md: ") || !strings.Contains(sent, "Ines likes tea.") || strings.Contains(sent, "ines@example.org") {
			t.Errorf("%s: %s %s", placement, status, sent)
		}
		if err := os.WriteFile(file, []byte("- Ines likes coffee.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		status, next := a.says(append(first, "assistant: Noted.", "user: What do I drink in the morning?")...)
		if status != "replayed" || !strings.HasPrefix(next, strings.TrimSuffix(sent, "]}")) || strings.Contains(next, "coffee") {
			t.Errorf("%s: the next turn: %s\n%s\n%s", placement, status, sent, next)
		}
		if _, other := a.says("system: You are helpful.", "user: Good morning to you, who am I?"); !strings.Contains(other, "Ines likes coffee.") {
			t.Errorf("%s: another conversation: %s", placement, other)
		}
		if placement == proxy.PlacementSystem {
			if i := strings.Index(sent, `"role":"user"`); strings.Index(sent, "likes tea") > i {
				t.Errorf("it is not in the system prompt: %s", sent)
			}
		}
		if strings.Contains(a.log.String(), "memory_gateway") || strings.Contains(a.log.String(), "likes") {
			t.Errorf("log %s", a.log)
		}
	}
}

// The files of a large curated memory are cut where the conversation has no more
// room.
func TestCuratedFits(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{backend.MemoryFile, backend.UserFile} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat("A note about things.\n", 3000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := backend.NewCurated(backend.CuratedConfig{Dir: dir}, nil, backend.Deps{Redact: strings.Clone})
	if err != nil {
		t.Fatal(err)
	}
	a := proxied(t, &logged{}, c, nil)
	status, sent := a.says("user: Hello there, who am I?")
	if n := len(sent); status != "injected" || n < 12_000 || n > 2*proxy.DefaultConfig().Ledger.MaxTokens+2000 {
		t.Errorf("%s, %d bytes", status, n)
	}
}
