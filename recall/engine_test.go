package recall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/remora-proxy/remora/storage"
)

var alice = storage.Scope{Tenant: "t", App: "a", Project: "p", User: "alice"}

// fakeSource serves memories in pages, with the delays and errors that a test
// sets.
type fakeSource struct {
	mu    sync.Mutex
	ms    map[storage.Scope][]storage.Memory
	page  int
	delay time.Duration
	err   error
	scans atomic.Int64
	onRun func() // called in every scan
}

func (f *fakeSource) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error) {
	f.scans.Add(1)
	if f.delay > 0 {
		select {
		case <-time.After(f.delay):
		case <-ctx.Done():
			return storage.Page{}, ctx.Err()
		}
	}
	if f.onRun != nil {
		f.onRun()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return storage.Page{}, f.err
	}
	all := f.ms[scope]
	from := 0
	if q.After != "" {
		fmt.Sscan(q.After, &from)
	}
	n := f.page
	if n == 0 {
		n = q.Limit
	}
	to := min(from+n, len(all))
	p := storage.Page{Memories: append([]storage.Memory(nil), all[from:to]...)}
	if to < len(all) {
		p.Next = fmt.Sprint(to)
	}
	return p, nil
}

// said returns the episode of a turn with one message.
func said(turn int, text string) storage.Memory {
	id := fmt.Sprintf("%08x", turn)
	return storage.Memory{
		ID: id + "-0", Scope: alice, Conversation: "c1", Kind: storage.KindEpisode, Text: text, Trust: 1,
		EventTime: storage.Time(1_700_000_000_000 + int64(turn)*1000),
		Provenance: storage.Provenance{
			Turn: id, Role: storage.RoleUser, Chain: fmt.Sprintf("%032x", turn),
		},
	}
}

func texts(ms ...string) []storage.Memory {
	var out []storage.Memory
	for i, s := range ms {
		out = append(out, said(i+1, s))
	}
	return out
}

func newEngine(t testing.TB, cfg Config, ms []storage.Memory) (*Engine, *fakeSource) {
	src := &fakeSource{ms: map[storage.Scope][]storage.Memory{alice: ms}}
	e := New(cfg, src, nil, nil)
	t.Cleanup(e.Close)
	return e, src
}

// patient returns the default configuration with deadlines that a slow machine
// meets.
func patient() Config {
	cfg := DefaultConfig()
	cfg.Deadline, cfg.FirstDeadline = time.Minute, time.Minute
	return cfg
}

// resting waits until no background work is left and returns alice's slot.
func resting(t testing.TB, e *Engine) *slot {
	t.Helper()
	v, _ := e.cache.slots.Load(alice)
	s := v.(*slot)
	busy := func() bool {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return e.Stats().Uncoded > 0 || s.rebuild != nil || len(e.rebuilder.running) > 0
	}
	for until := time.Now().Add(time.Minute); busy(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("texts are not coded, or the index not rebuilt, in a minute")
		}
	}
	return s
}

func recallIDs(t testing.TB, e *Engine, req Request) []string {
	t.Helper()
	if req.Scope == (storage.Scope{}) {
		req.Scope = alice
	}
	res, err := e.Recall(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, m := range res.Memories {
		ids = append(ids, m.Memory.ID)
	}
	return ids
}

func wantIDs(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

func TestRecallReturnsWholeMemory(t *testing.T) {
	m := said(7, "My sister Ada lives in Lisbon.")
	m.Entities, m.Tags = []string{"Ada"}, []string{"family", "x"}
	m.Priority, m.Confidence, m.Trust = 0.5, 0.25, 0.75
	m.Source, m.CreatedAt, m.UpdatedAt, m.ValidFrom, m.Version = "proxy", 5, 6, 7, 3
	m.ExpiresAt = m.EventTime + 1e9
	m.Provenance.Speaker, m.Provenance.Model, m.Provenance.Seq = "Bo", "gpt", 2
	other := said(8, "Completely different words about bread.")
	other.Conversation = "c2"
	e, _ := newEngine(t, patient(), []storage.Memory{m, other})
	res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "Where does my sister live?"})
	if err != nil || len(res.Memories) != 1 {
		t.Fatalf("got %d memories, %v, want 1", len(res.Memories), err)
	}
	if d := cmp.Diff(m, res.Memories[0].Memory); d != "" {
		t.Error(d)
	}
}

