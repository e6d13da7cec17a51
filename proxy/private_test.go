package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// lab is a whole proxy: a real memory between a client and several upstreams,
// each of which the policy treats in another way.
type lab struct {
	t      *testing.T
	api    api
	store  *storagetest.Mem
	pipe   *persist.Pipeline
	engine *recall.Engine
	told   *receipt.Recorder
	h      *Handler
	scope  storage.Scope
	urls   map[string]string // by upstream
	config rigOption         // nil = none
	stop   func()

	mu     sync.Mutex
	bodies map[string][]string // that reached each upstream
	leaks  []string
	during func() // called once, while an upstream has a request
	echoes bool   // home repeats in its answers what it was sent
}

// labPolicy names home alone for what is private, but not for models that are
// run elsewhere.
var labPolicy = []policy.Rule{
	{Upstream: "home", Model: "outside*"},
	{Upstream: "home", Allow: policy.Allow{Tags: []string{storage.PrivateTag, policy.AnyTag}}},
	{Upstream: "work", Allow: policy.Allow{Tags: []string{"work"}}},
	{Upstream: "silent", Memory: policy.MemoryOff},
	{Upstream: "reader", Memory: policy.MemoryRead},
	{Upstream: "cloud", Model: "mute-*", Memory: policy.MemoryOff},
}

var labUpstreams = []string{"home", "cloud", "work", "silent", "reader"}

// canary is in every private memory of a lab, and in nothing else.
const canary = "canary"

// labIndex are the copies of memories outside of the store.
type labIndex struct {
	*recall.Engine
	l *lab
}

func (x labIndex) Erased(scope storage.Scope, ids ...string) {
	x.Engine.Erased(scope, ids...)
	x.l.h.Forget(scope, ids...)
	x.l.told.Erased(scope, ids...)
}

func (x labIndex) Drop(scope storage.Scope) {
	x.Engine.Drop(scope)
	x.l.h.Drop(scope)
	x.l.told.Drop(scope)
}

func (x labIndex) PauseWrites(ctx context.Context, scope storage.Scope) (resume func(), err error) {
	var resumes []func()
	for _, pause := range []func(context.Context, storage.Scope) (func(), error){x.Engine.PauseWrites, x.l.h.PauseWrites, x.l.told.PauseWrites} {
		one, err := pause(ctx, scope)
		if err != nil {
			for _, r := range resumes {
				r()
			}
			return nil, err
		}
		resumes = append(resumes, one)
	}
	return func() {
		for _, r := range slices.Backward(resumes) {
			r()
		}
	}, nil
}

func newLab(t *testing.T, a api, opts ...rigOption) *lab {
	t.Helper()
	l := &lab{t: t, api: a, store: storagetest.Memory(), bodies: map[string][]string{}, urls: map[string]string{}}
	l.config = func(c *Config, d *Deps) {
		for _, o := range opts {
			o(c, d)
		}
	}
	for _, name := range labUpstreams {
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.upstream(name, w, r) }))
		t.Cleanup(up.Close)
		l.urls[name] = up.URL
	}
	l.start()
	t.Cleanup(func() { l.stop() })
	return l
}

// start starts everything but the upstreams and the store.
func (l *lab) start() {
	l.t.Helper()
	rc := recall.DefaultConfig()
	rc.Deadline, rc.FirstDeadline = patience, patience
	l.engine = recall.New(rc, l.store, nil, nil)
	l.told = receipt.NewRecorder(l.store, time.Hour, slog.New(slog.DiscardHandler))
	pc := persist.DefaultConfig()
	pc.TurnsPerSecond = 0
	l.pipe = persist.New(pc, l.store, l.store, labIndex{l.engine, l}, nil, nil, nil)
	cfg := DefaultConfig()
	cfg.Upstreams = nil
	for i, name := range labUpstreams {
		cfg.Upstreams = append(cfg.Upstreams, httpclient.UpstreamConfig{Name: name, URL: l.urls[name], Paths: []string{fmt.Sprint("/none", i)}})
	}
	cfg.Identity.Loopback, cfg.Policy = true, labPolicy
	cfg.FirstDeadline, cfg.RecallDeadline = patience, patience
	deps := Deps{Recall: labRecall{l.engine, l}, Persist: l.pipe, Local: l.store, Receipts: l.told}
	l.config(&cfg, &deps)
	var err error
	if l.h, err = New(cfg, deps); err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	pipeCtx, stopPipe := context.WithCancel(context.Background())
	var pipe sync.WaitGroup
	pipe.Go(func() {
		if err := l.pipe.Run(pipeCtx); err != nil {
			l.t.Error(err)
		}
	})
	running.Go(func() { l.h.Run(ctx) })
	running.Go(func() { l.told.Run(ctx) })
	l.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		stopPipe()
		pipe.Wait()
		l.engine.Close()
	})
}

