package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// keptReceipts keeps receipts as they were handed in, and what they were then.
type keptReceipts struct {
	mu     sync.Mutex
	all    []*receipt.Receipt
	copies []string
}

func (k *keptReceipts) Record(r *receipt.Receipt) {
	copied, _ := json.Marshal(r)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all, k.copies = append(k.all, r), append(k.copies, string(copied))
}

// withReceipts keeps the receipts of a rig.
func withReceipts(k *keptReceipts) rigOption {
	return func(_ *Config, d *Deps) { d.Receipts = k }
}

// last returns the newest receipt, of which there must be n.
func (k *keptReceipts) last(t *testing.T, n int) *receipt.Receipt {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) != n {
		t.Fatalf("%d receipts, want %d", len(k.all), n)
	}
	return k.all[n-1]
}

// unchanged checks that nothing of a receipt is part of what serves other
// requests meanwhile.
func (k *keptReceipts) unchanged(t *testing.T) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, r := range k.all {
		if now, _ := json.Marshal(r); string(now) != k.copies[i] {
			t.Errorf("a receipt was %s and is %s", k.copies[i], now)
		}
	}
}

// jsonForms are the ways in which a text stands in a JSON string.
func jsonForms(text string) []string {
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	return []string{strings.Trim(quote(text), `"`), strings.Trim(strings.TrimSpace(plain.String()), `"`)}
}

// checkInsertions checks that what was sent is the client's body, with what the
// receipt tells at the offsets that it tells. With exact, there is nothing else:
// where a text becomes a list, something follows it as well.
func checkInsertions(t *testing.T, what, body, sent string, exact bool, ins []receipt.Insertion) {
	t.Helper()
	placed := slices.DeleteFunc(slices.Clone(ins), func(in receipt.Insertion) bool { return in.Offset < 0 })
	slices.SortStableFunc(placed, func(a, b receipt.Insertion) int { return a.Offset - b.Offset })
	for _, in := range ins {
		if !slices.ContainsFunc(jsonForms(in.Text), func(form string) bool { return strings.Contains(sent, form) }) &&
			!slices.ContainsFunc(jsonForms(strings.TrimSuffix(in.Text, "\n")), func(form string) bool { return strings.Contains(sent, form) }) {
			t.Errorf("%s: %q was not sent", what, in.Text)
		}
		for id, line := range in.Lines() {
			if !strings.HasPrefix(line, "- ") || id == "" {
				t.Errorf("%s: the line of %q is %q", what, id, line)
			}
		}
	}
	if len(placed) < len(ins) {
		return // in a system prompt, with others
	}
	if len(placed) == 0 {
		if sent != body {
			t.Errorf("%s: the body has changed: %s", what, sent)
		}
		return
	}
	before := 0 // bytes inserted so far
	for i, in := range placed {
		at := in.Offset + before
		if i == 0 && !strings.HasPrefix(sent, body[:at]) {
			t.Fatalf("%s: the bytes before offset %d differ\nbody %s\nsent %s", what, at, body, sent)
		}
		// What the client sent before and behind the offset stands around it,
		// with no more than what the dialect writes around a text in between.
		begun := -1
		for _, form := range jsonForms(in.Text) {
			if from := strings.Index(sent, form); from >= 0 {
				begun, before = from, from+len(form)-in.Offset
			}
		}
		if begun < 0 {
			t.Fatalf("%s: %q was not sent as it is told", what, in.Text)
		}
		around := func(part, whole string, last bool) bool {
			n := strings.Index(whole, part)
			if last {
				n = len(whole) - len(part) - strings.LastIndex(whole, part)
			}
			return n >= 0 && n < 100
		}
		head, tail := body[max(0, in.Offset-20):in.Offset], body[in.Offset:min(len(body), in.Offset+12)]
		if !around(head, sent[:begun], true) || !around(tail, sent[in.Offset+before:], false) {
			t.Errorf("%s: not at offset %d: %s", what, in.Offset, sent)
		}
	}
	if !exact {
		return
	}
	at, rest := 0, sent
	for i, in := range placed {
		rest, at = rest[in.Offset-at:], in.Offset
		end := len(body)
		if i+1 < len(placed) {
			end = placed[i+1].Offset
		}
		put, after, found := strings.Cut(rest, body[at:end])
		if i+1 == len(placed) {
			put, found = strings.CutSuffix(rest, body[at:])
			after = ""
		}
		if !found || !slices.ContainsFunc(jsonForms(in.Text), func(form string) bool { return strings.Contains(put, form) }) {
			t.Errorf("%s: at offset %d stands %q, want %q", what, in.Offset, put, in.Text)
		}
		rest = body[at:end] + after
	}
}

