package backend

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

func paths(all []asked) (out []string) {
	for _, a := range all {
		out = append(out, strings.TrimPrefix(a.path, "/api/memories/"))
	}
	return out
}

// A turn is one add of exactly two messages, then one flush.
func TestAddThenFlush(t *testing.T) {
	s := newServer(t)
	g, log, stop := running(t, gatewayConfig(s.URL))
	if err := g.Enqueue(turnOf("kite", "My password is hunter2.", "<think>Careful.</think>Noted.")); err != nil {
		t.Fatal(err)
	}
	stop()
	got := s.requests()
	if !slices.Equal(paths(got), []string{"add", "flush"}) {
		t.Fatalf("got %v", paths(got))
	}
	add := got[0].body
	if keys := slices.Sorted(maps.Keys(add)); !slices.Equal(keys, []string{"app_id", "messages", "project_id", "session_id", "user_id", "user_key"}) {
		t.Errorf("add has %v", keys)
	}
	if add["user_id"] != "ines" || add["user_key"] != key.Reveal() || add["session_id"] != "chat:kite" || add["app_id"] != "default" || add["project_id"] != "default" {
		t.Errorf("add %s", got[0].raw)
	}
	want := []any{
		map[string]any{"sender_id": "ines", "role": "user", "timestamp": 1_700_000_000_000.0, "content": "My password is [PASSWORD]."},
		map[string]any{"sender_id": "assistant", "role": "assistant", "timestamp": 1_700_000_000_500.0, "content": "Noted."},
	}
	if fmt.Sprint(add["messages"]) != fmt.Sprint(want) {
		t.Errorf("messages %v", add["messages"])
	}
	if flush := got[1].body; len(flush) != 4 || flush["user_id"] != "ines" || flush["user_key"] != key.Reveal() || flush["app_id"] != "default" || flush["project_id"] != "default" {
		t.Errorf("flush %s", got[1].raw)
	}
	added, flushed := log.events(eventAdd), log.events(eventFlush)
	if len(added) != 1 || added[0]["count"] != 2.0 || len(flushed) != 1 || added[0]["session"] != flushed[0]["session"] {
		t.Errorf("events %v, %v", added, flushed)
	}
	for _, private := range []string{key.Reveal(), "kite", "chat:", "hunter2", "Noted", "password"} {
		if strings.Contains(log.String(), private) {
			t.Errorf("%q is in the log: %s", private, log)
		}
	}
	if n := g.Stats(); n.Added != 1 || n.Flushed != 1 || n.Waiting != 0 {
		t.Errorf("stats %+v", n)
	}
}

// An add that fails is not followed by a flush, and neither is tried again.
func TestAddFailures(t *testing.T) {
	for _, failing := range []string{"add", "flush"} {
		for status, category := range map[int]Category{401: Unauthorized, 500: BadStatus, 302: BadStatus} {
			s := newServer(t)
			s.answers(func(path string) (int, string) {
				if strings.HasSuffix(path, failing) {
					return status, "hunter2 " + key.Reveal()
				}
				return 200, `{}`
			})
			g, log, stop := running(t, gatewayConfig(s.URL))
			if err := g.Enqueue(turnOf("c1", "I like tea.", "Noted.")); err != nil {
				t.Fatal(err)
			}
			stop()
			want, event := []string{"add"}, eventAddFailed
			if failing == "flush" {
				want, event = []string{"add", "flush"}, eventFlushFailed
			}
			if got := paths(s.requests()); !slices.Equal(got, want) {
				t.Errorf("%s %d: %v", failing, status, got)
			}
			e := log.events(event)
			if len(e) != 1 || e[0]["category"] != string(category) || e[0]["status"] != float64(status) || e[0]["operation"] != failing || e[0]["session"] == "" {
				t.Errorf("%s %d: events %v", failing, status, e)
			} else if failing == "flush" && e[0]["add_succeeded"] != true {
				t.Errorf("the failed flush does not report the add: %v", e)
			}
			if strings.Contains(log.String(), "hunter2") || strings.Contains(log.String(), key.Reveal()) || strings.Contains(log.String(), "tea") {
				t.Errorf("the log holds content: %s", log)
			}
			if n := g.Stats().Failed[failing][category]; n != 1 {
				t.Errorf("stats %+v", g.Stats())
			}
		}
	}
}

