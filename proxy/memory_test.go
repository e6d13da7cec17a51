package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

// roles shows the messages of a chat completion, with blocks shortened to their
// memories.
func roles(t *testing.T, body string) []string { return apis[0].lines(t, body) }

func TestModeTable(t *testing.T) { inEach(t, testModeTable) }

func testModeTable(t *testing.T, a api) {
	for _, tt := range []struct {
		mode   string
		rights rights
		first  Status // with something to recall
		second Status // the next turn of the conversation, again with something to recall
	}{
		{"on", rights{true, true, true, true, true}, StatusInjected, StatusInjected},
		{"read", rights{true, true, true, true, false}, StatusInjected, StatusInjected},
		{"write", rights{true, false, false, true, true}, StatusEmpty, StatusEmpty},
		{"observe", rights{false, true, false, false, true}, StatusObserved, StatusObserved},
		{"off", rights{}, StatusOff, StatusOff},
		{"OFF ", rights{}, StatusOff, StatusOff},
		{"yes", rights{}, StatusOff, StatusOff},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			if got := modeRights[parseMode([]string{tt.mode})]; got != tt.rights {
				t.Errorf("rights %+v, want %+v", got, tt.rights)
			}
			r := a.rig(t)
			r.recall.set("first")
			one := a.body("user: q1")
			got := r.post(one, headerMemory, tt.mode)
			if got.status != tt.first {
				t.Errorf("first status %s, want %s", got.status, tt.first)
			}
			up := r.one()
			if injected := up.body != one; injected != tt.rights.inject {
				t.Errorf("body changed: %t, want %t", injected, tt.rights.inject)
			}
			if asked := len(r.recall.asked()) > 0; asked != tt.rights.recall {
				t.Errorf("recalled: %t, want %t", asked, tt.rights.recall)
			}
			if turns := len(r.turns()); turns > 0 != tt.rights.persist {
				t.Errorf("persisted %d turns, want some: %t", turns, tt.rights.persist)
			}
			r.recall.set("second")
			if got := r.post(a.body("user: q1", "assistant: fine", "user: q2"), headerMemory, tt.mode); got.status != tt.second {
				t.Errorf("second status %s, want %s", got.status, tt.second)
			}
			want := []string{"user: q1", "assistant: fine", "user: q2"}
			if tt.rights.inject {
				want = []string{"user: [first]", "user: q1", "assistant: fine", "user: [second]", "user: q2"}
			}
			if diff := cmp.Diff(want, a.lines(t, r.one().body)); diff != "" {
				t.Errorf("second request (-want +got):\n%s", diff)
			}
		})
	}
}

// A mode that does not inject still repeats what an earlier mode did, or the
// cached prefix would break.
func TestModeWriteReplays(t *testing.T) { inEach(t, testModeWriteReplays) }

func testModeWriteReplays(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("first")
	r.post(a.body("user: q1"))
	first := r.one().body
	r.recall.set("second")
	got := r.post(a.body("user: q1", "assistant: fine", "user: q2"), headerMemory, "write")
	if got.status != StatusReplayed || got.memories != "1" {
		t.Errorf("status %s with %s memories, want replayed with 1", got.status, got.memories)
	}
	a.grows(t, first, r.one().body)
	// The turn has a none-entry: switched on again, nothing is inserted before
	// it.
	r.post(a.body("user: q1", "assistant: fine", "user: q2", "assistant: fine", "user: q3"))
	want := []string{
		"user: [first]", "user: q1", "assistant: fine", "user: q2", "assistant: fine", "user: [second]", "user: q3",
	}
	if diff := cmp.Diff(want, a.lines(t, r.one().body)); diff != "" {
		t.Errorf("third request (-want +got):\n%s", diff)
	}
}

