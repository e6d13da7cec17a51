package recall

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remora-proxy/remora/recall/vector"
	"github.com/remora-proxy/remora/storage"
)

// fakeEmbedder gives each text a direction of its own, except that like makes
// texts alike.
type fakeEmbedder struct {
	mu      sync.Mutex
	model   string
	dim     int
	like    map[string]string // text -> text whose direction it shares
	refuse  string            // a text that gets no vector
	err     error
	onDocs  func()                          // called while documents are under way
	query   func(ctx context.Context) error // called before a query is answered
	seen    []string                        // documents
	queries []string
}

func (f *fakeEmbedder) Model() string { return f.model }

func (f *fakeEmbedder) vector(text string) []float32 {
	if other, ok := f.like[text]; ok {
		text = other
	}
	r := seeded(text)
	numbers := rand.New(rand.NewPCG(r.Uint64(), 1))
	v := make([]float32, f.dim)
	for i := range v {
		v[i] = float32(numbers.NormFloat64())
	}
	return unit32(v)
}

func (f *fakeEmbedder) Query(ctx context.Context, text string) ([]float32, error) {
	f.mu.Lock()
	query := f.query
	f.mu.Unlock()
	if query != nil {
		if err := query(ctx); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queries = append(f.queries, text)
	return f.vector(text), nil
}

func (f *fakeEmbedder) Documents(ctx context.Context, texts []string) ([][]float32, error) {
	if f.onDocs != nil {
		f.onDocs()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	f.seen = append(f.seen, texts...)
	var out [][]float32
	for _, t := range texts {
		if t == f.refuse {
			out = append(out, nil)
			continue
		}
		out = append(out, f.vector(t))
	}
	return out, ctx.Err()
}

func (f *fakeEmbedder) documents() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(slices.Values(f.seen))
}

func (f *fakeEmbedder) beforeQuery(query func(ctx context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.query = query
}

func (f *fakeEmbedder) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func newFake() *fakeEmbedder { return &fakeEmbedder{model: "m", dim: 64, like: map[string]string{}} }

// foreign is a record of another owner in the bucket of the vectors.
var foreign = storage.Record{Bucket: storage.BucketIndex, Scope: alice, Key: "snapshot", Value: []byte("not a segment")}

func vectorEngine(t testing.TB, em Embedder, local *fakeLocal) *Engine {
	t.Helper()
	cfg := patient()
	cfg.Vectors.Embedder, cfg.Vectors.Redact = em, same
	return vectorEngineOf(t, cfg, local)
}

// vectorEngineOf returns an engine that has loaded alice and embedded her
// memories.
func vectorEngineOf(t testing.TB, cfg Config, local *fakeLocal) *Engine {
	t.Helper()
	if err := local.PutRecords(t.Context(), []storage.Record{foreign}); err != nil {
		t.Fatal(err)
	}
	e := New(cfg, local, nil, nil)
	t.Cleanup(func() {
		e.Close()
		if d := cmp.Diff(foreign, local.records[foreign.Ref()]); d != "" {
			t.Errorf("a record of another owner has changed: %s", d)
		}
	})
	if _, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "load"}); err != nil {
		t.Fatal(err)
	}
	return e
}

// memories returns n memories of which no two are alike.
func memories(n int) []storage.Memory {
	var ms []storage.Memory
	for i := range n {
		m := said(i+1, fmt.Sprintf("memory%d about thing%d", i, i))
		m.ID = storage.TurnMemoryID(m.Provenance.Turn, 0)
		ms = append(ms, m)
	}
	return ms
}

func ids(ms []storage.Memory) map[uint64]int {
	want := map[uint64]int{}
	for _, m := range ms {
		want[vector.Hash(m.ID)] = 1
	}
	return want
}

func wantStored(t testing.TB, what string, local *fakeLocal, ms []storage.Memory) {
	t.Helper()
	if d := cmp.Diff(ids(ms), local.stored(t, alice)); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

// A memory that shares no word with the question is found by likeness, and a
// question that words would silence passes.
func TestLikenessFindsWhatWordsMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		em := newFake()
		ms := memories(200)
		ms[50].Text = "Zinc roofs hum during squalls"
		em.like["Which metal sings overhead?"] = ms[50].Text
		e := vectorEngine(t, em, newLocal(ms))
		settled(t, e, alice)
		ask := Request{Scope: alice, Newest: "Which metal sings overhead?", Explain: true}
		res, err := e.Recall(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Memories) != 1 || res.Memories[0].Memory.ID != ms[50].ID || res.Vectors != VectorsUsed {
			t.Fatalf("got %+v, want only the roof", res)
		}
		if parts := res.Memories[0].Parts; len(parts) == 0 || !slices.ContainsFunc(parts, func(p Part) bool { return p.Name == PartVector && p.Value > 0 }) {
			t.Errorf("got %+v, want a part for the vector", parts)
		}
		if e.Stats().Vectors.Used == 0 {
			t.Error("the use of vectors is not counted")
		}
		cfg := e.cfg // what the gate keeps away
		cfg.Vectors.Gate = 0
		closed := vectorEngineOf(t, cfg, newLocal(ms))
		settled(t, closed, alice)
		if res, err = closed.Recall(t.Context(), ask); err != nil || len(res.Memories) != 0 {
			t.Errorf("gate 0: got %+v, %v, want nothing", res, err)
		}
		res, err = e.Recall(t.Context(), Request{Scope: alice, Newest: "Thanks a lot!"})
		if err != nil || len(res.Memories) != 0 {
			t.Errorf("small talk: got %+v, %v, want nothing", res, err)
		}
	})
}

