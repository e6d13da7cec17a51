package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/proxy/sse"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// facts is a memory that has something new to say each time, to one user.
type facts struct {
	n     atomic.Int64
	scope atomic.Pointer[storage.Scope]
}

func (f *facts) Recall(_ context.Context, q recall.Request) (recall.Result, error) {
	f.scope.Store(&q.Scope)
	id := fmt.Sprint("m", f.n.Add(1))
	return recall.Result{Memories: []recall.Scored{{Memory: storage.Memory{ID: id, Text: "The user's number is " + id + "."}, Score: 1}}}, nil
}

func (*facts) Loaded(storage.Scope) (bool, time.Time) { return true, time.Time{} }

// mortal is a store as one process sees it: killed with that process, or away
// for a while.
type mortal struct {
	*storagetest.Mem
	gone atomic.Bool
}

func (m *mortal) PutRecords(ctx context.Context, records []storage.Record) error {
	if m.gone.Load() {
		return storage.ErrUnavailable
	}
	return m.Mem.PutRecords(ctx, records)
}

func (m *mortal) Records(ctx context.Context, b storage.Bucket, s storage.Scope, after string, limit int) (storage.RecordPage, error) {
	if m.gone.Load() {
		return storage.RecordPage{}, storage.ErrUnavailable
	}
	return m.Mem.Records(ctx, b, s, after, limit)
}

func (m *mortal) RecordsWithPrefix(ctx context.Context, b storage.Bucket, s storage.Scope, prefix, after string, limit int) (storage.RecordPage, error) {
	if m.gone.Load() {
		return storage.RecordPage{}, storage.ErrUnavailable
	}
	return m.Mem.RecordsWithPrefix(ctx, b, s, prefix, after, limit)
}

func (m *mortal) RecordKeys(ctx context.Context, b storage.Bucket, s storage.Scope, limit int) ([]string, error) {
	if m.gone.Load() {
		return nil, storage.ErrUnavailable
	}
	return m.Mem.RecordKeys(ctx, b, s, limit)
}

func (m *mortal) DeleteRecords(ctx context.Context, refs []storage.RecordRef) error {
	if m.gone.Load() {
		return storage.ErrUnavailable
	}
	return m.Mem.DeleteRecords(ctx, refs)
}

// process is a proxy that has things happen to it.
type process struct {
	t      testing.TB
	up     *httptest.Server
	disk   *storagetest.Mem // survives the process
	config func(*Config)
	facts  facts

	h    *Handler
	now  time.Time
	kill func()
	// journal is the directory of the ledger's journal, on the same disk.
	journal string
	stop    func()
	live    *mortal

	mode string // of X-Remora-Memory
}

func newProcess(t testing.TB, upstream http.Handler) *process {
	t.Helper()
	b := &process{t: t, up: httptest.NewServer(upstream), now: time.Now().Truncate(time.Second)}
	b.newDisk()
	b.start()
	return b
}

// boundTalk is a client in conversation with a server that binds thinking.
type boundTalk struct {
	*process
	claude *proxytest.Claude
	stream bool
	system string
	msgs   []json.RawMessage
}

func newBoundTalk(t testing.TB, claude *proxytest.Claude) *boundTalk {
	t.Helper()
	b := &boundTalk{process: newProcess(t, claude), claude: claude, system: `"Be brief."`}
	claude.Answer = func(r proxytest.ClaudeRequest) []proxytest.ClaudeBlock {
		last := r.Messages[len(r.Messages)-1]
		asked := 0
		for _, m := range r.Messages {
			asked += strings.Count(m.Text(), "Use tools.")
		}
		calls := 0
		for _, m := range r.Messages {
			for _, block := range m.Blocks {
				calls += bytes.Count(block, []byte(`"type":"tool_use"`))
			}
		}
		if calls < 2*asked {
			call := &proxytest.Call{Name: "look", Arguments: `{"at":"it"}`}
			return []proxytest.ClaudeBlock{{Thinking: "I must look."}, {Thinking: "Twice.", Redacted: calls%2 == 1}, {Text: "Let me see."}, {Call: call}}
		}
		return []proxytest.ClaudeBlock{{Thinking: "Now I know."}, {Text: "It is fine, " + strconv.Itoa(len(last.Blocks)) + "."}}
	}
	return b
}