func TestUnchangedWithoutMemory(t *testing.T) {
	weird := "{ \"messages\" : [ {\"content\":\"h\\u00e9\",\"role\":\"user\"} ],\n\"n\":1.50e0 , \"model\":\"m\"}"
	for _, tt := range []struct {
		name   string
		body   string
		header []string
		status Status
	}{
		{"nothing found", weird, nil, StatusEmpty},
		{"off", weird, []string{headerMemory, "off"}, StatusOff},
		{"not JSON", "{", nil, StatusUnsupported},
		{"no user", chat("system: s"), nil, StatusUnsupported},
		{"duplicate messages", `{"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]}`, nil, StatusUnsupported},
		{"too deep", `{"messages":[{"role":"user","content":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}]}`, nil, StatusUnsupported},
		{"two users named", weird, []string{identity.HeaderUser, "a", identity.HeaderUser, "b"}, StatusNoUser},
		{"foreign page", weird, []string{"Origin", "https://evil.example"}, StatusOff},
		{"cross-site fetch", weird, []string{"Sec-Fetch-Site", "cross-site"}, StatusOff},
		{"rebound host", weird, []string{"Host", "evil.example"}, StatusOff},
		{"unknown encoding", weird, []string{"Content-Encoding", "br"}, StatusUnsupported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			if tt.status != StatusEmpty {
				r.recall.set("must not show")
			}
			got := r.post(tt.body, tt.header...)
			if got.status != tt.status || got.code != 200 {
				t.Errorf("code %d, status %s, want 200, %s", got.code, got.status, tt.status)
			}
			if up := r.one(); up.body != tt.body {
				t.Errorf("upstream got %q, want %q", up.body, tt.body)
			}
		})
	}
}

func TestTooLargeStreamsThrough(t *testing.T) { inEach(t, testTooLargeStreamsThrough) }

func testTooLargeStreamsThrough(t *testing.T, a api) {
	big := a.body("user: " + strings.Repeat("x", 4000))
	for _, tt := range []struct {
		name   string
		change rigOption
	}{
		{"one body", func(c *Config, _ *Deps) { c.Limits.BodyBytes = 1 << 10 }},
		{"all bodies", func(c *Config, _ *Deps) { c.Limits.BodyBytes = 2 << 10; c.Limits.BufferedBytes = 2 << 10 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := a.rig(t, tt.change)
			r.recall.set("must not show")
			got := r.post(big)
			if got.status != StatusTooLarge || r.one().body != big {
				t.Errorf("status %s, want too-large with the body unchanged", got.status)
			}
		})
	}
}

func TestToolLoopRecallsOnce(t *testing.T) { inEach(t, testToolLoopRecallsOnce) }

func testToolLoopRecallsOnce(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("fact")
	r.answers(func(received) (int, string, string) { return 200, "application/json", a.calling })
	lines := []string{"user: do it"}
	previous := ""
	for step := range 31 {
		if step > 0 {
			lines = append(lines, fmt.Sprintf("call: c%d", step), fmt.Sprintf("result: c%d", step))
		}
		if step == 30 {
			r.answers(a.replyWith("done"))
		}
		got := r.post(a.body(lines...))
		want := StatusReplayed
		if step == 0 {
			want = StatusInjected
		}
		if got.status != want || got.memories != "1" {
			t.Fatalf("step %d: status %s with %s memories, want %s with 1", step, got.status, got.memories, want)
		}
		body := r.one().body
		a.grows(t, previous, body)
		previous = body
		r.sleep(10 * time.Second) // the loop outlives the replay window
	}
	if n := len(r.recall.asked()); n != 1 {
		t.Errorf("recalled %d times in one turn, want 1", n)
	}
	turns := r.turns()
	if len(turns) != 1 {
		t.Fatalf("persisted %d turns, want 1", len(turns))
	}
	var got []string
	for _, m := range turns[0].Messages {
		got = append(got, string(m.Role)+": "+m.Text)
	}
	if diff := cmp.Diff([]string{"user: do it", "assistant: done"}, got); diff != "" {
		t.Errorf("turn (-want +got):\n%s", diff)
	}
}