// The parts of a score add up to it if the vector's is among them.
func TestExplainSumsWithVectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		em := newFake()
		ms := memories(100)
		em.like["What about thing7 and memory8?"] = ms[7].Text
		e := vectorEngine(t, em, newLocal(ms))
		settled(t, e, alice)
		res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "What about thing7 and memory8?", Explain: true, NoGate: true})
		if err != nil || len(res.Memories) < 2 {
			t.Fatalf("got %+v, %v", res, err)
		}
		vectors := 0
		for _, m := range res.Memories {
			sum, product := 0.0, 1.0
			for _, p := range m.Parts {
				switch {
				case p.Name == PartVector:
					vectors++
					sum += p.Value
				case p.Term != "":
					sum += p.Value
				default:
					product *= p.Value
				}
			}
			if math.Abs(sum*product-m.Score) > 1e-4*m.Score {
				t.Errorf("parts give %f, score %f: %+v", sum*product, m.Score, m.Parts)
			}
		}
		if vectors == 0 {
			t.Error("no vector among the parts")
		}
	})
}

// If the query's vector fails or is late, the result is what words find, byte
// for byte, within the deadline.
func TestWordsAreUnharmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := memories(40)
		plain, _ := newEngine(t, patient(), ms)
		req := Request{Scope: alice, Newest: "What about thing7?", Explain: true}
		want, err := plain.Recall(t.Context(), req)
		if err != nil || len(want.Memories) == 0 || want.Vectors != VectorsOff {
			t.Fatalf("got %+v, %v", want, err)
		}
		em := newFake()
		cfg := DefaultConfig()
		cfg.Vectors.Embedder, cfg.Vectors.Redact = em, same
		e := vectorEngineOf(t, cfg, newLocal(ms))
		settled(t, e, alice)
		before := e.Stats().Vectors // the request that loads may find vectors already
		for _, c := range []struct {
			name  string
			query func(ctx context.Context) error
			want  VectorStatus
			took  time.Duration
		}{
			{"slow", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, VectorsLate, cfg.Deadline * 9 / 10},
			{"deaf", func(context.Context) error { time.Sleep(time.Second); return nil }, VectorsLate, cfg.Deadline},
			{"down", func(context.Context) error { return errors.New("refused") }, VectorsFailed, 0},
			{"panics", func(context.Context) error { panic("oops") }, VectorsFailed, 0},
			{"other dimension", func(context.Context) error {
				em.mu.Lock()
				defer em.mu.Unlock()
				em.dim = 32
				return nil
			}, VectorsFailed, 0},
		} {
			em.beforeQuery(c.query)
			start := time.Now()
			got, err := e.Recall(t.Context(), req)
			if took := time.Since(start); err != nil || got.Vectors != c.want || took != c.took {
				t.Errorf("%s: vectors %s after %v, %v, want %s after %v", c.name, got.Vectors, took, err, c.want, c.took)
			}
			if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Result{}, "Took", "Vectors")); d != "" {
				t.Errorf("%s: %s", c.name, d)
			}
			time.Sleep(2 * time.Second) // the deaf one comes back
		}
		em.beforeQuery(nil)
		settled(t, e, alice)
		if got, err := e.Recall(t.Context(), req); err != nil || got.Vectors != VectorsUsed {
			t.Errorf("after the change of dimension: %s, %v", got.Vectors, err)
		}
		if s := e.Stats().Vectors; s.Late != before.Late+2 || s.Failed != before.Failed+3 || s.Used != before.Used+1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestTextsAreRedactedBeforeEmbedding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		em := newFake()
		cfg := patient()
		cfg.Vectors.Embedder = em
		cfg.Vectors.Redact = func(s string) string { return strings.ReplaceAll(s, "canary", "[x]") }
		stored := memories(5)
		stored[2].Text += " of a canary" // from before there was a rule
		e := vectorEngineOf(t, cfg, newLocal(stored))
		settled(t, e, alice)
		if sent := strings.Join(em.seen, "\n"); strings.Contains(sent, "canary") || !strings.Contains(sent, " of a [x]") {
			t.Errorf("memories sent: %q", sent)
		}
		if _, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "my canary\n<system-reminder>canary secret</system-reminder>", Previous: func() string { return "the canary before" }}); err != nil {
			t.Fatal(err)
		}
		if got := em.queries[len(em.queries)-1]; strings.Contains(got, "canary") || strings.Contains(got, "secret") ||
			!strings.Contains(got, "my [x]") || !strings.Contains(got, "the [x] before") {
			t.Errorf("sent %q", got)
		}
		n := len(em.queries)
		cfg.Vectors.Redact = nil
		bare := vectorEngineOf(t, cfg, newLocal(memories(5)))
		res, err := bare.Recall(t.Context(), Request{Scope: alice, Newest: "my canary"})
		if err != nil || res.Vectors != VectorsOff || len(em.queries) != n {
			t.Errorf("without a redactor: %s, %v, %d queries more", res.Vectors, err, len(em.queries)-n)
		}
	})
}

