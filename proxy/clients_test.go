package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/identity"
)

// A side call is given nothing new and leaves nothing; what the conversation
// carries already stays.
func TestSideCallsAreNoTurns(t *testing.T) { inEach(t, testSideCallsAreNoTurns) }

func testSideCallsAreNoTurns(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("the user's cat is called Miso")
	agent := []string{"User-Agent", "opencode/1.18.33"}
	title := a.body("system: You are a title generator.", "user: name of my cat?")
	if got := r.post(title, agent...); got.status != StatusOff || got.memories != "0" {
		t.Errorf("title: got %s with %s memories", got.status, got.memories)
	}
	if got := r.one().body; got != title {
		t.Errorf("the side call was changed: %s", got)
	}
	if got := r.post(a.body("user: name of my cat?"), agent...); got.status != StatusInjected {
		t.Errorf("turn: got %s", got.status)
	}
	enriched := r.one().body
	summary := a.body("user: name of my cat?", "assistant: fine", "user: Provide a detailed prompt for continuing our conversation above.")
	if got := r.post(summary, agent...); got.status != StatusReplayed {
		t.Errorf("summary: got %s", got.status)
	}
	a.grows(t, enriched, r.one().body)
	if got := len(r.recall.asked()); got != 1 {
		t.Errorf("searched %d times, want once", got)
	}
	if got := r.turns(); len(got) != 1 {
		t.Errorf("%d turns are stored, want 1", len(got))
	}
}

func TestSubAgentsReadOnly(t *testing.T) {
	for setting, want := range map[string]struct {
		status Status
		turns  int
	}{identity.SubAgentsOn: {StatusInjected, 1}, identity.SubAgentsRead: {StatusInjected, 0}, identity.SubAgentsOff: {StatusEmpty, 0}} {
		r := newRig(t, func(c *Config, _ *Deps) { c.Identity.SubAgents = setting })
		r.recall.set("the user's cat is called Miso")
		agent := []string{"User-Agent", "claude-cli/2", "X-Claude-Code-Agent-Id", "a1"}
		if got := r.post(chat("user: name of my cat?"), agent...); got.status != want.status {
			t.Errorf("%s: got %s, want %s", setting, got.status, want.status)
		}
		if got := r.turns(); len(got) != want.turns {
			t.Errorf("%s: %d turns are stored, want %d", setting, len(got), want.turns)
		}
		// The request's own word counts more.
		if got := r.post(chat("user: whose dog?"), append(agent, headerMemory, "on")...); got.status != StatusInjected || len(r.turns()) != 1 {
			t.Errorf("%s, asked to be on: got %s", setting, got.status)
		}
	}
}

// Text of the harness with role user is neither searched for nor stored.
func TestHarnessIsNoHuman(t *testing.T) {
	r := newRig(t)
	agent := []string{"User-Agent", "QwenCode/0.15.10"}
	r.post(chat("user: This is the Qwen Code. We are setting up the context for our chat.\nMy operating system is linux"), agent...)
	if got := r.turns(); len(got) != 0 {
		t.Errorf("%d turns are stored, want none", len(got))
	}
	if asked := r.recall.asked(); len(asked) == 1 && asked[0].Newest != "" {
		t.Errorf("searched for %q", asked[0].Newest)
	}
}

// The agent's working directory ranks what is recalled, and goes with what is
// stored, as a name that tells nothing.
func TestDirectoryIsAProject(t *testing.T) {
	r := newRig(t)
	project := func(directory string) string {
		t.Helper()
		body := chat("system: <env>\n  Working directory: "+directory+"\n</env>", "user: which script do we deploy with?")
		r.post(body, "User-Agent", "opencode/1", identity.HeaderConversation, directory)
		r.sleep(10 * time.Minute)
		asked, turns := r.recall.asked(), r.turns()
		if len(asked) != 1 || len(turns) != 1 || asked[0].Project != turns[0].Project {
			t.Fatalf("got %d searches, %d turns", len(asked), len(turns))
		}
		return asked[0].Project
	}
	one, again, two := project("/home/ines/heron"), project("/home/ines/heron"), project("/home/ines/egret")
	if one == "" || one != again || one == two || strings.Contains(one, "heron") {
		t.Errorf("got %q, %q and %q", one, again, two)
	}
}

// The newest words are cut once: the engine is told that they are.
func TestWordsAreCutOnce(t *testing.T) {
	r := newRig(t)
	r.post(chat("user: <file>x</file> who is Ines?"))
	asked := r.recall.asked()
	if len(asked) != 1 || asked[0].Newest != "who is Ines?" || !asked[0].HumanOnly {
		t.Errorf("asked for %+v", asked)
	}
}