// A loop that Remora sees only the middle of (a restart without its ledger)
// gets nothing, now or later.
func TestUnknownToolLoopStaysBare(t *testing.T) { inEach(t, testUnknownToolLoopStaysBare) }

func testUnknownToolLoopStaysBare(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("fact")
	loop := []string{"user: do it", "call: c", "result: c"}
	for _, body := range []string{a.body(loop...), a.body(append(loop, "result: d")...)} {
		if got := r.post(body); got.status != StatusEmpty || r.one().body != body {
			t.Errorf("status %s, want empty with the body unchanged", got.status)
		}
	}
}

func TestSameQuestionAnotherDay(t *testing.T) { inEach(t, testSameQuestionAnotherDay) }

func testSameQuestionAnotherDay(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("yesterday")
	r.post(a.body("user: hi"))
	first := r.one().body
	r.turns()

	r.recall.set("meanwhile")
	r.sleep(30 * time.Second)
	if got := r.post(a.body("user: hi")); got.status != StatusReplayed || r.one().body != first {
		t.Errorf("a retry within a minute: status %s, want the same bytes replayed", got.status)
	}
	retried := r.turns()

	r.recall.set("today")
	r.sleep(24 * time.Hour)
	r.post(a.body("user: hi"))
	if diff := cmp.Diff([]string{"user: [today]", "user: hi"}, a.lines(t, r.one().body)); diff != "" {
		t.Errorf("the next day (-want +got):\n%s", diff)
	}
	fresh := r.turns()
	if retried[0].ID == fresh[0].ID || retried[0].Conversation == fresh[0].Conversation {
		t.Error("the same greeting a day later is the same turn; want a new one")
	}
}

func TestRegeneratedAnswerIsTheSameTurn(t *testing.T) { inEach(t, testRegeneratedAnswerIsTheSameTurn) }

func testRegeneratedAnswerIsTheSameTurn(t *testing.T, a api) {
	for _, header := range [][]string{nil, {identity.HeaderConversation, "c7"}} {
		r := a.rig(t)
		history := []string{"user: q1", "assistant: fine", "user: q2"}
		r.post(a.body(history[:1]...), header...)
		r.settle() // answers are read side by side, and the turns are compared in order
		r.post(a.body(history...), header...)
		r.settle()
		r.answers(a.replyWith("better"))
		r.sleep(10 * time.Minute)
		r.post(a.body(history...), header...)
		turns := r.turns()
		if len(turns) != 3 || turns[1].ID != turns[2].ID || turns[0].ID == turns[1].ID {
			t.Errorf("ids %s, want the second and third equal", cmp.Diff(turns[1].ID, turns[2].ID))
		}
		if turns[0].Conversation != turns[2].Conversation {
			t.Errorf("conversations %q and %q, want one", turns[0].Conversation, turns[2].Conversation)
		}
	}
}

// Two conversations begin alike and are given different memories: each goes on
// with its own.
func TestVariantsFollowTheirConversation(t *testing.T) {
	inEach(t, testVariantsFollowTheirConversation)
}

func testVariantsFollowTheirConversation(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("one")
	r.answers(a.replyWith("hello A"))
	r.post(a.body("user: hi"))
	r.sleep(2 * time.Minute)
	r.recall.set("two")
	r.answers(a.replyWith("hello B"))
	r.post(a.body("user: hi"))
	r.recall.set()
	r.sent()
	for _, tt := range []struct{ reply, memory string }{{"hello B", "two"}, {"hello A", "one"}, {"hello B", "two"}} {
		r.post(a.body("user: hi", "assistant: "+tt.reply, "user: next"))
		want := []string{"user: [" + tt.memory + "]", "user: hi", "assistant: " + tt.reply, "user: next"}
		if diff := cmp.Diff(want, a.lines(t, r.one().body)); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", tt.reply, diff)
		}
		r.sleep(2 * time.Minute)
	}
}

// The same reply to the same greeting in two named conversations.
func TestVariantsOfNamedConversations(t *testing.T) { inEach(t, testVariantsOfNamedConversations) }

