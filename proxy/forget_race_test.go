package proxy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/remora-proxy/remora/proxy/identity"
)

// TestForgottenWhileSearched: what is forgotten between a search and its block
// is neither inserted nor replayed.
func TestForgottenWhileSearched(t *testing.T) {
	t.Parallel()
	for _, a := range apis {
		r := a.rig(t)
		r.recall.set("secret")
		r.recall.do = func() {
			r.h.Forget(r.recall.requests[len(r.recall.requests)-1].Scope, "m0-secret")
			r.recall.do = nil
		}
		got := r.post(a.body("user: q1"))
		if got.status != StatusEmpty || got.memories != "0" {
			t.Errorf("%s: %s, %s memories", a.name, got.status, got.memories)
		}
		r.recall.set()
		for i, messages := range [][]string{{"user: q1"}, {"user: q1", "assistant: fine", "user: q2"}} {
			if i > 0 {
				r.post(a.body(messages...))
			}
			if lines := a.lines(t, r.one().body); !slices.Equal(lines, messages) {
				t.Errorf("%s: request %d has %q", a.name, i, lines)
			}
		}
	}
}

// TestRefusalsTeachTheirUserAlone: refusals that nobody can explain move no
// block of another user's conversations.
func TestRefusalsTeachTheirUserAlone(t *testing.T) {
	t.Parallel()
	a := apis[0]
	r := a.rig(t)
	fine := replyWith("fine")
	r.answers(func(got received) (int, string, string) {
		if lines := a.lines(t, got.body); slices.Contains(lines, "user: [m]") {
			return 400, "application/json", `{"error":{"message":"no"}}`
		}
		return fine(got)
	})
	r.recall.set("bobfact")
	r.post(a.body("user: q1"), identity.HeaderUser, "bob")
	first := a.lines(t, r.one().body)
	r.recall.set("m")
	for i := range 2 {
		r.post(a.body("user: f"), identity.HeaderUser, "mallory", identity.HeaderConversation, fmt.Sprint(i))
	}
	r.sent()
	r.post(a.body("user: f"), identity.HeaderUser, "mallory", identity.HeaderConversation, "another")
	if got := a.lines(t, r.one().body); !slices.Equal(got, []string{"user: [m]\n\nf"}) {
		t.Errorf("who was refused twice sends %q", got)
	}
	r.recall.set()
	r.post(a.body("user: q1", "assistant: fine", "user: q2"), identity.HeaderUser, "bob")
	if got := a.lines(t, r.one().body); !slices.Equal(got[:len(first)], first) {
		t.Errorf("another sent %q and sends %q", first, got)
	}
}