// bare returns weights with one field and no factors. Scores by them can be
// computed by hand.
func bare() Config {
	cfg := patient()
	cfg.Weights = Weights{K1: 1.2, User: 1, UserAsk: 1, UserB: 0.4, AssistantAsked: 1, Light: 1, Request: 1, Proper: 1,
		Speaker: 1, FirstPerson: 1, FirstPersonBoth: 1, Opening: 1, TimeAnswer: 1, NumberAnswer: 1, NameAnswer: 1}
	cfg.Gate = 0
	return cfg
}

func scores(t *testing.T, e *Engine, newest string) map[string]float64 {
	t.Helper()
	res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: newest, Explain: true, NoGate: true, TopK: 50, BudgetTokens: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range res.Memories {
		got[m.Memory.ID] = m.Score
		sum, factor := 0.0, 1.0
		for _, p := range m.Parts {
			if p.Term != "" {
				sum += p.Value
			} else {
				factor *= p.Value
			}
		}
		if math.Abs(sum*factor-m.Score) > 1e-5*m.Score {
			t.Errorf("%s: the parts make %g, the score is %g", m.Memory.ID, sum*factor, m.Score)
		}
	}
	return got
}

func wantScores(t *testing.T, got, want map[string]float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for id, w := range want {
		if math.Abs(got[id]-w) > 1e-5 {
			t.Errorf("%s: got %.6f, want %.6f", id, got[id], w)
		}
	}
}

// The scores are computed by hand from the formula at Weights.
func TestBM25ByHand(t *testing.T) {
	// Lengths 2, 3, 1 without stop words, mean 2.
	e, _ := newEngine(t, bare(), texts("green tea", "black tea, black", "coffee"))
	// tea: df 2 of 3, idf = ln(1 + 1.5/2.5) = 0.470004. black: df 1, idf = ln(1
	// + 2.5/1.5) = 0.980829. Turn 1: x = 1/(0.6 + 0.4*2/2) = 1; score =
	// 0.470004 * 1/2.2 = 0.213638. Turn 2: tea x = 1/(0.6 + 0.4*3/2) =
	// 0.833333, 0.470004 * 0.833333/2.033333 = 0.192624;
	//         black x = 2/1.2 = 1.666667, 0.980829 * 1.666667/2.866667 = 0.570250.
	wantScores(t, scores(t, e, "black tea"), map[string]float64{
		"00000001-0": 0.213638, "00000002-0": 0.762874,
	})
}

func TestBM25FByHand(t *testing.T) {
	cfg := bare()
	cfg.Weights.Assistant, cfg.Weights.AssistantB = 0.15, 0.75
	cfg.Weights.Before1, cfg.Weights.Before1Ask, cfg.Weights.Before2Ask, cfg.Weights.After1Ask = 0.1, 0.6, 0.3, 0.2
	cfg.Weights.Session, cfg.Weights.SessionB = 0.05, 0.75
	cfg.Weights.FirstPerson = 1.25
	reply := said(2, "zebra zebra stripes")
	reply.ID, reply.Provenance.Seq, reply.Provenance.Role = "00000002-1", 1, storage.RoleAssistant
	ms := texts("zebra?", "lion", "my tiger", "bear", "wolf")
	ms = append(ms[:2], append([]storage.Memory{reply}, ms[2:]...)...)
	e, _ := newEngine(t, cfg, ms)
	// Five turns, zebra in two of them: idf = ln(1 + 3.5/2.5) = 0.875469. All
	// user lengths are the mean, so a user's frequency counts as it is; so does
	// the one assistant text. Session: length 8 of mean 8, tf 3, 0.05*3 = 0.15.
	// Turn 1: asked 1 + session .15 = 1.15 -> .875469 * 1.15/2.35 = .428421.
	// Turn 2: assistant .15*2 = .3, asked one before .6, session .15 = 1.05 ->
	// .875469 * 1.05/2.25 = .408552. Turn 3: asked two before .3 + session .15
	// = .45 -> .875469 * .45/1.65 = .238764; first person: * 1.25 = .298455.
	// Assistant text lends nothing to neighbours, so turns 4 and 5 get nothing.
	wantScores(t, scores(t, e, "zebra"), map[string]float64{
		"00000001-0": 0.428421, "00000002-1": 0.408552, "00000003-0": 0.298455,
	})
}