// TestReceiptsTellWhatWasInserted compares receipts with what the upstream got,
// byte for byte, over conversations in every API and placement.
func TestReceiptsTellWhatWasInserted(t *testing.T) {
	for _, a := range apis {
		for _, placement := range []string{PlacementBeforeUser, PlacementSystem} {
			t.Run(a.name+" "+placement, func(t *testing.T) { testReceiptsTellWhatWasInserted(t, a, placement) })
		}
	}
}

func testReceiptsTellWhatWasInserted(t *testing.T, a api, placement string) {
	var kept keptReceipts
	r := a.rig(t, withReceipts(&kept), func(c *Config, _ *Deps) { c.Injection.Placement = placement })
	history := []string{"system: be \"kind\" & brief"}
	outside := 1 // the system prompt is no message
	if a.name == "chat" || a.name == "ollama" {
		outside = 0
	}
	for turn := range 4 {
		r.recall.set(fmt.Sprintf("fact %d: \"<b>\" & é", turn), fmt.Sprintf("more of %d", turn))
		if turn == 2 {
			r.recall.set()
		}
		history = append(history, fmt.Sprintf("user: question %d", turn))
		body := a.body(history...)
		got := r.post(body, "User-Agent", "tester/1.0")
		sent := r.one().body
		told := kept.last(t, turn+1)
		name := fmt.Sprint("turn ", turn)
		checkInsertions(t, name, body, sent, a.name != "messages", told.Inserted)
		turns := r.turns()
		if len(turns) != 1 {
			t.Fatalf("%d turns", len(turns))
		}
		want := receipt.Receipt{
			At: storage.TimeOf(r.clock()), Scope: turns[0].Scope, Conversation: turns[0].Conversation, Turn: turns[0].Chain, Client: told.Client, Upstream: "mock",
			Dialect: told.Dialect, Model: "m", Status: string(got.status), Code: 200, Query: told.Query, Inserted: told.Inserted,
			Candidates: told.Candidates, Usage: receipt.Usage{Input: 7, Output: 2, Added: told.Usage.Added}, Times: told.Times,
		}
		if diff := cmp.Diff(want, *told); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		query := fmt.Sprintf("question %d", turn)
		if placement == PlacementSystem && turn > 0 { // nothing is searched for
			query = ""
		}
		if told.Query != query {
			t.Errorf("%s: query %q, want %q", name, told.Query, query)
		}
		fresh, replayed, bytes := 0, 0, 0
		for _, in := range told.Inserted {
			if bytes += len(in.Text); in.Replayed {
				replayed += len(in.Spans)
			} else if fresh += len(in.Spans); in.Message != len(a.pieces(t, body))-1-outside {
				t.Errorf("%s: it belongs to message %d", name, in.Message)
			}
		}
		wantFresh, wantReplayed := 2, 2*turn
		if turn >= 2 {
			wantFresh, wantReplayed = 2*(turn-2), 4
		}
		if placement == PlacementSystem && turn > 0 { // only the first turn is given any
			wantFresh, wantReplayed = 0, 2
		}
		if fresh != wantFresh || replayed != wantReplayed || fmt.Sprint(fresh+replayed) != got.memories {
			t.Errorf("%s: %d new and %d replayed, want %d and %d; the header says %s", name, fresh, replayed, wantFresh, wantReplayed, got.memories)
		}
		if added := told.Usage.Added; added < int64(bytes/4) || added > int64(bytes/4+len(told.Inserted)) {
			t.Errorf("%s: %d tokens added for %d bytes", name, added, bytes)
		}
		for _, c := range told.Candidates {
			if !c.Inserted || c.Reason != "" || c.Kind != "episode" || c.Score != 1 {
				t.Errorf("%s: candidate %+v", name, c)
			}
		}
		if n := len(told.Candidates); n != wantFresh {
			t.Errorf("%s: %d candidates, want %d", name, n, wantFresh)
		}
		history = append(history, "assistant: fine")
	}
	kept.unchanged(t)
}