func testVariantsOfNamedConversations(t *testing.T, a api) {
	r := a.rig(t)
	for _, c := range []string{"a", "b"} {
		r.recall.set("of " + c)
		r.post(a.body("user: hi"), identity.HeaderConversation, c)
	}
	r.recall.set()
	r.sent()
	for _, c := range []string{"a", "b", "a"} {
		r.post(a.body("user: hi", "assistant: fine", "user: next"), identity.HeaderConversation, c)
		want := []string{"user: [of " + c + "]", "user: hi", "assistant: fine", "user: next"}
		if diff := cmp.Diff(want, a.lines(t, r.one().body)); diff != "" {
			t.Errorf("conversation %s (-want +got):\n%s", c, diff)
		}
	}
}

// What found nothing is searched for again when it is asked again, also at
// once: it may have been told since. The conversation goes on with the block.
func TestNothingFoundIsNotReplayed(t *testing.T) { inEach(t, testNothingFoundIsNotReplayed) }

func testNothingFoundIsNotReplayed(t *testing.T, a api) {
	for _, header := range [][]string{nil, {identity.HeaderConversation, "c"}} {
		r := a.rig(t)
		r.recall.set()
		if got := r.post(a.body("user: q1"), header...); got.status != StatusEmpty {
			t.Fatalf("got status %s, want empty", got.status)
		}
		r.recall.set("fact")
		if got := r.post(a.body("user: q1"), header...); got.status != StatusInjected {
			t.Errorf("asked again: got status %s, want injected", got.status)
		}
		r.recall.set("other")
		if got := r.post(a.body("user: q1"), header...); got.status != StatusReplayed {
			t.Errorf("asked a third time: got status %s, want replayed", got.status)
		}
		r.recall.set()
		r.sent()
		r.post(a.body("user: q1", "assistant: fine", "user: q2"), header...)
		want := []string{"user: [fact]", "user: q1", "assistant: fine", "user: q2"}
		if diff := cmp.Diff(want, a.lines(t, r.one().body)); diff != "" {
			t.Errorf("later (-want +got):\n%s", diff)
		}
	}
}

func TestEditedHistoryFallsOffTheChain(t *testing.T) { inEach(t, testEditedHistoryFallsOffTheChain) }

func testEditedHistoryFallsOffTheChain(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("fact")
	r.post(a.body("user: q1"))
	r.recall.set()
	r.sent()
	body := a.body("user: q1 edited", "assistant: fine", "user: q2")
	if got := r.post(body); got.status != StatusEmpty || r.one().body != body {
		t.Errorf("status %s, want empty with the body unchanged", got.status)
	}
}

func TestLedgerSurvivesRestart(t *testing.T) { inEach(t, testLedgerSurvivesRestart) }

func testLedgerSurvivesRestart(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("fact")
	r.post(a.body("user: q1"))
	first := r.one().body
	r.h.ledger.Flush(t.Context())

	again := a.rig(t, func(_ *Config, d *Deps) { d.Local = r.local; d.Now = r.clock })
	got := again.post(a.body("user: q1", "assistant: fine", "user: q2"))
	if got.status != StatusReplayed {
		t.Errorf("status %s, want replayed", got.status)
	}
	a.grows(t, first, again.one().body)
	r.sleep(r.h.cfg.Ledger.TTL + time.Hour)
	late := a.rig(t, func(_ *Config, d *Deps) { d.Local = r.local; d.Now = r.clock })
	body := a.body("user: q1", "assistant: fine", "user: q2")
	if late.post(body); late.one().body != body {
		t.Error("an entry past its time was replayed")
	}
}

func TestForgetTakesTheLineOutOfReplays(t *testing.T) { inEach(t, testForgetTakesTheLineOutOfReplays) }