// newDisk gives the next process a disk with nothing on it.
func (b *process) newDisk() {
	b.t.Helper()
	dir, err := os.MkdirTemp(b.t.TempDir(), "")
	if err != nil {
		b.t.Fatal(err)
	}
	b.disk, b.journal = storagetest.Memory(), dir
}

func (b *process) clock() time.Time { return b.now }

// start starts a process.
func (b *process) start() {
	cfg := DefaultConfig()
	cfg.Upstreams = []httpclient.UpstreamConfig{{Name: "mock", URL: b.up.URL, Paths: []string{"/"}}}
	cfg.Identity.Loopback = true
	cfg.FirstDeadline, cfg.RecallDeadline = patience, patience
	if b.config != nil {
		b.config(&cfg)
	}
	b.live = &mortal{Mem: b.disk}
	h, err := New(cfg, Deps{Recall: &b.facts, Persist: &fakePersist{}, Local: b.live, Journal: b.journal, Now: b.clock})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	b.h, b.stop = h, func() { cancel(); <-done }
	b.kill = func() { b.live.gone.Store(true); cancel(); <-done }
}

func (b *process) close() {
	b.stop()
	b.up.Close()
}

// say appends what the user says and goes on until the model has answered.
func (b *boundTalk) say(text string) error {
	b.msgs = append(b.msgs, json.RawMessage(fmt.Sprintf(`{"role":"user","content":%q}`, text)))
	return b.goOn(nil)
}