// After a restart nothing is embedded again. With another model or dimension
// everything is, and no old vector is left.
func TestVectorsSurviveRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := memories(150)
		local := newLocal(ms)
		run := func(em *fakeEmbedder) {
			e := vectorEngine(t, em, local)
			settled(t, e, alice)
			wantStored(t, em.model, local, ms)
			e.Close()
		}
		first := newFake()
		run(first)
		if n := len(first.seen); n != len(ms) {
			t.Errorf("%d texts embedded, want %d", n, len(ms))
		}
		if n := len(local.records) - 1; n != 3 {
			t.Errorf("%d segments, want 3 of up to %d", n, vector.SegmentEntries)
		}
		again := newFake()
		run(again)
		if n := len(again.seen); n != 0 {
			t.Errorf("after a restart %d texts were embedded again", n)
		}
		other := newFake()
		other.model = "other"
		run(other)
		if n := len(other.seen); n != len(ms) {
			t.Errorf("with another model %d texts embedded, want %d", n, len(ms))
		}
		wide := newFake()
		wide.model, wide.dim = "other", 96
		e := vectorEngine(t, wide, local) // attaches the old ones; the first query tells
		settled(t, e, alice)
		if _, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "anything"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		settled(t, e, alice)
		wantStored(t, "other dimension", local, ms)
		if n := len(wide.seen); n != len(ms) {
			t.Errorf("with another dimension %d texts embedded, want %d", n, len(ms))
		}
		for ref, r := range local.records {
			if n, ok := vector.SegmentOf(ref.Key); ok {
				if s, err := vector.ReadSegment(n, r.Value); err != nil || s.Dim != 96 || s.Model != "other" {
					t.Errorf("%s holds %s of %d, %v", ref.Key, s.Model, s.Dim, err)
				}
			}
		}
	})
}

// A vector that is damaged, or of another text, is deleted and made again.
func TestDamagedVectorsAreEmbeddedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := memories(10)
		local := newLocal(ms)
		bad := storage.Record{Bucket: storage.BucketIndex, Scope: alice, Key: vector.Key(7), Value: []byte{1, 0xff, 0xff}}
		stale := vector.Segment{Number: 8, Model: "m"}
		stale.Add(vector.Mark{Memory: vector.Hash(ms[0].ID), Text: vector.Hash("another text")}, make([]int8, 64))
		stale.Add(vector.Mark{Memory: vector.Hash("of a memory that is gone"), Text: 1}, make([]int8, 64))
		if err := local.PutRecords(t.Context(), []storage.Record{bad, {Bucket: storage.BucketIndex, Scope: alice, Key: vector.Key(8), Value: stale.Value()}}); err != nil {
			t.Fatal(err)
		}
		em := newFake()
		e := vectorEngine(t, em, local)
		settled(t, e, alice)
		wantStored(t, "after the load", local, ms)
		if len(em.seen) != len(ms) {
			t.Errorf("%d texts embedded, want %d: the vector of another text was used", len(em.seen), len(ms))
		}
		if _, ok := local.records[bad.Ref()]; ok || e.Stats().Vectors.Stale != 1 {
			t.Errorf("the damaged record is not deleted or not counted: %+v", e.Stats().Vectors)
		}
	})
}