func TestSpeakerNamedInTheQuery(t *testing.T) {
	cfg := bare()
	cfg.Weights.Speaker = 2
	ms := texts("painting sunset", "painting sunset sea", "bread")
	ms[0].Provenance.Speaker, ms[1].Provenance.Speaker = "Melanie", "Caroline"
	e, _ := newEngine(t, cfg, ms)
	wantIDs(t, "no name", recallIDs(t, e, Request{Newest: "a painting"}), "00000001-0", "00000002-0")
	wantIDs(t, "one name", recallIDs(t, e, Request{Newest: "Caroline's painting"}), "00000002-0", "00000001-0")
	wantIDs(t, "both names", recallIDs(t, e, Request{Newest: "painting of Caroline and Melanie"}), "00000001-0", "00000002-0")
	wantIDs(t, "an unknown name is a word", recallIDs(t, e, Request{Newest: "Is Zoe here?"}))
}

func TestChanges(t *testing.T) {
	e, src := newEngine(t, bare(), texts("red apple", "green apple"))
	apple := Request{Newest: "apple"}
	wantIDs(t, "loaded", recallIDs(t, e, apple), "00000002-0", "00000001-0")

	e.Add(alice, "00000003", []storage.Memory{said(3, "blue apple")})
	wantIDs(t, "added", recallIDs(t, e, apple), "00000003-0", "00000002-0", "00000001-0")

	e.Add(alice, "00000003", []storage.Memory{said(3, "blue pear")})
	wantIDs(t, "turn replaced", recallIDs(t, e, apple), "00000002-0", "00000001-0")
	wantIDs(t, "new text", recallIDs(t, e, Request{Newest: "pear"}), "00000003-0")

	e.Add(alice, "00000003", nil)
	wantIDs(t, "turn emptied", recallIDs(t, e, Request{Newest: "pear"}))

	e.Forget(alice, "00000001-0", "unknown")
	wantIDs(t, "forgotten", recallIDs(t, e, apple), "00000002-0")

	update := said(2, "green plum")
	e.Add(alice, "", []storage.Memory{update})
	wantIDs(t, "same id again", recallIDs(t, e, apple))
	wantIDs(t, "same id again", recallIDs(t, e, Request{Newest: "plum"}), "00000002-0")

	for name, spoil := range map[string]func(*storage.Memory){
		"deleted":     func(m *storage.Memory) { m.DeletedAt = 1 },
		"superseded":  func(m *storage.Memory) { m.ValidTo = 1 },
		"quarantined": func(m *storage.Memory) { m.Trust = 0 },
	} {
		e.Add(alice, "", []storage.Memory{update})
		wantIDs(t, "before "+name, recallIDs(t, e, Request{Newest: "plum"}), "00000002-0")
		m := update
		spoil(&m)
		e.Add(alice, "", []storage.Memory{m})
		wantIDs(t, name, recallIDs(t, e, Request{Newest: "plum"}))
	}

	if got := src.scans.Load(); got != 1 {
		t.Errorf("got %d scans, want 1", got)
	}
	src.ms[alice] = texts("violet fig")
	e.Drop(alice)
	if isLoaded(e, alice) {
		t.Error("loaded after Drop")
	}
	wantIDs(t, "dropped and loaded again", recallIDs(t, e, Request{Newest: "fig"}), "00000001-0")
}