// A refused block was not given, whoever refuses it.
func TestReceiptsOfRefusals(t *testing.T) { inEach(t, testReceiptsOfRefusals) }

func testReceiptsOfRefusals(t *testing.T, a api) {
	var kept keptReceipts
	r := a.rig(t, withReceipts(&kept))
	fine := a.replyWith("fine")
	r.answers(func(got received) (int, string, string) {
		if fence.Contains(got.body) {
			return 400, "application/json", `{"error":{"message":"no"}}`
		}
		return fine(got)
	})
	r.recall.set("fact")
	body := a.body("user: q1")
	got := r.post(body)
	told := kept.last(t, 1)
	if got.status != StatusRejected || told.Status != string(StatusRejected) || told.Code != 200 || len(told.Inserted) > 0 || told.Usage.Added != 0 {
		t.Errorf("status %s, receipt %+v", got.status, told)
	}
	want := []receipt.Candidate{{ID: "m0-fact", Kind: "episode", Score: 1, Reason: string(StatusRejected)}}
	if diff := cmp.Diff(want, told.Candidates); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	if told.Usage.Input != 7 || told.Usage.Output != 2 {
		t.Errorf("usage %+v", told.Usage)
	}
	// Both bodies refused.
	r.answers(func(received) (int, string, string) { return 400, "application/json", `{"error":{"message":"no"}}` })
	r.post(a.body("user: another"))
	if told := kept.last(t, 2); told.Code != 400 || len(told.Inserted) > 0 || told.Usage != (receipt.Usage{}) {
		t.Errorf("both refused: %+v", told)
	}
}

