package persist

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// planted is a conversation of a fixture.
type planted struct {
	name  string
	turns []Turn
	facts []string // that should be saved
	noise []string // that should not
	wrong []string // corrected later in the conversation, and not to be recalled
}

func readPlanted(t testing.TB, file string) []planted {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "audit", file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []planted
	var role string
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		if name, ok := strings.CutPrefix(line, "== "); ok {
			out = append(out, planted{name: name})
			continue
		}
		c := &out[len(out)-1]
		if line == "user" || line == "assistant" {
			role = line
			at = at.Add(20 * time.Second)
			if role == "user" {
				id := strings.ReplaceAll(c.name, " ", "-") + "-" + string(rune('a'+len(c.turns)))
				c.turns = append(c.turns, Turn{ID: id, Scope: testScope, Conversation: c.name, Source: "test"})
			}
			turn := &c.turns[len(c.turns)-1]
			turn.Messages = append(turn.Messages, Message{Role: storage.Role(role), Time: storage.TimeOf(at)})
			continue
		}
		if fact, ok := strings.CutPrefix(line, "+ "); ok {
			c.facts, line = append(c.facts, fact), fact
		} else if noise, ok := strings.CutPrefix(line, "- "); ok {
			c.noise, line = append(c.noise, noise), noise
		} else if wrong, ok := strings.CutPrefix(line, "~ "); ok {
			c.wrong, line = append(c.wrong, wrong), wrong
		}
		turn := &c.turns[len(c.turns)-1]
		m := &turn.Messages[len(turn.Messages)-1]
		apart := strings.HasPrefix(line, ">") || strings.HasPrefix(line, "```") || strings.HasSuffix(m.Text, "```")
		if m.Text != "" && (apart || !strings.ContainsAny(m.Text[len(m.Text)-1:], ".!?")) {
			m.Text += "\n" // for people who leave out full stops, and around quotations and code
		} else if m.Text != "" {
			m.Text += " "
		}
		m.Text += line
	}
	return out
}

const century = 100 * 365 * 24 * time.Hour