func TestForgetOnePassageOfATurn(t *testing.T) {
	a, b := said(1, "my cat Tom"), said(1, "my dog Rex")
	b.ID, b.Provenance.Seq = "00000001-1", 1
	e, _ := newEngine(t, bare(), []storage.Memory{a, b, said(2, "tea")})
	wantIDs(t, "best passage", recallIDs(t, e, Request{Newest: "dog Rex"}), "00000001-1")
	e.Forget(alice, "00000001-1")
	wantIDs(t, "gone", recallIDs(t, e, Request{Newest: "dog Rex"}))
	wantIDs(t, "the other stays", recallIDs(t, e, Request{Newest: "cat Tom"}), "00000001-0")
}

func TestScopesAreSeparate(t *testing.T) {
	bob := alice
	bob.User = "bob"
	src := &fakeSource{ms: map[storage.Scope][]storage.Memory{alice: texts("secret apple"), bob: texts("public apple")}}
	e := New(bare(), src, nil, nil)
	defer e.Close()
	for range 2 {
		res, err := e.Recall(t.Context(), Request{Scope: bob, Newest: "apple"})
		if err != nil || len(res.Memories) != 1 || res.Memories[0].Memory.Text != "public apple" {
			t.Errorf("got %+v, %v, want bob's memory", res.Memories, err)
		}
		wantIDs(t, "alice", recallIDs(t, e, Request{Newest: "apple"}), "00000001-0")
	}
	_, err := e.Recall(t.Context(), Request{Scope: storage.Scope{User: "x"}, Newest: "apple"})
	if !errors.Is(err, storage.ErrInvalid) {
		t.Errorf("empty tenant: got %v, want ErrInvalid", err)
	}
}

func TestSelection(t *testing.T) {
	ms := texts("apple one", "apple two", "apple two", "apple four", strings.Repeat("apple juice ", 100))
	res := said(6, "apple resource")
	res.Kind, res.Conversation = storage.KindResource, "doc"
	fact := said(7, "apple fact")
	fact.Kind, fact.Conversation = storage.KindFact, "c2"
	ms = append(ms, res, fact)
	e, _ := newEngine(t, bare(), ms)
	all := recallIDs(t, e, Request{Newest: "apple", TopK: 50, BudgetTokens: 1e6})
	for _, tt := range []struct {
		name string
		req  Request
		gone string // ids missing from all, by turn number
	}{
		{"all, the near duplicate collapses", Request{}, ""},
		{"visible chain", Request{VisibleChains: [][16]byte{{15: 4}}}, "4"},
		{"visible chains, one unknown", Request{VisibleChains: [][16]byte{{15: 4}, {15: 0x99}, {15: 2}, {15: 4}}}, "24"},
		{"visible, the newest turns of the conversation", Request{Conversation: "c1", VisibleTurns: 2}, "45"},
		{"visible, the same and a chain", Request{Conversation: "c1", VisibleTurns: 1, VisibleChains: [][16]byte{{15: 4}}}, "45"},
		{"visible, turns of an unknown conversation", Request{Conversation: "new", VisibleTurns: 2}, ""},
		{"visible id", Request{VisibleIDs: map[string]struct{}{"00000001-0": {}, "00000007-0": {}}}, "17"},
		{"this chat", Request{Conversation: "c1", Scopes: []SearchScope{CurrentChat}}, "67"},
		{"this chat, unknown", Request{Conversation: "new", Scopes: []SearchScope{CurrentChat}}, "1234567"},
		{"resources", Request{Scopes: []SearchScope{Resources}}, "123457"},
		{"all but resources", Request{Scopes: []SearchScope{AllUserMemory}}, "6"},
		{"budget shortens the long one", Request{BudgetTokens: 300}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := []string{}
			for _, id := range all {
				if !strings.Contains(tt.gone, id[7:8]) {
					want = append(want, id)
				}
			}
			tt.req.Newest = "apple"
			if tt.req.BudgetTokens == 0 {
				tt.req.BudgetTokens = 1e6
			}
			tt.req.TopK = 50
			wantIDs(t, tt.name, recallIDs(t, e, tt.req), want...)
		})
	}
	if len(all) != 6 { // of seven: two say the same
		t.Errorf("got %v, want 6 memories", all)
	}
	if got := recallIDs(t, e, Request{Newest: "apple", TopK: 2, BudgetTokens: 1e6}); len(got) != 2 {
		t.Errorf("topK 2: got %d", len(got))
	}
}