// goOn sends the conversation until the model calls no more tools. between is
// called before each request but the first.
func (b *boundTalk) goOn(between func()) error {
	for step := 0; ; step++ {
		if step > 0 && between != nil {
			between()
		}
		content, calls, err := b.post()
		if err != nil {
			return err
		}
		b.msgs = append(b.msgs, json.RawMessage(`{"role":"assistant","content":`+string(content)+`}`))
		if len(calls) == 0 {
			return nil
		}
		var results []string
		for _, id := range calls {
			results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"seen"}`, id))
		}
		b.msgs = append(b.msgs, json.RawMessage(`{"role":"user","content":[`+strings.Join(results, ",")+`]}`))
	}
}

func (b *boundTalk) body() string {
	var all []string
	for _, m := range b.msgs {
		all = append(all, string(m))
	}
	return fmt.Sprintf(`{"model":"claude-opus-5-5","max_tokens":1000,"stream":%v,"thinking":{"type":"enabled","budget_tokens":1024},"system":%s,`+
		`"tools":[{"name":"look","input_schema":{"type":"object"}}],"messages":[%s]}`, b.stream, b.system, strings.Join(all, ","))
}

// request returns a request with this body.
func (b *boundTalk) request(body string) *http.Request {
	req := httptest.NewRequest("POST", "/v1/messages", strings.NewReader(body))
	req.Header.Set("X-Api-Key", "sk-ant-rig")
	req.Header.Set("Content-Type", "application/json")
	req.RemoteAddr = "127.0.0.1:1"
	req.Host = "127.0.0.1"
	if b.mode != "" {
		req.Header.Set(headerMemory, b.mode)
	}
	return req
}

// post sends the conversation, and returns the content of the answer and the
// tools that it calls.
func (b *boundTalk) post() (content json.RawMessage, calls []string, err error) {
	req := b.request(b.body())
	w := httptest.NewRecorder()
	b.h.ServeHTTP(w, req)
	if w.Code != http.StatusOK {
		return nil, nil, fmt.Errorf("got %d %s, status %s", w.Code, w.Body, w.Header().Get(headerStatus))
	}
	var message struct {
		Content []json.RawMessage `json:"content"`
	}
	if b.stream {
		message.Content = joinEvents(b.t, w.Body.Bytes())
	} else if err := json.Unmarshal(w.Body.Bytes(), &message); err != nil {
		return nil, nil, err
	}
	for _, block := range message.Content {
		var f struct{ Type, ID string }
		_ = json.Unmarshal(block, &f)
		if f.Type == "tool_use" {
			calls = append(calls, f.ID)
		}
	}
	content, _ = json.Marshal(message.Content)
	return content, calls, nil
}

// joinEvents returns the blocks of a streamed answer.
func joinEvents(t testing.TB, stream []byte) (blocks []json.RawMessage) {
	var open map[string]any
	input := ""
	for e := range sse.Events(stream) {
		var v struct {
			Type         string
			ContentBlock map[string]any `json:"content_block"`
			Delta        map[string]any
		}
		if err := json.Unmarshal(e.Data, &v); err != nil {
			t.Fatal(err)
		}
		switch v.Type {
		case "content_block_start":
			open, input = v.ContentBlock, ""
		case "content_block_delta":
			for _, key := range []string{"text", "thinking", "signature"} {
				if s, ok := v.Delta[key].(string); ok {
					was, _ := open[key].(string)
					open[key] = was + s
				}
			}
			if s, ok := v.Delta["partial_json"].(string); ok {
				input += s
			}
		case "content_block_stop":
			if input != "" {
				open["input"] = json.RawMessage(input)
			}
			b, _ := json.Marshal(open)
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// changes are what may happen between two requests of a conversation. extra is
// how many more upstream requests it may cost at most.
var changes = []struct {
	name  string
	extra int
	do    func(b *process)
}{
	{"nothing", 0, func(*process) {}},
	{"restart", 0, func(b *process) { b.stop(); b.start() }},
	{"kill", 0, func(b *process) { b.kill(); b.start() }},
	{"forget", 1, func(b *process) { b.forget() }},
	{"forget and restart", 1, func(b *process) { b.forget(); b.stop(); b.start() }},
	{"off", 1, func(b *process) { b.mode = "off" }},
	{"observe", 1, func(b *process) { b.mode = "observe" }},
	{"read", 0, func(b *process) { b.mode = "read" }},
	{"write", 0, func(b *process) { b.mode = "write" }},
	{"a month", 0, func(b *process) { b.now = b.now.Add(29 * 24 * time.Hour) }},
	{"time to live", 1, func(b *process) { b.now = b.now.Add(40 * 24 * time.Hour) }},
	{"lost ledger", 1, func(b *process) { b.stop(); b.newDisk(); b.start() }},
	{"another replica", 1, func(b *process) { b.kill(); b.newDisk(); b.start() }},
	{"system placement", 0, inSystem},
	{"rule in system", 1, func(b *process) {
		b.stop()
		b.config = func(c *Config) { c.Injection.RuleInSystem = true }
		b.start()
	}},
	{"memory off", 1, func(b *process) {
		b.stop()
		b.config = func(c *Config) { c.Identity.Anonymous = "off" }
		b.start()
	}},
	{"conversation full", 0, func(b *process) {
		b.stop()
		b.config = func(c *Config) { c.Ledger.MaxBlocks = 1 }
		b.start()
	}},
	{"little memory", 1, func(b *process) {
		b.stop()
		b.config = func(c *Config) { c.Ledger.MaxBytes = 1 << 20 }
		b.start()
	}},
	{"store away", 1, func(b *process) { b.kill(); b.start(); b.live.gone.Store(true) }},
}

func inSystem(b *process) {
	b.stop()
	b.config = func(c *Config) { c.Injection.Placement = PlacementSystem }
	b.start()
}

// forget forgets all memories that the conversation has.
func (b *process) forget() {
	if scope := b.facts.scope.Load(); scope != nil {
		for i := range b.facts.n.Load() {
			b.h.Forget(*scope, fmt.Sprint("m", i+1))
		}
	}
	b.h.ledger.Flush(b.t.Context())
}

// No conversation that would live without Remora dies with it, whatever happens
// between two of its requests, and what happens once costs one more request at
// most.
func TestNoConversationIsBroken(t *testing.T) {
	for _, c := range changes {
		for _, tools := range []bool{false, true} {
			for _, stream := range []bool{false, true} {
				for _, strict := range []bool{false, true} {
					if strict && !tools {
						continue
					}
					t.Run(fmt.Sprintf("%s/tools=%v,stream=%v,strict=%v", c.name, tools, stream, strict), func(t *testing.T) {
						t.Parallel()
						b := newBoundTalk(t, &proxytest.Claude{LoopNeedsThinking: strict})
						defer b.close()
						b.stream = stream
						question := "What is it?"
						if tools {
							question = "What is it? Use tools."
						}
						for _, q := range []string{question, "And now?"} {
							if err := b.say(q); err != nil {
								t.Fatal(err)
							}
						}
						if b.claude.Refused() > 0 {
							t.Fatalf("%d requests were refused before anything happened", b.claude.Refused())
						}
						c.do(b.process)
						for _, q := range []string{question, "And then?", question} {
							if err := b.say(q); err != nil {
								t.Fatal(err)
							}
						}
						if got := b.claude.Refused(); got > c.extra {
							t.Errorf("%d requests were refused, want at most %d", got, c.extra)
						}
					})
				}
			}
		}
	}
}

// The same in the middle of a tool loop.
func TestNoToolLoopIsBroken(t *testing.T) {
	for _, c := range changes {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/strict=%v", c.name, strict), func(t *testing.T) {
				t.Parallel()
				b := newBoundTalk(t, &proxytest.Claude{LoopNeedsThinking: strict})
				defer b.close()
				if err := b.say("What is it?"); err != nil {
					t.Fatal(err)
				}
				b.msgs = append(b.msgs, json.RawMessage(`{"role":"user","content":"Use tools."}`))
				happened := false
				if err := b.goOn(func() {
					if !happened {
						happened = true
						c.do(b.process)
					}
				}); err != nil {
					t.Fatal(err)
				}
				if err := b.say("And then?"); err != nil {
					t.Fatal(err)
				}
				extra := c.extra
				if strict { // the loop is refused without its thinking, too
					extra *= 2
				}
				if got := b.claude.Refused(); got > extra {
					t.Errorf("%d requests were refused, want at most %d", got, extra)
				}
			})
		}
	}
}

// A refusal is recognised in all of its wordings.
func TestBoundRefusalsAreRecognised(t *testing.T) {
	for text := proxytest.BindingPlain; text <= proxytest.BindingLatest; text++ {
		b := newBoundTalk(t, &proxytest.Claude{Text: text})
		for _, q := range []string{"One. Use tools.", "Two."} {
			if err := b.say(q); err != nil {
				t.Fatal(err)
			}
		}
		b.forget()
		if err := b.say("Three."); err != nil || b.claude.Refused() != 1 {
			t.Errorf("wording %d: %v, refused %d", text, err, b.claude.Refused())
		}
		b.close()
	}
}

// By setting only, the server is asked to drop what it does not accept.
func TestRepairSettings(t *testing.T) {
	for setting, want := range map[string]bool{RepairOff: false, RepairStrip: true} {
		b := newBoundTalk(t, &proxytest.Claude{})
		b.stop()
		b.config = func(c *Config) { c.Injection.Repair = setting }
		b.start()
		if err := b.say("One."); err != nil {
			t.Fatal(err)
		}
		b.forget()
		if err := b.say("Two."); (err == nil) != want {
			t.Errorf("%s: %v", setting, err)
		}
		for _, r := range b.claude.Requests() {
			if len(r.Header["Anthropic-Beta"]) > 0 {
				t.Errorf("%s: a header was added", setting)
			}
		}
		b.close()
	}
}

// A server that wants thinking in a loop, and never does without, can only be
// asked to drop what it does not accept. That is done by setting alone.
func TestBlocksAreDroppedBySetting(t *testing.T) {
	for setting, want := range map[string]bool{RepairStrip: false, RepairDropBlock: true} {
		b := newBoundTalk(t, &proxytest.Claude{LoopNeedsThinking: true, AlwaysThinks: true})
		b.stop()
		b.config = func(c *Config) { c.Injection.Repair = setting }
		b.start()
		b.msgs = append(b.msgs, json.RawMessage(`{"role":"user","content":"Use tools."}`))
		happened := false
		err := b.goOn(func() {
			if !happened {
				happened = true
				b.stop()
				b.newDisk()
				b.start()
			}
		})
		if (err == nil) != want {
			t.Errorf("%s: %v", setting, err)
		}
		requests := b.claude.Requests()
		if got := len(requests[len(requests)-1].Header["Anthropic-Beta"]) > 0; got != want {
			t.Errorf("%s: beta header %v", setting, got)
		}
		b.close()
	}
}

// A request that wants no memory gets what earlier turns inserted if nothing
// else is accepted, and the next one does not fail first.
func TestReplayIsTheLastResort(t *testing.T) {
	b := newBoundTalk(t, &proxytest.Claude{LoopNeedsThinking: true, AlwaysThinks: true})
	defer b.close()
	b.msgs = append(b.msgs, json.RawMessage(`{"role":"user","content":"Use tools."}`))
	refused := []int{}
	if err := b.goOn(func() { b.mode = "off"; refused = append(refused, b.claude.Refused()) }); err != nil {
		t.Fatal(err)
	}
	refused = append(refused, b.claude.Refused())
	if len(refused) < 3 || refused[len(refused)-1] != refused[1] || refused[1] == 0 {
		t.Errorf("refused after each step: %v, want refusals in the first without memory only", refused)
	}
	requests := b.claude.Requests()
	last := requests[len(requests)-1]
	if !strings.Contains(string(last.Body), "number is m1") || strings.Count(string(last.Body), `"signature"`) == 0 {
		t.Errorf("the last request has lost its block or its thinking: %s", last.Body)
	}
}

// The end of an answer waits for the journal, within a bound and only once.
func TestEndsWaitForTheJournal(t *testing.T) {
	for _, broken := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "journal")
		r := newRig(t, func(_ *Config, d *Deps) { d.Journal = dir })
		for i := range 3 {
			r.recall.set(fmt.Sprint("fact ", i))
			if got := r.post(chat(fmt.Sprintf("user: question %d", i))); got.status != StatusInjected {
				t.Errorf("status %s", got.status)
			}
			if broken {
				r.h.ledger.Flush(t.Context())
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
		}
		late := r.h.Stats().LedgerLate.Load()
		if broken && late != 2 || !broken && late != 0 {
			t.Errorf("broken %v: %d answers ended before what was inserted was stored", broken, late)
		}
	}
}

// Ten thousand random conversations, with REMORA_CONVERSATIONS=10000; some
// hundreds otherwise.
func TestRandomConversationsLive(t *testing.T) {
	n := 200
	if s := os.Getenv("REMORA_CONVERSATIONS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	if testing.Short() {
		n = 40
	}
	dead := 0
	for i := range n {
		talk := randomTalk
		if i%3 == 2 {
			talk = randomAnyTalk
		}
		if err := talk(t, uint64(i)); err != nil {
			dead++
			t.Errorf("conversation %d: %v", i, err)
			if dead > 5 {
				t.FailNow()
			}
		}
	}
	t.Logf("%d conversations, %d dead", n, dead)
}

func randomTalk(t *testing.T, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 25))
	b := newBoundTalk(t, &proxytest.Claude{
		Text: proxytest.BindingText(rng.IntN(int(proxytest.BindingLatest) + 1)), LoopNeedsThinking: rng.IntN(3) == 0, NoControls: rng.IntN(2) == 0,
	})
	defer b.close()
	b.stream = rng.IntN(2) == 0
	if rng.IntN(4) == 0 {
		inSystem(b.process)
	}
	var log []string
	for range 2 + rng.IntN(5) {
		text := "Say something."
		if rng.IntN(2) == 0 {
			text = "Say something. Use tools."
		}
		happen := func() { b.happen(rng, &log) }
		if len(b.msgs) >= 4 && rng.IntN(6) == 0 { // the client takes its last question back
			for i := len(b.msgs) - 1; i >= 0; i-- {
				if strings.HasPrefix(string(b.msgs[i]), `{"role":"user","content":"`) {
					b.msgs = b.msgs[:i]
					break
				}
			}
			log = append(log, "edit")
		}
		b.msgs = append(b.msgs, json.RawMessage(fmt.Sprintf(`{"role":"user","content":%q}`, text)))
		if err := b.goOn(happen); err != nil {
			return fmt.Errorf("after %s: %w", strings.Join(log, ", "), err)
		}
		happen()
	}
	return nil
}

// happen has something happen, or not.
func (b *process) happen(rng *rand.Rand, log *[]string) {
	if rng.IntN(2) == 0 {
		c := changes[rng.IntN(len(changes))]
		*log = append(*log, c.name)
		c.do(b)
	}
	if rng.IntN(6) == 0 {
		b.mode = []string{"", "on", "off", "read"}[rng.IntN(4)]
		*log = append(*log, "mode "+b.mode)
	}
	if rng.IntN(8) == 0 {
		b.live.gone.Store(false)
	}
}