// What may not leave is not sent, and a turn without two sides is not one.
func TestNotSent(t *testing.T) {
	s := newServer(t)
	g, _, stop := running(t, gatewayConfig(s.URL))
	block := "<remora-memory-4f1c0a9be77d>\n- user: tea\n</remora-memory-4f1c0a9be77d>\n"
	one := turnOf("c1", "I like tea.", "Noted.")
	one.Messages = one.Messages[:1]
	turns := []persist.Turn{
		turnOf("c1", "I like tea.", "<think>never closed"), turnOf("c1", block, "Noted."), turnOf("c1", "hunter2", "Noted."), turnOf("c1", "I like tea.", " "),
		turnOf("", "I like tea.", "Noted."), one, {ID: "t", Conversation: "c1"}, turnOf("c1", "Please don't remember this: I like tea.", "Understood."),
	}
	for _, turn := range turns {
		if err := g.Enqueue(turn); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Enqueue(turnOf("c1", block+"I like tea.", "You said: "+block+"Tea.")); err != nil {
		t.Fatal(err)
	}
	stop()
	got := s.requests()
	if !slices.Equal(paths(got), []string{"add", "flush"}) || strings.Contains(got[0].raw, "remora-memory") || !strings.Contains(got[0].raw, `"I like tea."`) {
		t.Errorf("sent %v %v", paths(got), got)
	}
	if n := g.Stats(); n.Skipped != int64(len(turns)) || n.Added != 1 {
		t.Errorf("stats %+v", n)
	}
}

// Only what a user and an assistant said is sent, and never more than a message
// may have.
func TestRolesAndLength(t *testing.T) {
	s := newServer(t)
	g, _, stop := running(t, gatewayConfig(s.URL))
	turn := turnOf("c1", "I like tea.", strings.Repeat("wörd ", 50_000))
	turn.Messages = slices.Insert(turn.Messages, 1, persist.Message{Role: "tool", Text: "TOOL"}, persist.Message{Role: "system", Text: "SYSTEM"})
	turn.Messages = slices.Insert(turn.Messages, 0, persist.Message{Role: storage.RoleUser, Text: "First of all:", Time: 1})
	if err := g.Enqueue(turn); err != nil {
		t.Fatal(err)
	}
	stop()
	got := s.requests()
	if len(got) != 2 || strings.Contains(got[0].raw, "TOOL") || strings.Contains(got[0].raw, "SYSTEM") {
		t.Fatalf("sent %v", paths(got))
	}
	messages := got[0].body["messages"].([]any)
	user, answer := messages[0].(map[string]any), messages[1].(map[string]any)["content"].(string)
	if user["content"] != "First of all:\n\nI like tea." || user["timestamp"] != 1_700_000_000_000.0 {
		t.Errorf("the user's %v", user)
	}
	if len(answer) > maxContent || len(answer) < maxContent-100 || !strings.HasSuffix(answer, "...") {
		t.Errorf("the answer has %d bytes, ends in %q", len(answer), answer[len(answer)-10:])
	}
}

// Timestamps are positive and never go back, unless the clock does.
func TestTimestamps(t *testing.T) {
	g, err := NewGateway(gatewayConfig("http://127.0.0.1:1"), deps(&lines{}))
	if err != nil {
		t.Fatal(err)
	}
	g.deps.Now = func() time.Time { return time.UnixMilli(5000) }
	for i, tt := range []struct {
		at   storage.Time
		want int64
	}{{0, 5000}, {-7, 5000}, {4000, 5000}, {6000, 6000}, {5999, 6000}, {200_000, 200_000}, {100_000, 100_000}, {100_001, 100_001}} {
		if got := g.timestamp(tt.at); got != tt.want {
			t.Errorf("%d: %d gives %d, want %d", i, tt.at, got, tt.want)
		}
	}
}

// Enqueue never blocks: beyond its bounds turns are dropped and counted.
func TestQueueIsBounded(t *testing.T) {
	s := newServer(t)
	hang := make(chan struct{})
	s.answers(func(string) (int, string) { <-hang; return 200, `{}` })
	cfg := gatewayConfig(s.URL)
	cfg.Timeout = time.Minute
	g, _, _ := running(t, cfg)
	full := 0
	for i := range maxQueued + 10 {
		if err := g.Enqueue(turnOf("c1", fmt.Sprint("I like tea ", i), "Noted.")); errors.Is(err, persist.ErrFull) {
			full++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if full < 9 || int64(full) != g.Stats().Dropped { // one may be under way
		t.Errorf("%d of %d were dropped, %+v", full, maxQueued+10, g.Stats())
	}
	close(hang)
	eventually(t, "all are sent", func() bool { return g.Stats().Flushed == int64(maxQueued+10-full) })
	if g.bytes.Load() != 0 {
		t.Errorf("%d bytes are counted in an empty queue", g.bytes.Load())
	}
}

func TestQueueBytes(t *testing.T) {
	g, err := NewGateway(gatewayConfig("http://127.0.0.1:1"), deps(&lines{}))
	if err != nil {
		t.Fatal(err)
	}
	large := turnOf("c1", strings.Repeat("a", 1<<20), strings.Repeat("b", 1<<20))
	n := 0
	for ; g.Enqueue(large) == nil; n++ {
	}
	if n > maxQueuedBytes/(2*maxRead) || n < 100 {
		t.Errorf("%d large turns wait", n)
	}
}

// What waits when Remora stops is sent, for a while. A gateway that hangs does
// not keep it from stopping.
func TestStop(t *testing.T) {
	s := newServer(t)
	g, _, stop := running(t, gatewayConfig(s.URL))
	for range 20 {
		if err := g.Enqueue(turnOf("c1", "I like tea.", "Noted.")); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if n := g.Stats(); n.Flushed != 20 || n.Waiting != 0 {
		t.Errorf("stats %+v", n)
	}
	if err := g.Enqueue(turnOf("c1", "I like tea.", "Noted.")); !errors.Is(err, persist.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}

	hang := make(chan struct{})
	defer close(hang)
	s.answers(func(string) (int, string) { <-hang; return 200, `{}` })
	cfg := gatewayConfig(s.URL)
	cfg.Timeout = 50 * time.Millisecond
	g, _, stop = running(t, cfg)
	for range 500 {
		if err := g.Enqueue(turnOf("c1", "I like tea.", "Noted.")); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if n := g.Stats(); n.Dropped+n.Failed["add"][Timeout]+n.Failed["add"][Canceled] != 500 {
		t.Errorf("stats %+v", n)
	}
}

// A bug in one turn does not end the others.
func TestPanic(t *testing.T) {
	s := newServer(t)
	log := &lines{}
	d := deps(log)
	d.Redact = func(text string) string {
		if strings.Contains(text, "boom") {
			panic("hunter2")
		}
		return text
	}
	g, err := NewGateway(gatewayConfig(s.URL), d)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"boom", "I like tea."} {
		if err := g.Enqueue(turnOf("c1", text, "Noted.")); err != nil {
			t.Fatal(err)
		}
	}
	g.close()
	for turn := range g.queue {
		g.remember(t.Context(), &turn)
	}
	if n := g.Stats(); n.Skipped != 1 || n.Flushed != 1 || strings.Contains(log.String(), "hunter2") {
		t.Errorf("stats %+v, log %s", n, log)
	}
}