// TestReceiptsOfEveryEnd checks the receipts of exchanges that end in other
// ways, and that there is one of each at most.
func TestReceiptsOfEveryEnd(t *testing.T) {
	a := apis[0]
	for _, tt := range []struct {
		name   string
		body   string
		header []string
		do     func(r *rig)
		want   string // status and code; "" = no receipt
	}{
		{"streamed", streaming(a.body("user: q")), nil, func(r *rig) {
			r.answers(func(received) (int, string, string) {
				contentType, body := chatStream("fine")
				body = strings.Replace(body, "data: [DONE]", `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":5}}}`+"\n\ndata: [DONE]", 1)
				return 200, contentType, body
			})
		}, "injected 200 7 2 5"},
		{"an error", a.body("user: q"), nil, func(r *rig) {
			r.answers(func(received) (int, string, string) { return 500, "application/json", `{"error":{}}` })
		}, "injected 500 0 0 0"},
		{"an answer that can't be read", a.body("user: q"), nil, func(r *rig) {
			r.answers(func(received) (int, string, string) { return 200, "application/json", `<html>` })
		}, "injected 200 0 0 0"},
		{"a tool call", a.body("user: q"), nil, func(r *rig) {
			r.answers(func(received) (int, string, string) { return 200, "application/json", a.calling })
		}, "injected 200 0 0 0"},
		{"nothing found", a.body("user: q"), nil, func(r *rig) { r.recall.set() }, "empty 200 7 2 0"},
		{"memory is late", a.body("user: q"), nil, func(r *rig) { r.recall.set(); r.recall.err = recall.ErrTimeout }, "timeout 200 7 2 0"},
		{"memory is away", a.body("user: q"), nil, func(r *rig) { r.recall.set(); r.recall.err = storage.ErrUnavailable }, "unavailable 200 7 2 0"},
		{"observed", a.body("user: q"), []string{headerMemory, "observe"}, nil, "observed 200 7 2 0"},
		{"read", a.body("user: q"), []string{headerMemory, "read"}, nil, "injected 200 7 2 0"},
		{"write", a.body("user: q"), []string{headerMemory, "write"}, nil, "empty 200 7 2 0"},
		{"off", a.body("user: q"), []string{headerMemory, "off"}, nil, ""},
		{"no request", "{", nil, nil, ""},
		{"nobody", a.body("user: q"), []string{identity.HeaderUser, "a", identity.HeaderUser, "b"}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var kept keptReceipts
			r := a.rig(t, withReceipts(&kept))
			r.recall.set("fact")
			if tt.do != nil {
				tt.do(r)
			}
			r.post(tt.body, tt.header...)
			if tt.want == "" {
				kept.mu.Lock()
				defer kept.mu.Unlock()
				if len(kept.all) > 0 {
					t.Errorf("got %+v, want none", kept.all[0])
				}
				return
			}
			told := kept.last(t, 1)
			u := told.Usage
			if got := fmt.Sprint(told.Status, " ", told.Code, " ", u.Input, " ", u.Output, " ", u.CacheRead); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			given := strings.HasPrefix(tt.want, "injected")
			if (len(told.Inserted) == 1) != given {
				t.Errorf("inserted: %+v", told.Inserted)
			}
			for _, c := range told.Candidates {
				reason := ""
				if !given {
					reason = told.Status
				}
				if c.Inserted != given || c.Reason != reason {
					t.Errorf("candidate %+v", c)
				}
			}
			kept.unchanged(t)
		})
	}
	t.Run("no upstream", func(t *testing.T) {
		var kept keptReceipts
		r := a.rig(t, withReceipts(&kept), func(c *Config, _ *Deps) { c.Upstreams[0].URL = "http://127.0.0.1:1" })
		r.recall.set("fact")
		got := r.post(a.body("user: q"))
		if told := kept.last(t, 1); told.Code != got.code || got.code < 500 || told.Status != string(got.status) {
			t.Errorf("got %s %d, want %s %d", told.Status, told.Code, got.status, got.code)
		}
	})
	t.Run("none are asked for", func(t *testing.T) {
		r := a.rig(t)
		r.recall.set("fact")
		r.post(a.body("user: q"))
		if q := r.recall.asked()[0]; q.Explain || q.Cuts {
			t.Error("recall explains nevertheless")
		}
	})
	t.Run("tokens are counted", func(t *testing.T) {
		var kept keptReceipts
		m := apis[1]
		r := m.rig(t, withReceipts(&kept))
		r.recall.set("fact")
		r.post(m.body("user: q"))
		r.postTo("/v1/messages/count_tokens", m.body("user: q", "assistant: fine", "user: r"))
		kept.last(t, 1)
	})
}

// What was forgotten between its search and its block was not inserted.
func TestReceiptsOfWhatWasForgotten(t *testing.T) { inEach(t, testReceiptsOfWhatWasForgotten) }

func testReceiptsOfWhatWasForgotten(t *testing.T, a api) {
	var kept keptReceipts
	r := a.rig(t, withReceipts(&kept))
	r.recall.set("before")
	r.post(a.body("user: q0"))
	r.recall.set("secret")
	r.recall.do = func() {
		r.h.Forget(r.recall.requests[len(r.recall.requests)-1].Scope, "m0-secret")
		r.recall.do = nil
	}
	got := r.post(a.body("user: q0", "assistant: fine", "user: q1"))
	told := kept.last(t, 2)
	if strings.Contains(fmt.Sprint(told.Inserted), "secret") || len(told.Inserted) != 1 || !told.Inserted[0].Replayed {
		t.Errorf("inserted: %+v", told.Inserted)
	}
	want := []receipt.Candidate{{ID: "m0-secret", Kind: "episode", Score: 1, Reason: string(got.status)}}
	if diff := cmp.Diff(want, told.Candidates); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
}