func testForgetTakesTheLineOutOfReplays(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("keep", "drop")
	r.post(a.body("user: q1"))
	r.sent()
	q := r.recall.asked()[0]
	r.h.Forget(q.Scope, "m1-drop")
	r.recall.set()
	r.post(a.body("user: q1", "assistant: fine", "user: q2"))
	want := []string{"user: [keep]", "user: q1", "assistant: fine", "user: q2"}
	if diff := cmp.Diff(want, a.lines(t, r.one().body)); diff != "" {
		t.Errorf("after forgetting (-want +got):\n%s", diff)
	}
}

// An erased user's blocks are neither replayed nor kept, also what was about to
// be stored.
func TestDropForgetsTheScope(t *testing.T) { inEach(t, testDropForgetsTheScope) }

func testDropForgetsTheScope(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("fact")
	r.post(a.body("user: q1"))
	r.sent()
	scope := r.recall.asked()[0].Scope
	r.h.Drop(scope)
	r.recall.set()
	if got := r.post(a.body("user: q1", "assistant: fine", "user: q2")); got.status != StatusEmpty {
		t.Errorf("got %s, want empty", got.status)
	}
	if got := r.one().body; strings.Contains(got, "fact") {
		t.Errorf("an erased block is replayed: %s", got)
	}
	if !r.h.ledger.Flush(t.Context()) {
		t.Fatal("the ledger was not written")
	}
	page, err := r.local.Records(t.Context(), storage.BucketLedger, scope, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range page.Records {
		if rows := plainSegment(t, rec); bytes.Contains(rows, []byte("remora-memory")) {
			t.Errorf("a block is still stored: %q", rows)
		}
	}
}

func TestConversationIsBounded(t *testing.T) { inEach(t, testConversationIsBounded) }

func testConversationIsBounded(t *testing.T, a api) {
	r := a.rig(t, func(c *Config, _ *Deps) { c.Ledger.MaxBlocks = 2 })
	var history []string
	for i := range 4 {
		r.recall.set(fmt.Sprintf("fact %d", i))
		history = append(history, fmt.Sprintf("user: q%d", i))
		r.post(a.body(history...))
		history = append(history, "assistant: fine")
	}
	got := r.sent()
	want := []string{
		"user: [fact 0]", "user: q0", "assistant: fine", "user: [fact 1]", "user: q1", "assistant: fine",
		"user: q2", "assistant: fine", "user: q3",
	}
	if diff := cmp.Diff(want, a.lines(t, got[3].body)); diff != "" {
		t.Errorf("fourth request (-want +got):\n%s", diff)
	}
}

// What stands in the request already, or in a block replayed in it, is not
// asked for again.
func TestVisibleIsToldToRecall(t *testing.T) { inEach(t, testVisibleIsToldToRecall) }

func testVisibleIsToldToRecall(t *testing.T, a api) {
	r := a.rig(t)
	r.recall.set("fact")
	r.post(a.body("user: q1"), identity.HeaderConversation, "c")
	turn := r.turns()[0]
	r.post(a.body("user: q1", "assistant: fine", "user: q2"), identity.HeaderConversation, "c")
	q := r.recall.asked()[1]
	if _, ok := q.VisibleIDs["m0-fact"]; !ok {
		t.Error("the replayed memory is not named as visible")
	}
	if !visible(q, turn.Chain) {
		t.Error("the first turn is not named as visible")
	}
	if q.Newest != "q2" || q.Previous() != "q1" || q.Conversation != "c" {
		t.Errorf("query %q after %q in %q", q.Newest, q.Previous(), q.Conversation)
	}
}

func TestMemoryFailsOpen(t *testing.T) { inEach(t, testMemoryFailsOpen) }

func testMemoryFailsOpen(t *testing.T, a api) {
	for _, tt := range []struct {
		name string
		err  error
		do   func()
		want Status
	}{
		{"timeout", recall.ErrTimeout, nil, StatusTimeout},
		{"unavailable", fmt.Errorf("scan: %w", storage.ErrUnavailable), nil, StatusUnavailable},
		{"other error", errors.New("odd"), nil, StatusUnavailable},
		{"panic", nil, func() { panic("content that must not be logged") }, StatusUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := a.rig(t)
			r.recall.err, r.recall.do = tt.err, tt.do
			body := a.body("user: q1")
			if got := r.post(body); got.code != 200 || got.status != tt.want || r.one().body != body {
				t.Errorf("code %d, status %s, want 200, %s and the body unchanged", got.code, got.status, tt.want)
			}
			// The turn has a none-entry now: nothing may appear before it
			// later.
			r.recall.err, r.recall.do = nil, nil
			r.recall.set("late")
			r.post(a.body("user: q1", "assistant: fine", "user: q2"))
			want := []string{"user: q1", "assistant: fine", "user: [late]", "user: q2"}
			if diff := cmp.Diff(want, a.lines(t, r.one().body)); diff != "" {
				t.Errorf("next turn (-want +got):\n%s", diff)
			}
		})
	}
}