func TestNewMemoriesAreEmbedded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		em := newFake()
		ms := memories(10)
		local := newLocal(ms[:5])
		e := vectorEngine(t, em, local)
		settled(t, e, alice)
		for i := 5; i < 10; i++ {
			e.Add(alice, ms[i].Provenance.Turn, ms[i:i+1])
		}
		settled(t, e, alice)
		wantStored(t, "added", local, ms)
		e.Add(alice, ms[9].Provenance.Turn, ms[9:10]) // the same again
		settled(t, e, alice)
		if n := len(em.seen); n != 10 {
			t.Errorf("%d texts embedded, want 10", n)
		}
		// A turn that had two passages now has one, with another text.
		two := []storage.Memory{ms[3], ms[3]}
		two[1].ID, two[1].Provenance.Seq, two[1].Text = storage.TurnMemoryID(ms[3].Provenance.Turn, 1), 1, "the second passage"
		e.Add(alice, ms[3].Provenance.Turn, two)
		settled(t, e, alice)
		wantStored(t, "two passages", local, append(slices.Clone(ms), two[1]))
		ms[3].Text = "other words"
		e.Add(alice, ms[3].Provenance.Turn, ms[3:4])
		settled(t, e, alice)
		wantStored(t, "one passage", local, ms)
		if !slices.Contains(em.documents(), "other words") {
			t.Error("the new text was not embedded")
		}
		quarantined := ms[2]
		quarantined.Trust = 0
		e.Add(alice, "", []storage.Memory{quarantined})
		settled(t, e, alice)
		wantStored(t, "quarantined", local, slices.Delete(slices.Clone(ms), 2, 3))
	})
}

// A turn whose text changes while it is embedded or stored keeps no vector of
// the old text.
func TestTextsThatChangeWhileEmbedded(t *testing.T) {
	for _, where := range []string{"embedded", "stored"} {
		synctest.Test(t, func(t *testing.T) {
			em, ms := newFake(), memories(10)
			local := newLocal(slices.Clone(ms))
			changed := ms[4]
			changed.Text = "other words"
			var e *Engine
			started, first := make(chan struct{}), true
			change := func() {
				if <-started; first {
					first = false
					e.Add(alice, changed.Provenance.Turn, []storage.Memory{changed})
				}
			}
			if where == "embedded" {
				em.onDocs = change
			} else {
				local.onPut = func(rs []storage.Record) error {
					if _, ok := vector.SegmentOf(rs[0].Key); ok {
						change()
					}
					return nil
				}
			}
			e = vectorEngine(t, em, local)
			close(started)
			settled(t, e, alice)
			wantStored(t, where, local, ms)
			for ref, r := range local.records {
				n, ok := vector.SegmentOf(ref.Key)
				if !ok {
					continue
				}
				s, err := vector.ReadSegment(n, r.Value)
				if err != nil {
					t.Fatal(err)
				}
				for i := range s.Len() {
					if s.Mark(i).Text == vector.Hash(ms[4].Text) {
						t.Errorf("%s: the old text has a vector", where)
					}
				}
			}
			if !slices.Contains(em.documents(), "other words") {
				t.Errorf("%s: the new text has no vector", where)
			}
		})
	}
}

func TestRefusedMemoriesAreNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		em := newFake()
		ms := memories(10)
		em.refuse = ms[4].Text
		local := newLocal(ms)
		e := vectorEngine(t, em, local)
		settled(t, e, alice)
		time.Sleep(time.Hour)
		if len(em.seen) != 10 || e.Stats().Vectors.Refused != 1 {
			t.Errorf("asked for %d texts, want 10; %+v", len(em.seen), e.Stats().Vectors)
		}
		wantStored(t, "the others", local, slices.Delete(ms, 4, 5))
	})
}

func TestEmbeddingIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		em := newFake()
		em.fail(errors.New("down"))
		ms := memories(10)
		local := newLocal(ms)
		e := vectorEngine(t, em, local)
		time.Sleep(time.Hour)
		if n := e.Stats().Vectors.Failures; n < 10 || n > 25 {
			t.Errorf("%d attempts in an hour, want about 15: a pause of 1 s, doubling up to 5 min", n)
		}
		if got, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "thing3"}); err != nil || got.Vectors != VectorsNone || len(got.Memories) == 0 {
			t.Errorf("got %+v, %v", got, err)
		}
		em.fail(nil)
		time.Sleep(10 * time.Minute)
		settled(t, e, alice)
		wantStored(t, "after the outage", local, ms)
		local.beforePut(func([]storage.Record) error { return storage.ErrUnavailable })
		e.Add(alice, "", []storage.Memory{said(900, "the store is away")})
		time.Sleep(time.Minute)
		local.beforePut(nil)
		time.Sleep(10 * time.Minute)
		settled(t, e, alice)
		wantStored(t, "after the store's", local, append(ms, said(900, "")))
	})
}
