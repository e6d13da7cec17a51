package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/identity"
)

// reminders is a Messages body: a question, n results each with a text of a
// harness's own, and what comes after.
func reminders(n int, text, after string) string {
	loop := fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"ok"},{"type":"text","text":%q}]}`, text)
	return `{"model":"m","messages":[{"role":"user","content":"do it"}` + strings.Repeat(","+loop, n) + after + `]}`
}

// However much of a body is text of which somebody must tell who typed it, so
// much of it is read and no more, the newest first. What is not read stays what
// it is.
func TestHeardIsBounded(t *testing.T) {
	text := "<system-reminder>" + strings.Repeat("x", 4<<10) + "</system-reminder>"
	const n = 2000
	req, err := dialect.Messages{}.Parse([]byte(reminders(n, text, "")))
	if err != nil {
		t.Fatal(err)
	}
	x := &reading{req: req, client: profileOf("")}
	if err := x.demoteResults(); err != nil {
		t.Fatal(err)
	}
	var tools, turns int
	for _, m := range req.Messages {
		switch m.Role {
		case dialect.RoleTool:
			tools++
		case dialect.RoleUser:
			turns++
			if tools > 0 {
				t.Fatal("an older message was read, and a newer was not")
			}
		}
	}
	if read := tools * len(text); read > maxRead+len(text) || read < maxRead/2 || tools+turns != n+1 {
		t.Errorf("%d bytes of texts were read in %d messages, %d turns are left", read, tools, turns)
	}
	if words, _ := x.words(); words != "" {
		t.Errorf("a human said %q, and nobody read it", words)
	}
	if x.spent > maxRead+len(text)+2*textCost {
		t.Errorf("%d bytes were heard", x.spent)
	}
}

// A loop that is too long to be read keeps what its turn was given, byte for
// byte, and gets nothing new.
func TestLongLoopsKeepTheirBlocks(t *testing.T) {
	r := messagesRig(t)
	r.recall.set("one")
	r.post(`{"model":"m","messages":[{"role":"user","content":"do it"}]}`)
	r.sent()
	r.turns()
	r.recall.set("one", "two")
	text := "<system-reminder>" + strings.Repeat("x", 8<<10) + "</system-reminder>"
	for _, n := range []int{300, 301} {
		got := r.post(reminders(n, text, ""))
		lines := apis[1].lines(t, r.one().body)
		if diff := cmp.Diff([]string{"user: [one]", "user: do it", "call: c"}, lines[:3]); diff != "" || got.status != StatusReplayed || got.memories != "1" {
			t.Errorf("%d steps: status %s, %s memories (-want +got):\n%s", n, got.status, got.memories, diff)
		}
		for _, turn := range r.turns() {
			t.Errorf("%d steps: %q is remembered", n, turn.Messages[0].Text)
		}
	}
	got := r.post(reminders(300, text, `,{"role":"assistant","content":"done"},{"role":"user","content":"and now?"}`))
	if lines := apis[1].lines(t, r.one().body); got.status != StatusInjected || lines[len(lines)-2] != "user: [two]" {
		t.Errorf("a person behind it: status %s, %q", got.status, lines[len(lines)-2:])
	}
}

// Who has no memory has no text read: whose memory it is stands in the head and
// in ids.
func TestNobodysTextsAreNotRead(t *testing.T) {
	r := messagesRig(t, func(c *Config, _ *Deps) { c.Identity.Anonymous = identity.AnonymousOff })
	body := `{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"ok"},{"type":"text","text":"<system-reminder>be brief</system-reminder>"}]}]}`
	if got := r.post(body); got.status != StatusNoUser {
		t.Errorf("status %s, want %s before the texts say that nobody asked", got.status, StatusNoUser)
	}
	if got := r.post(body, "X-Remora-User", "ines"); got.status != StatusUnsupported {
		t.Errorf("status %s", got.status)
	}
}