// nameless is a store that was never open yet.
type nameless struct{ storage.Local }

func (nameless) InstallSecret(context.Context) ([]byte, error) {
	return nil, storage.ErrUnavailable
}

// Before the store was open nobody knows whose a turn is. It goes out, and what
// is not remembered is counted.
func TestBeforeTheStoreWasOpen(t *testing.T) {
	r := newRig(t, func(_ *Config, d *Deps) { d.Local = nameless{d.Local} })
	for _, mode := range []string{"on", "read", "off"} {
		r.post(chat("user: q1"), headerMemory, mode)
	}
	if n, early := len(r.turns()), r.h.Stats().TooEarly.Load(); n != 0 || early != 1 {
		t.Errorf("%d turns, %d counted as too early, want 0 and 1", n, early)
	}
}

func TestTurnsThatAreNone(t *testing.T) {
	for _, tt := range []struct {
		name string
		code int
		body string
		want int
	}{
		{"stop", 200, `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}`, 1},
		{"length", 200, `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"length"}]}`, 1},
		{"tool calls", 200, `{"choices":[{"index":0,"message":{"content":"a","tool_calls":[{}]},"finish_reason":"tool_calls"}]}`, 0},
		{"filtered", 200, `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"content_filter"}]}`, 0},
		{"empty", 200, `{"choices":[{"index":0,"message":{"content":""},"finish_reason":"stop"}]}`, 0},
		{"refused", 401, `{"error":{"message":"no"}}`, 0},
		{"limited", 429, `{"error":{"message":"slow down"}}`, 0},
		{"broken", 500, `{"error":{"message":"oops"}}`, 0},
		{"not JSON", 200, `<html>`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.answers(func(received) (int, string, string) { return tt.code, "application/json", tt.body })
			got := r.post(chat("user: q"))
			if got.code != tt.code || got.body != tt.body {
				t.Errorf("client got %d %q, want the upstream's %d %q", got.code, got.body, tt.code, tt.body)
			}
			if n := len(r.turns()); n != tt.want {
				t.Errorf("persisted %d turns, want %d", n, tt.want)
			}
		})
	}
}

// Rules that came after a memory was stored hold for it when it is recalled.
func TestRecalledTextIsRedacted(t *testing.T) {
	r := newRig(t, func(_ *Config, d *Deps) {
		d.Redact = func(text string) string { return strings.ReplaceAll(text, "s3cret", "[SECRET]") }
	})
	r.recall.set("the word is s3cret")
	r.recall.memories[0].Provenance.Speaker = "s3cret anna"
	r.post(chat("user: what is the word?"))
	body := r.one().body
	if asked := r.recall.asked(); len(asked) != 1 || asked[0].Screen == nil || asked[0].Screen("s3cret") != "[SECRET]" {
		t.Error("texts are not screened before they are cut")
	}
	if strings.Contains(body, "s3cret") || !strings.Contains(body, "[SECRET] anna: the word is [SECRET]") {
		t.Errorf("sent %s", body)
	}
}