// Candidates come with their scores and with why they were turned down: by the
// gate, because the request carries them, by the policy.
func TestReceiptsTellWhy(t *testing.T) {
	a := apis[0]
	l := newLab(t, a)
	l.post("cloud", a.path, a.body("user: hello there"))
	l.settle()
	ids := map[string]string{}
	for _, m := range []storage.Memory{
		{Text: "My sister Ada owns a boat shed at the lake."},
		{Text: "My sister Ada sails the boat Nautilus on the lake.", Tags: []string{storage.PrivateTag}},
		{Text: "The staging database runs on port 8443 behind the proxy."},
	} {
		m.Kind = storage.KindFact
		saved, err := l.pipe.Remember(t.Context(), l.scope, m)
		if err != nil {
			t.Fatal(err)
		}
		ids[strings.Fields(m.Text)[4]] = saved[0].Memory.ID
	}
	shed, nautilus, port := ids["a"], ids["the"], ids["on"]
	const boat = "user: Which boat does my sister Ada sail on the lake?"
	for _, ask := range []struct {
		upstream, conversation string
		lines                  []string
	}{
		{"cloud", "c", []string{boat}},
		{"cloud", "c", []string{boat, "assistant: fine", "user: Where is the boat shed of my sister Ada?"}},
		{"cloud", "d", []string{"user: Please explain why the moon of Saturn with the proxy of Roman emperors matters to botany and opera."}},
		{"home", "e", []string{boat}},
	} {
		time.Sleep(2 * time.Millisecond) // receipts are in the order of their milliseconds
		l.post(ask.upstream, a.path, a.body(ask.lines...), identity.HeaderConversation, ask.conversation)
	}
	l.settle()
	l.stop()
	all, _, err := receipt.List(t.Context(), l.store, l.scope, "", 100, nil)
	if err != nil || len(all) != 5 {
		t.Fatalf("%d receipts, %v", len(all), err)
	}
	slices.Reverse(all)
	reason := func(n int, id string) string {
		for _, c := range all[n].Candidates {
			if c.ID == id {
				if c.Inserted {
					return "inserted"
				}
				return c.Reason
			}
		}
		return "none"
	}
	for _, tt := range []struct {
		receipt  int
		id, want string
	}{
		{1, shed, "inserted"}, {1, nautilus, string(recall.CutPolicy)}, {2, shed, string(recall.CutVisible)}, {2, nautilus, string(recall.CutPolicy)},
		{3, port, string(recall.CutGate)}, {4, nautilus, "inserted"}, {4, shed, "inserted"},
	} {
		if got := reason(tt.receipt, tt.id); got != tt.want {
			t.Errorf("receipt %d: %s is %s, want %s: %+v", tt.receipt, tt.id, got, tt.want, all[tt.receipt].Candidates)
		}
	}
	for _, c := range all[4].Candidates {
		if c.Inserted && (c.Score <= 0 || c.Kind != "fact") {
			t.Errorf("without a score or a kind: %+v", c)
		}
	}
	if r := all[1]; r.Considered == 0 || r.Relevance <= 0 || r.Vectors != string(recall.VectorsOff) || r.Times.Recall <= 0 || r.Times.Total < r.Times.Plan || r.Times.Plan < r.Times.Recall {
		t.Errorf("figures: %+v", r)
	}
	uses, err := receipt.Uses(t.Context(), l.store, l.scope)
	if err != nil || uses[shed].Count != 2 || uses[nautilus].Count != 1 || uses[port].Count != 0 {
		t.Errorf("uses: %v, %v", uses, err)
	}
}