// restart starts another process on the same disk.
func (l *lab) restart() {
	l.t.Helper()
	l.h.ledger.Flush(l.t.Context())
	l.stop()
	l.start()
}

// labRecall tells whose memory is asked for.
type labRecall struct {
	*recall.Engine
	l *lab
}

func (r labRecall) Recall(ctx context.Context, q recall.Request) (recall.Result, error) {
	r.l.mu.Lock()
	r.l.scope = q.Scope
	r.l.mu.Unlock()
	return r.Engine.Recall(ctx, q)
}

// upstream answers, and looks for what may not have come here.
func (l *lab) upstream(name string, w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	body := string(b)
	trusted := name == "home" && !strings.Contains(body, `"model":"outside`)
	l.mu.Lock()
	l.bodies[name] = append(l.bodies[name], body)
	if !trusted && strings.Contains(body+fmt.Sprint(r.Header, r.URL), canary) {
		l.leaks = append(l.leaks, fmt.Sprintf("%s %s was sent %s", name, r.URL.Path, body))
	}
	during := l.during
	l.during = nil
	l.mu.Unlock()
	if during != nil {
		during()
	}
	words := "fine"
	if l.echoes && name == "home" {
		if i := strings.Index(body, canary); i >= 0 {
			words = "As you told me, the boat is called " + strings.FieldsFunc(body[i:], func(r rune) bool { return r < 'a' || r > 'z' })[0] + " and she sails on the lake."
		}
	}
	code, contentType, answer := l.api.replyWith(words)(received{r.URL.Path, r.Header, body})
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = io.WriteString(w, answer)
}

// got returns the bodies that reached an upstream since the last call.
func (l *lab) got(name string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.bodies[name]
	l.bodies[name] = nil
	return out
}

func (l *lab) check(what string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, leak := range l.leaks {
		l.t.Errorf("%s: %s", what, leak)
	}
	l.leaks = nil
}

// post sends a body to an upstream through the proxy, and returns what reached
// it and the status.
func (l *lab) post(upstream, path, body string, header ...string) (sent string, status Status) {
	l.t.Helper()
	h, err := l.handler(upstream)
	if err != nil {
		l.t.Fatal(err)
	}
	req := httptest.NewRequest("POST", path, strings.NewReader(body))
	req.RemoteAddr, req.Host = "127.0.0.1:1", "127.0.0.1"
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer sk-lab")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	l.got(upstream)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != 200 {
		l.t.Fatalf("%s: code %d, %s", upstream, w.Code, w.Body)
	}
	got := l.got(upstream)
	if len(got) != 1 {
		l.t.Fatalf("%s got %d requests, want 1", upstream, len(got))
	}
	return got[0], Status(w.Header().Get(headerStatus))
}

func (l *lab) handler(upstream string) (http.Handler, error) {
	return l.h.For("127.0.0.1", upstream)
}

// settle waits until the turns that have ended are searchable, and receipts
// written.
func (l *lab) settle() {
	l.t.Helper()
	for deadline := time.Now().Add(patience); len(l.h.assembler.queue) > 0 || l.h.tees.used.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatal("answers were not read in time")
		}
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	if err := l.pipe.Flush(ctx); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) memories() (all []storage.Memory) {
	l.t.Helper()
	for page, err := range storage.ScanPages(l.t.Context(), l.store, l.scope, storage.Query{}) {
		if err != nil {
			l.t.Fatal(err)
		}
		all = append(all, page.Memories...)
	}
	return all
}

