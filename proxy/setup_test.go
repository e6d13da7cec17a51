package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// setup is what an agent says before its user does, with the reply that it
// gives itself.
var setup = []string{
	"system: You are an agent.",
	"user: This is the Qwen Code. We are setting up the context for our chat.\nToday's date is Monday.\nI'm currently working in the directory: /home/ines/heron\n",
	"assistant: Got it. Thanks for the context!",
}

// What a harness says first is alike in every conversation of a client, so it
// must neither name one nor count as its history: the same first words on
// another day would be the same turn, and take the earlier one's place.
func TestSetupNamesNoConversation(t *testing.T) { inEach(t, testSetupNamesNoConversation) }

func testSetupNamesNoConversation(t *testing.T, a api) {
	r := a.rig(t)
	agent := []string{"User-Agent", "QwenCode/0.15.10 (linux; x64)"}
	begin := append(setup[:3:3], "user: run the tests and tell me what fails")
	first := a.body(begin...)
	r.recall.set("one")
	r.post(first, agent...)
	r.post(first, agent...) // a retry
	r.sleep(10 * time.Minute)
	r.recall.set("two")
	r.post(first, agent...)
	turns := r.turns()
	if turns[0].Conversation != turns[1].Conversation || turns[0].ID != turns[1].ID {
		t.Errorf("a retry is another turn: %s of %q, then %s of %q", turns[0].ID, turns[0].Conversation, turns[1].ID, turns[1].Conversation)
	}
	if turns[1].Conversation == turns[2].Conversation || turns[1].ID == turns[2].ID {
		t.Errorf("ten minutes later it is the same turn %s of %q", turns[2].ID, turns[2].Conversation)
	}

	next := append(begin[:4:4], "assistant: all 12 pass", "user: then commit")
	r.post(a.body(next...), agent...)
	if got := r.turns()[0]; got.Conversation != turns[2].Conversation {
		t.Errorf("the next turn is in %q, want %q", got.Conversation, turns[2].Conversation)
	}
}

// What names a conversation of which nothing is known: the first message in
// which a human says something, once it was answered.
func TestFirstTurnNamesTheConversation(t *testing.T) {
	picture := `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`
	named := func(more ...string) string { return chat(append(setup[:3:3], more...)...) }
	for _, tt := range []struct {
		name, body string
		spent      int // of what may be read
		first      int // -1 = it begins one
	}{
		{"a setup alone", named("user: run the tests"), 0, -1},
		{"with an answer", named("user: run the tests", "assistant: all pass", "user: then commit"), 0, 3},
		{"and another", named("user: run the tests", "assistant: all pass", "user: then commit", "assistant: done", "user: and push"), 0, 3},
		{"a harness's message behind the setup", named("user: <system-reminder>be brief</system-reminder>", "user: run the tests", "assistant: all pass", "user: then commit"), 0, 4},
		{"a setup that nobody may read", named("user: run the tests"), maxRead, 1},
		{"no setup", chat("user: a", "assistant: b", "user: c"), 0, 0},
		{"no history", chat("user: a", "user: b"), 0, -1},
		{"a greeting", chat("assistant: Hello!", "user: a"), 0, -1},
		{"a picture first", strings.Replace(chat("user: a", "assistant: b", "user: c"), `{"role":"user","content":"a"}`, picture, 1), 0, 0},
	} {
		req, err := dialect.Chat{}.Parse([]byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		x := &reading{req: req, client: profileOf("QwenCode/1"), spent: tt.spent}
		first, history := x.began()
		if history != (tt.first >= 0) || history && first != tt.first {
			t.Errorf("%s: begins with message %d, history %t; want %d", tt.name, first, history, tt.first)
		}
	}
}