// What is erased while an exchange is under way, or its receipt waits to be
// written, stands in no receipt afterwards.
func TestErasedDuringAnExchange(t *testing.T) {
	a := apis[0]
	const question = "user: Which boat does my sister Ada sail on the lake?"
	for _, waits := range []bool{false, true} {
		for name, erase := range map[string]func(ctx context.Context, l *lab, id string) error{
			"a memory": func(ctx context.Context, l *lab, id string) error {
				_, err := l.pipe.ForgetMemories(ctx, l.scope, id)
				return err
			},
			"a conversation": func(ctx context.Context, l *lab, _ string) error {
				_, err := l.pipe.ForgetConversation(ctx, l.scope, "c")
				return err
			},
			"a user": func(ctx context.Context, l *lab, _ string) error {
				_, err := l.pipe.ForgetUser(ctx, l.scope)
				return err
			},
		} {
			t.Run(fmt.Sprintf("%s, waits %t", name, waits), func(t *testing.T) {
				l := newLab(t, a)
				l.post("cloud", a.path, a.body("user: hello there"), identity.HeaderConversation, "other")
				l.settle()
				saved, err := l.pipe.Remember(t.Context(), l.scope, storage.Memory{Kind: storage.KindFact, Text: "My sister Ada sails the boat Nautilus on the lake.", Conversation: "c"})
				if err != nil {
					t.Fatal(err)
				}
				now := func() {
					if err := erase(t.Context(), l, saved[0].Memory.ID); err != nil {
						t.Error(err)
					}
				}
				if !waits {
					l.during = now
				}
				if sent, _ := l.post("cloud", a.path, a.body(question), identity.HeaderConversation, "c"); !strings.Contains(sent, "Nautilus") {
					t.Fatal("nothing was inserted: the test shows nothing")
				}
				if waits {
					l.settle()
					now()
				}
				l.settle()
				l.stop()
				for _, b := range []storage.Bucket{storage.BucketExchange, storage.BucketRevision} {
					page, err := l.store.Records(t.Context(), b, l.scope, "", 0)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range page.Records {
						if strings.Contains(string(r.Value), "Nautilus") {
							t.Errorf("%s %s shows it: %s", b, r.Key, r.Value)
						}
						if name != "a memory" && strings.Contains(string(r.Value), "sister") {
							t.Errorf("%s %s shows what was said: %s", b, r.Key, r.Value)
						}
					}
				}
			})
		}
	}
}

// A question is what a person typed, and bounded.
func TestReceiptsKeepTheQuestion(t *testing.T) {
	var kept keptReceipts
	r := apis[0].rig(t, withReceipts(&kept))
	r.recall.set("fact")
	r.post(chat("user: <system-reminder>canary</system-reminder>What is the word?"), "User-Agent", "claude-cli/2.0")
	if got := kept.last(t, 1).Query; strings.Contains(got, "canary") && !strings.Contains(got, "What is the word?") {
		t.Errorf("got %q", got)
	}
	r.post(chat("user: " + strings.Repeat("long ", 10_000)))
	if got := len(kept.last(t, 2).Query); got != receipt.MaxQuery+receipt.QueryOverhang {
		t.Errorf("%d bytes of a long one, want %d", got, receipt.MaxQuery+receipt.QueryOverhang)
	}
}

// TestReceiptsNeverDelay lets the store of the receipts hang while requests go
// on, and more of them come than may wait.
func TestReceiptsNeverDelay(t *testing.T) {
	hung := &hungRecords{Mem: storagetest.Memory()}
	told := receipt.NewRecorder(hung, time.Hour, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { told.Run(ctx) })
	r := newRig(t, func(_ *Config, d *Deps) { d.Receipts = told })
	r.recall.set("fact")
	hung.hang.Store(true)
	history := []string{}
	for i := range 20 {
		history = append(history, fmt.Sprint("user: q", i))
		began := time.Now()
		if got := r.post(chat(history...)); got.code != 200 || got.status != StatusInjected && got.status != StatusReplayed {
			t.Fatalf("request %d: code %d, status %s", i, got.code, got.status)
		}
		if took := time.Since(began); took > patience/2 {
			t.Fatalf("request %d took %v", i, took)
		}
		history = append(history, "assistant: fine")
	}
	if got := len(r.turns()); got != 20 {
		t.Errorf("%d turns are stored, want 20", got)
	}
	for range receipt.MaxWaiting + 600 { // what is being written, and what waits
		told.Record(&receipt.Receipt{At: 1})
	}
	if told.Dropped() == 0 {
		t.Error("nothing was dropped: the test shows little")
	}
	if got := r.post(chat("user: after that")); got.code != 200 || got.status != StatusInjected {
		t.Errorf("with all full: code %d, status %s", got.code, got.status)
	}
	hung.hang.Store(false)
	close(hung.release())
	cancel()
	running.Wait()
}