// tag tags a memory by hand.
func (l *lab) tag(id string, tags ...string) {
	l.t.Helper()
	_, err := l.pipe.Edit(l.t.Context(), l.scope, id, 0, persist.Cause{}, func(m *storage.Memory) error {
		m.Tags = append(m.Tags, tags...)
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// with returns the id of the memory that has a word.
func (l *lab) with(word string) string {
	l.t.Helper()
	for _, m := range l.memories() {
		if strings.Contains(m.Text, word) {
			return m.ID
		}
	}
	l.t.Fatalf("no memory with %q", word)
	return ""
}

// labTopics are questions, what answers them openly, and what does privately.
// No word but these is in the answers.
var labTopics = []struct{ question, open, private string }{
	{"Which boat does my sister Ada sail on the lake?", "My sister Ada owns a boat shed at the lake.", "My sister Ada sails the boat canaryone on the lake."},
	{"what should I cook tonight?", "I'm allergic to kiwi.", "My son Leo is allergic to canarytwo peanuts."},
	{"what do you know about me?", "I hate treadmills in gyms.", "My name is Zoe Canarythree, and I'm 34."},
	{"How many tons does the crane of the harbour lift?", "The crane of the harbour is yellow.", "The crane of the harbour lifts canaryfour tons."},
	{"Who painted the portrait of my grandfather?", "The portrait of my grandfather hangs in the hall.", "The portrait of my grandfather was painted by canaryfive."},
	{"where were we?", "", "the letter of the clinic says canarysix about my liver"},
	{"what did we talk about today?", "", "my boss told me the salary of canaryseven in confidence"},
}

// fill gives a lab its memories: facts and passages of documents that were
// added by hand, and what was said in conversations. half of each topic's are
// private.
func (l *lab) fill() {
	l.t.Helper()
	l.post("cloud", l.api.path, l.api.body("user: hello there"), identity.HeaderConversation, "first") // tells the scope
	l.settle()
	if l.scope == (storage.Scope{}) {
		l.t.Fatal("nothing was asked for")
	}
	var ms []storage.Memory
	for i, topic := range labTopics[:5] {
		kind := storage.KindFact
		if i == 3 {
			kind = storage.KindResource
		}
		ms = append(ms, storage.Memory{Kind: kind, Text: topic.open, Tags: []string{"work"}},
			storage.Memory{Kind: kind, Text: strings.ToLower(topic.private[:1]) + topic.private[1:], Tags: []string{"work", storage.PrivateTag}})
	}
	ms[9].Tags = []string{"work"} // tagged below
	if _, err := l.pipe.Remember(l.t.Context(), l.scope, ms...); err != nil {
		l.t.Fatal(err)
	}
	l.tag(l.with("canaryfive"), storage.PrivateTag)
	now := storage.TimeOf(time.Now())
	for i, topic := range labTopics[5:] {
		turn := persist.Turn{
			ID: fmt.Sprintf("%032x", i+1), Scope: l.scope, Conversation: fmt.Sprint("talk", i), Chain: fmt.Sprintf("%032x", i+100), Source: "proxy", Finish: "stop",
			Messages: []persist.Message{{Role: storage.RoleUser, Text: topic.private, Time: now}, {Role: storage.RoleAssistant, Text: "I will keep the canary word to myself.", Time: now}},
		}
		if err := l.pipe.Enqueue(turn); err != nil {
			l.t.Fatal(err)
		}
		l.settle()
		l.tag(storage.TurnMemoryID(turn.ID, i), storage.PrivateTag) // of one the question, of the other the answer
	}
}

// TestPrivateNeverLeaves is the promise of the tag private: a memory that has it
// is in no request to an upstream or model that the policy does not name for
// it, in every API, however a conversation moves between them.
func TestPrivateNeverLeaves(t *testing.T) {
	for _, a := range apis {
		for _, placement := range []string{PlacementBeforeUser, PlacementSystem} {
			t.Run(a.name+" "+placement, func(t *testing.T) {
				t.Parallel()
				testPrivateNeverLeaves(t, a, placement)
			})
		}
	}
}

func testPrivateNeverLeaves(t *testing.T, a api, placement string) {
	l := newLab(t, a, func(c *Config, _ *Deps) { c.Injection.Placement = placement })
	l.fill()
	seen, open := map[string]bool{}, map[string]bool{}
	note := func(upstream, sent string) {
		for _, topic := range labTopics {
			for w := range strings.FieldsSeq(strings.ToLower(topic.private)) {
				if strings.HasPrefix(w, canary) && strings.Contains(strings.ToLower(sent), strings.Trim(w, ",.")) {
					seen[w] = true
				}
			}
			if topic.open != "" && strings.Contains(sent, topic.open) {
				open[upstream] = true
			}
		}
	}
	// Every question, first at home and then everywhere else, in conversations of
	// their own and in one that is named.
	for i, topic := range labTopics {
		for _, first := range labUpstreams {
			sent, _ := l.post(first, a.path, a.body("user: "+topic.question))
			note(first, sent)
			l.check(first + ": " + topic.question)
			sent, _ = l.post(first, a.path, a.body("user: "+topic.question), identity.HeaderConversation, fmt.Sprint("named", i, first))
			note(first, sent)
			l.check(first + ", named: " + topic.question)
		}
	}
	// Conversations that begin somewhere and go on elsewhere.
	rng := rand.New(rand.NewPCG(7, 8))
	for n := range 12 {
		var history, hops []string
		named := []string{identity.HeaderConversation, fmt.Sprint("moving", n)}
		if n%2 == 0 {
			named = nil
		}
		for turn := range 6 {
			upstream := labUpstreams[rng.IntN(len(labUpstreams))]
			if turn == 0 {
				upstream = "home"
			}
			hops = append(hops, upstream)
			topic := labTopics[rng.IntN(len(labTopics))]
			history = append(history, "user: "+topic.question)
			header := slices.Clone(named)
			switch rng.IntN(6) {
			case 0:
				header = append(header, headerMemory, "read")
			case 1:
				header = append(header, headerMemory, "write")
			case 2:
				header = append(header, headerMemory, "off")
			}
			body := a.body(history...)
			sent, _ := l.post(upstream, a.path, body, header...)
			note(upstream, sent)
			l.check(fmt.Sprint("moving ", hops))
			if a.name != "gemini" { // which names the model in its path
				outside := strings.Replace(body, `"model":"m"`, `"model":"outside-m"`, 1)
				if outside == body {
					t.Fatal("the body names no model")
				}
				l.post("home", a.path, outside, header...)
				l.check(fmt.Sprint("another model ", hops))
			}
			if strings.HasPrefix(a.name, "messages") && rng.IntN(3) == 0 {
				l.post("cloud", "/v1/messages/count_tokens", body, header...)
				l.check(fmt.Sprint("counted ", hops))
			}
			history = append(history, "assistant: fine")
			if turn == 3 && n%4 == 0 {
				l.settle()
				l.restart()
			}
		}
	}
	want := 7
	if placement == PlacementSystem { // only the first turn of a conversation is given any
		want = 6
	}
	if len(seen) < want {
		t.Errorf("only %d of the private memories were given to home: the test shows little: %v", len(seen), seen)
	}
	for _, upstream := range []string{"home", "cloud", "work", "reader"} {
		if !open[upstream] {
			t.Errorf("%s was given nothing that is open", upstream)
		}
	}
	if open["silent"] {
		t.Error("an upstream without memory was given some")
	}
	// What the requests show, receipts may show: to the person alone.
	l.settle()
	l.stop()
	receipts, _, err := receipt.List(t.Context(), l.store, l.scope, "", receipt.MaxPerUser, nil)
	if err != nil || len(receipts) == 0 {
		t.Fatalf("%d receipts, %v", len(receipts), err)
	}
	policies := 0
	for i := range receipts {
		r := &receipts[i]
		trusted := r.Upstream == "home" && !strings.HasPrefix(r.Model, "outside")
		for _, in := range r.Inserted {
			if !trusted && strings.Contains(strings.ToLower(in.Text), canary) {
				t.Errorf("a receipt of %s shows %q", r.Upstream, in.Text)
			}
		}
		for _, c := range r.Candidates {
			if c.Reason == string(recall.CutPolicy) {
				if policies++; trusted {
					t.Errorf("home was refused %s", c.ID)
				}
			}
		}
	}
	if policies == 0 {
		t.Error("no receipt tells that the policy left something out")
	}
}

// A memory that becomes private after a conversation was given it leaves that
// conversation: what is replayed does not show it to anybody.
func TestPrivateAfterwards(t *testing.T) { inEach(t, testPrivateAfterwards) }

func testPrivateAfterwards(t *testing.T, a api) {
	l := newLab(t, a)
	l.post("cloud", a.path, a.body("user: hello there"))
	l.settle()
	remember := func(text string, tags ...string) string {
		t.Helper()
		saved, err := l.pipe.Remember(t.Context(), l.scope, storage.Memory{Kind: storage.KindFact, Text: text, Tags: tags})
		if err != nil {
			t.Fatal(err)
		}
		return saved[0].Memory.ID
	}
	const open, later = "My sister Ada owns a boat shed at the lake.", "My sister Ada sails the boat Nautilus on the lake."
	remember(open)
	id := remember(later)
	history := []string{"user: Which boat does my sister Ada sail on the lake?"}
	for _, upstream := range []string{"cloud", "home"} {
		if sent, _ := l.post(upstream, a.path, a.body(history...)); !strings.Contains(sent, "Nautilus") {
			t.Fatalf("%s was not given it: the test shows nothing", upstream)
		}
	}
	for _, how := range []struct {
		name string
		do   func()
	}{
		{"tagged", func() { l.tag(id, storage.PrivateTag) }},
		{"tagged, and a restart", func() { l.restart() }},
		{"tagged by giving it as private", func() {
			if _, err := l.pipe.Undo(t.Context(), l.scope, id, persist.Cause{}); err != nil {
				t.Fatal(err)
			}
			again := []string{"user: Tell me which boat my sister Ada sails on the lake."}
			if sent, _ := l.post("cloud", a.path, a.body(again...)); !strings.Contains(sent, "Nautilus") {
				t.Error("open again, it is not given")
			}
			remember(later, storage.PrivateTag)
			history = append(again, "assistant: fine", history[0])
		}},
	} {
		how.do()
		history = append(history, "assistant: fine", "user: And when?")
		for _, upstream := range []string{"cloud", "reader", "work", "silent"} {
			sent, status := l.post(upstream, a.path, a.body(history...))
			if strings.Contains(sent, "Nautilus") {
				t.Errorf("%s: %s was sent %s", how.name, upstream, sent)
			}
			if upstream == "cloud" && (!strings.Contains(sent, open) || status != StatusReplayed && status != StatusInjected) {
				t.Errorf("%s: cloud has lost the rest, status %s: %s", how.name, status, sent)
			}
		}
		if sent, _ := l.post("home", a.path, a.body("user: Which boat does my sister Ada sail on the lake?"), identity.HeaderConversation, how.name); !strings.Contains(sent, "Nautilus") {
			t.Errorf("%s: home is not given it", how.name)
		}
	}
}

// What a policy of tags, kinds or projects forbids is not replayed either when
// a conversation moves, or when a memory loses its tag.
func TestLimitsHoldForReplays(t *testing.T) { inEach(t, testLimitsHoldForReplays) }

func testLimitsHoldForReplays(t *testing.T, a api) {
	l := newLab(t, a)
	l.post("cloud", a.path, a.body("user: hello there"))
	l.settle()
	var ids []string
	for _, m := range []storage.Memory{
		{Text: "My sister Ada owns a boat shed at the lake.", Tags: []string{"work"}},
		{Text: "My sister Ada sails the boat Nautilus on the lake."},
	} {
		m.Kind = storage.KindFact
		saved, err := l.pipe.Remember(t.Context(), l.scope, m)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, saved[0].Memory.ID)
	}
	history := []string{"user: Which boat does my sister Ada sail on the lake?"}
	if sent, _ := l.post("cloud", a.path, a.body(history...)); !strings.Contains(sent, "Nautilus") || !strings.Contains(sent, "shed") {
		t.Fatalf("cloud was sent %s: the test shows nothing", sent)
	}
	sent, _ := l.post("work", a.path, a.body(history...))
	if strings.Contains(sent, "Nautilus") || !strings.Contains(sent, "shed") {
		t.Errorf("work was sent %s", sent)
	}
	history = append(history, "assistant: fine", "user: And when?")
	if sent, status := l.post("work", a.path, a.body(history...)); strings.Contains(sent, "Nautilus") || !strings.Contains(sent, "shed") || status != StatusReplayed {
		t.Errorf("moved: %s, work was sent %s", status, sent)
	}
	if sent, status := l.post("cloud", a.path, a.body(history...)); !strings.Contains(sent, "Nautilus") || status != StatusReplayed {
		t.Errorf("back: %s, cloud was sent %s", status, sent)
	}
	body := a.body(history...)
	if sent, status := l.post("silent", a.path, body); sent != body || status != StatusOff {
		t.Errorf("%s, an upstream without memory was sent %s", status, sent)
	}
	_, err := l.pipe.Edit(t.Context(), l.scope, ids[0], 0, persist.Cause{}, func(m *storage.Memory) error { m.Tags = nil; return nil })
	if err != nil {
		t.Fatal(err)
	}
	history = append(history, "assistant: fine", "user: And where?")
	if sent, _ := l.post("work", a.path, a.body(history...)); strings.Contains(sent, "shed") {
		t.Errorf("without its tag: work was sent %s", sent)
	}
}

// Memory off gives and keeps nothing; read gives and keeps nothing.
func TestPolicyModes(t *testing.T) { inEach(t, testPolicyModes) }

func testPolicyModes(t *testing.T, a api) {
	l := newLab(t, a)
	l.post("cloud", a.path, a.body("user: hello there"))
	l.settle()
	if _, err := l.pipe.Remember(t.Context(), l.scope, storage.Memory{Kind: storage.KindFact, Text: "My sister Ada owns a boat shed at the lake."}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		upstream, mode string
		status         Status
		given, kept    bool
	}{
		{"cloud", "", StatusInjected, true, true},
		{"reader", "", StatusInjected, true, false},
		{"silent", "", StatusOff, false, false},
		{"silent", "on", StatusOff, false, false}, // the client can't have more than the policy
		{"silent", "write", StatusOff, false, false},
		{"reader", "write", StatusEmpty, false, false},
		{"reader", "off", StatusOff, false, false},
		{"reader", "observe", StatusObserved, false, false},
		{"cloud", "read", StatusInjected, true, false},
		{"cloud", "write", StatusEmpty, false, true},
	} {
		name := tt.upstream + " " + tt.mode
		header := []string{identity.HeaderConversation, name}
		if tt.mode != "" {
			header = append(header, headerMemory, tt.mode)
		}
		before := len(l.memories())
		body := a.body("user: What does my sister Ada own at the lake, for " + name + "?")
		sent, status := l.post(tt.upstream, a.path, body, header...)
		if given := fence.Contains(sent); status != tt.status || given != tt.given || !given && sent != body {
			t.Errorf("%s: status %s, given %t, want %s, %t; sent %s", name, status, given, tt.status, tt.given, sent)
		}
		l.settle()
		if kept := len(l.memories()) > before; kept != tt.kept {
			t.Errorf("%s: kept %t, want %t", name, kept, tt.kept)
		}
	}
	if a.name == "chat" { // a rule for models
		body := strings.Replace(a.body("user: What does my sister Ada own at the lake?"), `"model":"m"`, `"model":"Mute-1"`, 1)
		if sent, status := l.post("cloud", a.path, body); sent != body || status != StatusOff {
			t.Errorf("a model without memory: %s, sent %s", status, sent)
		}
	}
}

// What recall returns in spite of the policy is not inserted: nothing forbidden
// leaves because of one mistake.
func TestForbiddenIsCheckedTwice(t *testing.T) { inEach(t, testForbiddenIsCheckedTwice) }

func testForbiddenIsCheckedTwice(t *testing.T, a api) {
	for _, tt := range []struct {
		name   string
		rules  []policy.Rule
		tags   []string
		kind   storage.Kind
		given  bool
		limits bool
	}{
		{"private", nil, []string{storage.PrivateTag}, storage.KindFact, false, false},
		{"private, at another upstream", []policy.Rule{{Upstream: "home", Allow: policy.Allow{Tags: []string{storage.PrivateTag, "*"}}}}, []string{storage.PrivateTag}, storage.KindFact, false, false},
		{"private, at this one", []policy.Rule{{Upstream: "mock", Allow: policy.Allow{Tags: []string{storage.PrivateTag, "*"}}}}, []string{storage.PrivateTag}, storage.KindFact, true, false},
		{"open", nil, []string{"x"}, storage.KindEpisode, true, false},
		{"a kind", []policy.Rule{{Allow: policy.Allow{Kinds: []string{"fact"}}}}, nil, storage.KindEpisode, false, true},
		{"a tag", []policy.Rule{{Allow: policy.Allow{Tags: []string{"work"}}}}, []string{"x"}, storage.KindFact, false, true},
		{"its tag", []policy.Rule{{Allow: policy.Allow{Tags: []string{"work"}}}}, []string{"x", "work"}, storage.KindFact, true, true},
		{"a project", []policy.Rule{{Allow: policy.Allow{Projects: []string{"p"}}}}, nil, storage.KindFact, false, true},
		{"its project", []policy.Rule{{Allow: policy.Allow{Projects: []string{"p"}}}}, []string{storage.ProjectTag + "p"}, storage.KindFact, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := a.rig(t, func(c *Config, _ *Deps) { c.Policy = tt.rules })
			r.recall.set("the words")
			r.recall.memories[0].Tags, r.recall.memories[0].Kind = tt.tags, tt.kind
			body := a.body("user: q1")
			got := r.post(body)
			if sent := r.one().body; fence.Contains(sent) != tt.given || !tt.given && sent != body {
				t.Errorf("status %s, sent %s, want it given: %t", got.status, sent, tt.given)
			}
			q := r.recall.asked()[0]
			private := len(tt.rules) > 0 && tt.rules[0].Upstream == "mock"
			if q.NoPrivate == private || (q.Allow != nil) != tt.limits || q.Lines == tt.limits || q.Explain || q.Cuts {
				t.Errorf("asked with NoPrivate %t, Allow %t, Lines %t, Explain %t", q.NoPrivate, q.Allow != nil, q.Lines, q.Explain)
			}
			if q.Allow != nil && q.Allow(tt.kind, tt.tags) != tt.given {
				t.Errorf("Allow returns %t", !tt.given)
			}
			r.recall.set()
			r.post(a.body("user: q1", "assistant: fine", "user: q2"))
			if sent := r.one().body; fence.Contains(sent) != tt.given {
				t.Errorf("replayed: %s", sent)
			}
		})
	}
}

// The frames of a WebSocket are held to the policy, each by its model.
func TestPolicyOfFrames(t *testing.T) {
	s := newSocketRig(t, func(n int, _ string) []string {
		id := fmt.Sprint("resp_", n)
		return []string{`{"type":"response.created","response":{"id":"` + id + `"}}`, `{"type":"response.completed","response":` + responsesAnswer(id, "fine") + `}`}
	})
	s.h.policy = policy.New([]policy.Rule{
		{Upstream: "mock", Model: "mute", Memory: policy.MemoryOff}, {Upstream: "mock", Model: "own", Allow: policy.Allow{Tags: []string{storage.PrivateTag}}},
	})
	s.recall.set("the words")
	s.recall.memories[0].Tags = []string{storage.PrivateTag}
	for i, tt := range []struct {
		model string
		given bool
	}{{"m", false}, {"own", true}, {"m", false}, {"mute", false}} {
		frame := fmt.Sprintf(`{"type":"response.create","model":%q,"store":false,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"question %d"}]}]}`, tt.model, i)
		s.send(frame)
		if got := s.upstreamGot(); fence.Contains(got) != tt.given || !tt.given && got != frame {
			t.Errorf("%s: sent %s", tt.model, got)
		}
		s.receive()
		s.receive()
	}
}

// The repair of a refused request inserts nothing that the policy forbids,
// although the server asks for what it has seen before.
func TestRepairsKeepToThePolicy(t *testing.T) {
	const refusal = `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid ` + "`signature` in `thinking`" + ` block"}}`
	for _, tt := range []struct {
		name   string
		second policy.Rule
		mode   string
		shown  bool // is the block replayed, after all else was refused
	}{
		{"off by the client", policy.Rule{}, "off", true},
		{"off by the policy", policy.Rule{Memory: policy.MemoryOff}, "on", false},
		{"off by both", policy.Rule{Memory: policy.MemoryOff}, "off", false},
		{"off by the client, where tags limit", policy.Rule{Allow: policy.Allow{Tags: []string{"work"}}}, "off", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var elsewhere atomic.Bool
			tt.second.Upstream, tt.second.Model = "mock", "second"
			r := apis[1].rig(t, func(c *Config, _ *Deps) { c.Policy = []policy.Rule{tt.second} })
			r.answers(func(got received) (int, string, string) {
				if elsewhere.Load() && !fence.Contains(got.body) { // bound to the block
					return 400, "application/json", refusal
				}
				return 200, "application/json", messagesAnswer("", "fine")
			})
			r.recall.set("the words")
			r.post(messagesBody("user: q1"))
			if !fence.Contains(r.one().body) {
				t.Fatal("nothing was inserted: the test shows nothing")
			}
			r.recall.set()
			elsewhere.Store(true)
			body := `{"model":"second","max_tokens":9,"messages":[{"role":"user","content":"q1"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"fine"}]},{"role":"user","content":"q2"}]}`
			for range 2 { // the second with what was learned from the first
				r.post(body, headerMemory, tt.mode)
				shown := slices.ContainsFunc(r.sent(), func(got received) bool { return strings.Contains(got.body, "the words") })
				if shown != tt.shown {
					t.Errorf("shown %t, want %t", shown, tt.shown)
				}
			}
		})
	}
}
