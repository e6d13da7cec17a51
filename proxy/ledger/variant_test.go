package ledger

import (
	"testing"
	"time"
	"unsafe"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// Of several ways in which a turn was sent, those that no request named tell a
// request that names none.
func TestEntryTells(t *testing.T) {
	now := time.Now()
	of := func(convs ...string) *entry {
		e := &entry{}
		for _, c := range convs {
			e.variants = append(e.variants, &variant{Injection: Injection{Conversation: c}, used: now})
		}
		return e
	}
	for _, tt := range []struct {
		e    *entry
		want string
	}{
		{nil, ""}, {of("C1"), "C1"}, {of("C1", "C1"), "C1"}, {of("C1", "C2"), ""}, {of("C1", "C2", "new:1"), "new:1"},
		{of("new:1", "C1", "C2"), "new:1"}, {of("new:1", "chain:1"), ""},
	} {
		if got := tt.e.conversation(now, time.Hour); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestMarkIsACopy: a mark must not keep the answer in memory.
func TestMarkIsACopy(t *testing.T) {
	body := `{"type":"tool_use","id":"toolu_1"}`
	if m := markOf(dialect.Reply{Call: body[24:31]}); m.call != body[24:31] || unsafe.StringData(m.call) == unsafe.StringData(body[24:31]) {
		t.Errorf("got %+v, want a copy of the id", m)
	}
}

// TestConversationName: the request's name comes first, then what the ledger
// knows, then the first turn where there is history or the entries can't be
// read, then a random name.
func TestConversationName(t *testing.T) {
	chain := []Hash{{Lo: 1}, {Lo: 2}, {Lo: 3}}
	for _, tt := range []struct {
		walk    Walk
		history bool
		want    string
	}{
		{Walk{Chain: chain, Named: "n", Known: "k"}, true, "n"},
		{Walk{Chain: chain, Known: "k"}, true, "k"},
		{Walk{Chain: chain}, true, "chain:" + HexHash(chain[1])},
		{Walk{Chain: chain, blind: true}, false, "chain:" + HexHash(chain[1])},
		{Walk{Chain: chain}, false, "new:random"},
	} {
		got := tt.walk.Conversation(func() (int, bool) { return 1, tt.history }, func() string { return "random" })
		if got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.walk, got, tt.want)
		}
	}
}