// hungRecords is a store whose writes of receipts hang.
type hungRecords struct {
	*storagetest.Mem
	hang atomic.Bool
	once sync.Once
	free chan struct{}
}

func (h *hungRecords) release() chan struct{} {
	h.once.Do(func() { h.free = make(chan struct{}) })
	return h.free
}

func (h *hungRecords) PutRecords(ctx context.Context, records []storage.Record) error {
	if h.hang.Load() {
		<-h.release()
	}
	return h.Mem.PutRecords(ctx, records)
}

// A frame of a WebSocket has a receipt like a request.
func TestReceiptsOfFrames(t *testing.T) {
	var kept keptReceipts
	s := newSocketRig(t, func(n int, _ string) []string {
		id := fmt.Sprint("resp_", n)
		return []string{`{"type":"response.created","response":{"id":"` + id + `"}}`, `{"type":"response.completed","response":` + responsesAnswer(id, "fine") + `}`}
	})
	s.h.deps.Receipts = &kept
	s.recall.set("fact")
	for n := range 2 {
		frame := fmt.Sprintf(`{"type":"response.create","model":"m","store":false,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"question %d"}]}]}`, n)
		s.send(frame)
		sent := s.upstreamGot()
		s.receive()
		s.receive()
		s.stored(n + 1)
		for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			kept.mu.Lock()
			have := len(kept.all)
			kept.mu.Unlock()
			if have > n || time.Now().After(deadline) {
				break
			}
		}
		told := kept.last(t, n+1)
		checkInsertions(t, "frame", frame, sent, true, told.Inserted)
		if told.Status != string(StatusInjected) || told.Code != 200 || told.Query != fmt.Sprint("question ", n) || told.Usage.Input != 7 || len(told.Inserted) != 1 {
			t.Errorf("receipt %d: %+v", n, told)
		}
	}
	kept.unchanged(t)
}

// Receipts and policies of many requests at a time don't mix.
func TestReceiptsRace(t *testing.T) {
	var kept keptReceipts
	r := newRig(t, withReceipts(&kept), func(c *Config, _ *Deps) { c.Policy = labPolicy })
	r.recall.set("fact")
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 20 {
				body := chat(fmt.Sprintf("user: worker %d asks %d", w, i))
				req := newLabRequest(t, r.url+apis[0].path, body, identity.HeaderUser, fmt.Sprint("user", w))
				resp, err := httpDo(req)
				if err != nil || resp != 200 {
					t.Errorf("code %d, %v", resp, err)
				}
			}
		})
	}
	wg.Wait()
	r.posted += 160
	r.settle()
	kept.mu.Lock()
	if len(kept.all) != 160 {
		t.Errorf("%d receipts, want 160", len(kept.all))
	}
	asked := map[string]bool{}
	for _, told := range kept.all {
		var w, i int
		if _, err := fmt.Sscanf(told.Query, "worker %d asks %d", &w, &i); err != nil || !strings.HasSuffix(told.Scope.User, fmt.Sprint("user", w)) || asked[told.Query] {
			t.Errorf("the receipt of %q is %s's", told.Query, told.Scope.User)
		}
		asked[told.Query] = true
	}
	kept.mu.Unlock()
	kept.unchanged(t)
}

func newLabRequest(t *testing.T, url, body string, header ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer sk-rig")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

func httpDo(req *http.Request) (code int, err error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
