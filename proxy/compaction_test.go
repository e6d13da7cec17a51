package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/recall/fence"
)

const compactionBlock = `{"type":"compaction","content":"They spoke of tea.","signature":"c2ln"}`

// What asks for a compaction is no turn: nothing is searched or stored for it,
// and what earlier turns inserted goes with it, so that the cached prefix
// stays.
func TestCompactionsAreNoTurns(t *testing.T) {
	for _, tt := range []struct {
		api        int
		path, more string
	}{
		{1, "/v1/messages", `"compaction":{"type":"summarize"},`},
		{3, "/v1/responses/compact", ""},
	} {
		a := apis[tt.api]
		r := a.rig(t)
		r.recall.set("tea")
		r.post(a.body("user: q1"))
		first := r.one().body
		r.turns()
		r.recall.set("cake")
		body := a.body("user: q1", "assistant: fine", "user: sum it up")
		body = strings.Replace(body, "{", "{"+tt.more, 1)
		got := r.postTo(tt.path, body)
		if got.status != StatusReplayed || got.memories != "1" {
			t.Errorf("%s: status %s with %s memories, want replayed with 1", tt.path, got.status, got.memories)
		}
		if sent := r.one().body; !strings.Contains(sent, "tea") || strings.Contains(sent, "cake") {
			t.Errorf("%s: sent %s after %s", tt.path, sent, first)
		}
		if turns := r.turns(); len(turns) != 0 {
			t.Errorf("%s: %d turns are stored for it", tt.path, len(turns))
		}
	}
}

// Nothing is inserted before a compaction, and what it stands for may be
// recalled again.
func TestNothingIsInsertedBeforeACompaction(t *testing.T) {
	r := messagesRig(t)
	r.recall.set("tea")
	user := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	conversation := func(messages ...string) string {
		return `{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`
	}
	r.post(conversation(user("q1")))
	r.one()
	compacted := `{"role":"assistant","content":[` + compactionBlock + `]}`
	body := conversation(user("q1"), `{"role":"assistant","content":"fine"}`, compacted, user("q2"))
	got := r.post(body)
	sent := r.one().body
	before, after, _ := strings.Cut(sent, compactionBlock)
	if fence.Contains(before) || !fence.Contains(after) || got.status != StatusInjected {
		t.Errorf("status %s, sent %s", got.status, sent)
	}
	r.sleep(time.Hour)
	own := conversation(`{"role":"user","content":[` + compactionBlock + `,{"type":"text","text":"q3"}]}`)
	r.post(own)
	if sent := r.one().body; strings.Index(sent, "compaction") > strings.Index(sent, "tea") || !fence.Contains(sent) {
		t.Errorf("sent %s", sent)
	}
	only := conversation(user("q0"), `{"role":"user","content":[`+compactionBlock+`]}`)
	if got := r.post(only); r.one().body != only {
		t.Errorf("status %s: inserted before a compaction", got.status)
	}
}

// A message with role system in the middle of a conversation is nobody's words,
// and changes neither where a block stands nor what a turn is.
func TestSystemMessagesInTheMiddle(t *testing.T) {
	r := messagesRig(t)
	r.recall.set("tea")
	const head, note = `{"model":"m","messages":[{"role":"user","content":"q1"}`, `,{"role":"system","content":"I am the user's boss. My name is Kim.","clear_at":"next_user_message"}`
	if got := r.post(head + note + `]}`); got.status != StatusInjected {
		t.Errorf("status %s, want injected", got.status)
	}
	first := r.one().body
	r.recall.set()
	if got := r.post(head + note + `,{"role":"assistant","content":"fine"},{"role":"user","content":"q2"}]}`); got.status != StatusReplayed {
		t.Errorf("status %s, want replayed", got.status)
	}
	if second := r.one().body; !strings.HasPrefix(second, strings.TrimSuffix(first, "]}")) {
		t.Errorf("%s does not begin with %s", second, first)
	}
	var texts []string
	for _, turn := range r.turns() {
		texts = append(texts, turn.Messages[0].Text)
	}
	if diff := cmp.Diff([]string{"q1", "q2"}, texts); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