func TestExpired(t *testing.T) {
	m := said(1, "apple pie")
	m.ExpiresAt = storage.Time(1_800_000_000_000)
	e, _ := newEngine(t, bare(), []storage.Memory{m})
	wantIDs(t, "before", recallIDs(t, e, Request{Newest: "apple", Now: m.ExpiresAt.Std().Add(-time.Second)}), m.ID)
	wantIDs(t, "after", recallIDs(t, e, Request{Newest: "apple", Now: m.ExpiresAt.Std()}))
}

func TestExplainListsCutCandidates(t *testing.T) {
	e, _ := newEngine(t, bare(), texts("apple one", "apple two", "apple two", strings.Repeat("apple juice ", 80)))
	res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "apple", TopK: 1, Explain: true, BudgetTokens: 40,
		VisibleIDs: map[string]struct{}{"00000001-0": {}}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Reason{}
	for _, c := range res.Cut {
		got[c.ID] = c.Reason
	}
	want := map[string]Reason{"00000001-0": CutVisible, "00000002-0": CutTopK, "00000004-0": CutBudget}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(res.Memories) != 1 || len(res.Memories[0].Parts) == 0 {
		t.Errorf("got %+v, want one explained memory", res.Memories)
	}
}

func TestGate(t *testing.T) {
	cfg := bare()
	cfg.Gate = DefaultConfig().Gate
	e, _ := newEngine(t, cfg, texts("I planted tomatoes behind the shed", "The report is due on Friday", "My car needs new tyres"))
	if got := recallIDs(t, e, Request{Newest: "When is the report due?"}); len(got) == 0 {
		t.Error("a question with an answer is gated")
	}
	req := Request{Newest: "Explain Bernoulli's principle, aerodynamic lift and drag of my wing profile report"}
	wantIDs(t, "off the topic", recallIDs(t, e, req))
	res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: req.Newest, Explain: true})
	if err != nil || res.Gated == 0 || res.Considered == 0 || len(res.Cut) == 0 || res.Cut[0].Reason != CutGate {
		t.Errorf("got %+v, %v, want the gate as the reason", res, err)
	}
	req.NoGate = true
	if got := recallIDs(t, e, req); len(got) == 0 {
		t.Error("NoGate: got nothing")
	}
}

func TestEmptyQueries(t *testing.T) {
	e, src := newEngine(t, patient(), texts("apple"))
	for _, s := range []string{"", "   ", "the of and", "\x00\xff\xfe", "<system-reminder>apple</system-reminder>", "😀", strings.Repeat("\u200b", 1000)} {
		wantIDs(t, fmt.Sprintf("%.20q", s), recallIDs(t, e, Request{Newest: s}))
	}
	wantIDs(t, "100 kB", recallIDs(t, e, Request{Newest: strings.Repeat("lorem ipsum dolor ", 6000) + " apple", NoGate: true}), "00000001-0")
	_ = src
}

func TestShortMessageBorrowsTerms(t *testing.T) {
	cfg := bare()
	e, _ := newEngine(t, cfg, texts("the Lisbon flat has a balcony", "the Porto flat has a garage"))
	got := recallIDs(t, e, Request{Newest: "and the balcony?", Previous: func() string { return "Tell me of the flat" }})
	wantIDs(t, "newest first", got, "00000001-0", "00000002-0")
}

// --- loading ---

func TestFirstDeadlineThenReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{ms: map[storage.Scope][]storage.Memory{alice: texts("apple")}, delay: time.Second}
		e := New(DefaultConfig(), src, nil, nil)
		defer e.Close()
		start := time.Now()
		_, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "apple"})
		if !errors.Is(err, ErrTimeout) || time.Since(start) != DefaultConfig().FirstDeadline {
			t.Errorf("got %v after %v, want ErrTimeout after %v", err, time.Since(start), DefaultConfig().FirstDeadline)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !isLoaded(e, alice) {
			t.Fatal("the load did not continue")
		}
		wantIDs(t, "warm", recallIDs(t, e, Request{Newest: "apple"}), "00000001-0")
		if got := src.scans.Load(); got != 1 {
			t.Errorf("got %d scans, want 1", got)
		}
	})
}

func TestOneLoadForManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{ms: map[storage.Scope][]storage.Memory{alice: texts("apple")}, delay: 100 * time.Millisecond}
		e := New(DefaultConfig(), src, nil, nil)
		defer e.Close()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { wantIDs(t, "waited", recallIDs(t, e, Request{Newest: "apple"}), "00000001-0") })
		}
		wg.Wait()
		if got := src.scans.Load(); got != 1 {
			t.Errorf("got %d scans, want 1", got)
		}
	})
}

func TestChangesWhileLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{ms: map[storage.Scope][]storage.Memory{alice: texts("apple one", "apple two")}, delay: time.Second, page: 1}
		cfg := bare()
		cfg.FirstDeadline = time.Second
		e := New(cfg, src, nil, nil)
		defer e.Close()
		e.Recall(t.Context(), Request{Scope: alice, Newest: "apple"})
		e.Add(alice, "00000003", []storage.Memory{said(3, "apple three")})
		e.Forget(alice, "00000001-0")
		e.Add(alice, "00000002", []storage.Memory{said(2, "apple deux")})
		time.Sleep(3 * time.Second)
		synctest.Wait()
		wantIDs(t, "merged", recallIDs(t, e, Request{Newest: "apple"}), "00000003-0", "00000002-0")
		wantIDs(t, "the later text", recallIDs(t, e, Request{Newest: "deux"}), "00000002-0")
	})
}

func TestStoreFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{ms: map[storage.Scope][]storage.Memory{alice: texts("apple")}, err: fmt.Errorf("disk: %w", storage.ErrUnavailable)}
		e := New(DefaultConfig(), src, nil, nil)
		defer e.Close()
		for range 3 {
			if _, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "apple"}); !errors.Is(err, storage.ErrUnavailable) {
				t.Fatalf("got %v, want ErrUnavailable", err)
			}
		}
		if got := src.scans.Load(); got != 1 {
			t.Errorf("got %d scans within the second, want 1", got)
		}
		src.mu.Lock()
		src.err = nil
		src.mu.Unlock()
		time.Sleep(loadPause)
		wantIDs(t, "after the store came back", recallIDs(t, e, Request{Newest: "apple"}), "00000001-0")
	})
}

// During an outage of the store every load fails, and one failure is logged.
func TestFailedLoadsAreLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		e := New(DefaultConfig(), &fakeSource{err: storage.ErrUnavailable}, slog.New(slog.NewTextHandler(&log, nil)), nil)
		defer e.Close()
		fail := func(users ...string) {
			for _, u := range users {
				user := alice
				user.User = u
				e.Recall(t.Context(), Request{Scope: user, Newest: "apple"})
			}
			synctest.Wait()
		}
		fail("1", "2", "3")
		if got := strings.Count(log.String(), "not loaded"); got != 1 {
			t.Errorf("logged %d times, want once: %s", got, &log)
		}
		time.Sleep(failedLogInterval)
		if fail("4", "5"); !strings.Contains(log.String(), "failures=4") || strings.Count(log.String(), "not loaded") != 2 {
			t.Errorf("got %s, want a second line with failures=4", &log)
		}
	})
}

func TestStoreErrorIsUnavailable(t *testing.T) {
	e, src := newEngine(t, patient(), nil)
	src.err = errors.New("odd")
	if _, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "apple"}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

func TestLoadThatPanics(t *testing.T) {
	e, src := newEngine(t, patient(), nil)
	src.onRun = func() { panic("damaged") }
	if _, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "apple"}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

func TestLoadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{delay: time.Hour}
		cfg := DefaultConfig()
		e := New(cfg, src, nil, nil)
		e.Recall(t.Context(), Request{Scope: alice, Newest: "apple"})
		time.Sleep(cfg.LoadTimeout)
		synctest.Wait()
		if got := e.Stats().Failures; got != 1 {
			t.Errorf("got %d failures, want 1", got)
		}
		e.Recall(t.Context(), Request{Scope: alice, Newest: "apple"})
		e.Close() // ends the second load at once, or the test hangs
		if _, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "apple"}); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("closed: got %v, want ErrUnavailable", err)
		}
	})
}

func TestDropWhileLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{ms: map[storage.Scope][]storage.Memory{alice: texts("apple")}, delay: 60 * time.Millisecond}
		e := New(DefaultConfig(), src, nil, nil)
		defer e.Close()
		done := make(chan []string)
		go func() { done <- recallIDs(t, e, Request{Newest: "apple"}) }()
		time.Sleep(30 * time.Millisecond)
		src.mu.Lock()
		src.ms = nil // erased
		src.mu.Unlock()
		e.Drop(alice)
		wantIDs(t, "erased", <-done)
	})
}

func TestRunWaitsForLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(DefaultConfig(), &fakeSource{delay: time.Hour}, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- e.Run(ctx) }()
		e.Recall(t.Context(), Request{Scope: alice, Newest: "apple"})
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

// --- bounds ---

func TestLeastRecentlyUsedScopeIsEvicted(t *testing.T) {
	cfg := patient()
	cfg.MaxBytes, cfg.MaxScopeBytes = 1<<20, 1<<20
	src := &fakeSource{ms: map[storage.Scope][]storage.Memory{}}
	var users []storage.Scope
	for i := range 60 {
		u := alice
		u.User = fmt.Sprint(i)
		users = append(users, u)
		var ms []storage.Memory
		for k := range 100 {
			ms = append(ms, said(k, fmt.Sprintf("apple %d %d", i, k)))
		}
		src.ms[u] = ms
	}
	e := New(cfg, src, nil, nil)
	defer e.Close()
	for _, u := range users {
		if _, err := e.Recall(t.Context(), Request{Scope: u, Newest: "apple"}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Recall(t.Context(), Request{Scope: users[0], Newest: "apple"}); err != nil {
			t.Fatal(err)
		}
		if got := e.Stats(); got.Bytes > cfg.MaxBytes {
			t.Fatalf("got %d bytes held, want at most %d", got.Bytes, cfg.MaxBytes)
		}
	}
	s := e.Stats()
	if s.Evicted == 0 || s.Scopes+int(s.Evicted) != len(users) {
		t.Errorf("got %+v, want evictions and all %d scopes accounted for", s, len(users))
	}
	if !isLoaded(e, users[0]) || isLoaded(e, users[1]) || !isLoaded(e, users[59]) {
		t.Errorf("got %t %t %t, want the least recently used one gone", isLoaded(e, users[0]), isLoaded(e, users[1]), isLoaded(e, users[59]))
	}
}

// wordOf returns a different word for every number.
func wordOf(n int) string {
	w := []byte("xqz")
	for range 4 {
		w = append(w, "bdfgkm"[n%6], "auoi"[n/6%4])
		n /= 24
	}
	return string(w) + "x"
}

func TestOversizedScopeKeepsNewest(t *testing.T) {
	cfg := patient()
	cfg.MaxScopeBytes = 256 << 10
	cfg.Gate = 0
	var ms []storage.Memory
	for i := range 4000 {
		ms = append(ms, said(i, "note on "+wordOf(i)))
	}
	e, _ := newEngine(t, cfg, ms)
	wantIDs(t, "newest", recallIDs(t, e, Request{Newest: wordOf(3999), TopK: 1}), ms[3999].ID)
	wantIDs(t, "oldest", recallIDs(t, e, Request{Newest: wordOf(17), TopK: 1}))
	for i := 4000; i < 6000; i++ {
		m := said(i, "note on "+wordOf(i))
		e.Add(alice, m.Provenance.Turn, []storage.Memory{m})
	}
	resting(t, e)
	wantIDs(t, "added", recallIDs(t, e, Request{Newest: wordOf(5999), TopK: 1}), "0000176f-0")
	s := e.Stats()
	if s.Omitted == 0 || s.Bytes > cfg.MaxScopeBytes+slotOverhead {
		t.Errorf("got %+v, want omitted ones and at most %d bytes", s, cfg.MaxScopeBytes)
	}
}

func TestRebuildKeepsRanking(t *testing.T) {
	cfg := patient()
	var ms []storage.Memory
	for i := range 300 {
		ms = append(ms, said(i, fmt.Sprintf("note %d on the %s garden?", i, strings.Repeat("rose ", i%7))))
	}
	e, _ := newEngine(t, cfg, ms)
	fresh, _ := newEngine(t, cfg, ms[200:])
	recallIDs(t, e, Request{Newest: "rose"})
	for _, m := range ms[:200] {
		e.Forget(alice, m.ID)
	}
	if d := cmp.Diff(scores(t, fresh, "rose garden 250"), scores(t, e, "rose garden 250")); d != "" {
		t.Error(d)
	}
}

func TestConcurrentUse(t *testing.T) {
	cfg := patient()
	cfg.MaxBytes, cfg.MaxScopeBytes = 1<<20, 1<<20
	src := &fakeSource{ms: map[storage.Scope][]storage.Memory{}}
	e := New(cfg, src, nil, nil)
	defer e.Close()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				u := alice
				u.User = fmt.Sprint((g + i) % 5)
				m := said(g*1000+i, fmt.Sprintf("apple %d and pear %d", i, g))
				switch i % 8 {
				case 0:
					e.Forget(u, fmt.Sprintf("%08x-0", g*1000+i-8))
				case 7:
					if i%40 == 7 {
						e.Drop(u)
					}
				case 3, 5:
					e.Add(u, m.Provenance.Turn, []storage.Memory{m})
				default:
					if _, err := e.Recall(context.Background(), Request{Scope: u, Newest: "apple pear", Explain: i%16 == 1}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestSpanHasNoContent(t *testing.T) {
	rec := tracetest.NewSpanRecorder()
	tp := trace.NewTracerProvider(trace.WithSpanProcessor(rec))
	e := New(patient(), &fakeSource{ms: map[storage.Scope][]storage.Memory{alice: texts("my zanzibar trip")}}, nil, tp)
	defer e.Close()
	recallIDs(t, e, Request{Newest: "zanzibar"})
	spans := rec.Ended()
	if len(spans) != 1 || spans[0].Name() != "search_memory" {
		t.Fatalf("got %v, want one search_memory span", spans)
	}
	got := map[string]string{}
	for _, kv := range spans[0].Attributes() {
		got[string(kv.Key)] = kv.Value.String()
		if strings.Contains(kv.Value.String(), "zanzibar") || strings.Contains(kv.Value.String(), "alice") {
			t.Errorf("content in %s", kv.Key)
		}
	}
	if got["gen_ai.memory.record.count"] != "1" || got["remora.recall.indexed"] != "1" || got["error.type"] != "" {
		t.Errorf("got %v, want one of one", got)
	}

	e.Close()
	if _, err := e.Recall(t.Context(), Request{Scope: storage.Scope{Tenant: "t", App: "a", Project: "p", User: "bob"}, Newest: "zanzibar"}); err == nil {
		t.Fatal("a closed engine recalls")
	}
	failed := rec.Ended()[1]
	if !slices.Contains(failed.Attributes(), attribute.String("error.type", "unavailable")) || failed.Status().Code != codes.Error {
		t.Errorf("a failed search has %v, status %v", failed.Attributes(), failed.Status())
	}
}

func TestConfigValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	c := DefaultConfig()
	c.TopK, c.Deadline, c.Gate, c.Scopes, c.Weights.K1 = 101, 0, math.NaN(), []SearchScope{"x"}, 0
	err := c.Validate()
	if err == nil {
		t.Fatal("got nil")
	}
	for _, want := range []string{"topK: ", "deadline: ", "gate: ", "scopes[0]: ", "weight K1: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to mention %s", err, want)
		}
	}
	if err := (Config{}).Validate(); err == nil {
		t.Error("the zero value is valid")
	}
}

func isLoaded(e *Engine, scope storage.Scope) bool {
	loaded, _ := e.Loaded(scope)
	return loaded
}
