package recall

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
	"github.com/remora-proxy/remora/text"
)

// digesting is an in-memory store with digests. It counts scans.
type digesting struct {
	*storagetest.Mem
	scans  atomic.Int64
	onPut  func()
	digest func() error // called before each

	damaged string // the key of a record that is
}

func (d *digesting) Record(ctx context.Context, ref storage.RecordRef) (storage.Record, error) {
	if ref.Key == d.damaged {
		return storage.Record{}, storage.ErrDamaged
	}
	return d.Mem.Record(ctx, ref)
}

func (d *digesting) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error) {
	d.scans.Add(1)
	return d.Mem.Scan(ctx, scope, q)
}

func (d *digesting) Digest(ctx context.Context, scope storage.Scope) (sum storage.Digest, err error) {
	if d.digest != nil {
		if err := d.digest(); err != nil {
			return sum, err
		}
	}
	for q := (storage.Query{}); ; {
		page, err := d.Mem.Scan(ctx, scope, q)
		if err != nil {
			return sum, err
		}
		for i := range page.Memories {
			sum.Add(&page.Memories[i])
		}
		if q.After = page.Next; q.After == "" {
			return sum, nil
		}
	}
}

func (d *digesting) PutRecords(ctx context.Context, records []storage.Record) error {
	if d.onPut != nil {
		d.onPut()
	}
	return d.Mem.PutRecords(ctx, records)
}

// town returns n memories of turns with a passage of the user and one of the
// assistant.
func town(n int) []storage.Memory {
	r := rand.New(rand.NewPCG(3, 4))
	words := make([]string, 400)
	for i := range words {
		words[i] = fmt.Sprintf("%c%c%c%c", 'b'+r.IntN(20), 'a'+r.IntN(5), 'k'+r.IntN(10), 'a'+r.IntN(26))
	}
	var ms []storage.Memory
	for i := range n {
		turn := fmt.Sprintf("%032x", 1+i/2)
		m := storage.Memory{
			ID: storage.TurnMemoryID(turn, i%2), Scope: alice, Conversation: fmt.Sprintf("%032x", 1+i/20), Kind: storage.KindEpisode,
			Trust: 1 - 0.5*float64(i%2), Source: "proxy", EventTime: storage.Time(1_700_000_000_000 + 1000*i), ValidFrom: storage.Time(1_700_000_000_000 + 1000*i),
			Provenance: storage.Provenance{Turn: turn, Chain: fmt.Sprintf("%032x", 7+i/2), Role: storage.RoleUser, Seq: i % 2, Model: "m"},
		}
		if i%2 == 1 {
			m.Provenance.Role = storage.RoleAssistant
		}
		if i%7 == 0 {
			m.Provenance.Speaker = "Ada"
		}
		if i/20%3 == 1 {
			m.Tags = []string{storage.ProjectTag + "p1"}
		}
		m.Text = "I told you about"
		for range 4 + r.IntN(20) {
			m.Text += " " + words[r.IntN(len(words))]
		}
		m.Text += "."
		ms = append(ms, m)
	}
	return ms
}

func newDigesting(t testing.TB, ms []storage.Memory) *digesting {
	d := &digesting{Mem: storagetest.Memory()}
	turns := map[string][]storage.Memory{}
	for _, m := range ms {
		turn := m.Provenance.Turn
		if m.ID != storage.TurnMemoryID(turn, m.Provenance.Seq) {
			turn = ""
		}
		turns[turn] = append(turns[turn], m)
	}
	for turn, ms := range turns {
		d.put(t, turn, ms...)
	}
	return d
}

func (d *digesting) put(t testing.TB, turn string, ms ...storage.Memory) {
	t.Helper()
	for chunk := range slices.Chunk(ms, 1000) {
		if err := d.Put(t.Context(), []storage.Write{{Scope: alice, Turn: turn, Memories: chunk}}); err != nil {
			t.Fatal(err)
		}
	}
}

func (d *digesting) parts(t testing.TB) []storage.Record {
	t.Helper()
	page, err := d.Records(t.Context(), storage.BucketIndex, alice, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return page.Records
}

func always(s *slot) bool { return (blobWriter{s.ix}).snapshotable() }

// loadedEngine returns an engine that holds alice's index.
func loadedEngine(t testing.TB, src Source) *Engine {
	t.Helper()
	e := New(patient(), src, nil, nil)
	t.Cleanup(e.Close)
	recallIDs(t, e, Request{Newest: "hello there"})
	return e
}

// answers returns the full results of questions about the texts of ms.
func answers(t testing.TB, e *Engine, ms []storage.Memory) []Result {
	t.Helper()
	var all []Result
	for i := 0; i < len(ms); i += 211 {
		res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: ms[i].Text, Project: "p1", NoGate: true, Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		res.Took = 0
		for i := range res.Memories { // the store's clock
			res.Memories[i].Memory.CreatedAt, res.Memories[i].Memory.UpdatedAt = 0, 0
		}
		all = append(all, res)
	}
	return all
}

func TestSnapshotIsTheIndex(t *testing.T) {
	ms := town(3000)
	ms[100].DeletedAt, ms[101].Trust = 5, 0 // never returned, but part of the store's digest
	ms[201].ID, ms[200].Entities, ms[200].Tags = "a strange id", []string{"x", "y"}, []string{""}
	ms[203].Kind, ms[207].Kind, ms[205].Conversation = storage.KindFact, storage.KindResource, "not hex"
	ms[209].ExpiresAt, ms[209].Priority = storage.TimeOf(time.Now().Add(time.Hour)), 0.123
	src := newDigesting(t, ms)
	e := loadedEngine(t, src)
	want := answers(t, e, ms)
	e.snapshots.saveAll(t.Context(), always)
	if got := e.Stats(); got.Saved != 1 || got.Restored != 0 {
		t.Fatalf("got %+v, want one snapshot written", got)
	}
	scans := src.scans.Load()
	again := loadedEngine(t, src)
	if got := again.Stats(); got.Restored != 1 || got.Rejected != 0 || src.scans.Load() != scans {
		t.Fatalf("got %+v and %d scans, want a load from the snapshot alone", got, src.scans.Load()-scans)
	}
	if d := cmp.Diff(want, answers(t, again, ms)); d != "" {
		t.Error("restored:", d)
	}
	// What is held afterwards changes like any other.
	more := town(3010)[3000:]
	for i := range more {
		more[i].Provenance.Seq, more[i].Provenance.Turn = 0, fmt.Sprintf("%032x", 90_000+i)
		more[i].ID = storage.TurnMemoryID(more[i].Provenance.Turn, 0)
		src.put(t, more[i].Provenance.Turn, more[i])
		for _, e := range []*Engine{e, again} {
			e.Add(alice, more[i].Provenance.Turn, more[i:i+1])
			e.Forget(alice, ms[300+i].ID, "no such id")
		}
		if _, err := src.Delete(t.Context(), alice, ms[300+i].ID); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(answers(t, e, ms), answers(t, again, ms)); d != "" {
		t.Error("changed:", d)
	}
	// A snapshot of the changed index is one of what it holds, without what was
	// removed.
	again.snapshots.saveAll(t.Context(), always)
	third := loadedEngine(t, src)
	if got := third.Stats(); got.Restored != 1 {
		t.Fatalf("got %+v, want a load from the second snapshot", got)
	}
	before := answers(t, again, ms)
	for i, a := range answers(t, third, ms) { // turns have other numbers, which breaks ties otherwise
		if w := before[i]; len(a.Memories) != len(w.Memories) || math.Abs(a.Memories[0].Score-w.Memories[0].Score) > 1e-5 {
			t.Errorf("question %d: got %v, want %v", i, a.Memories[0], w.Memories[0])
		}
	}
}

func TestSnapshotOfOtherMemoriesIsNotUsed(t *testing.T) {
	ms := town(1200)
	src := newDigesting(t, ms[:1100])
	e := loadedEngine(t, src)
	e.snapshots.saveAll(t.Context(), always)
	src.put(t, "", ms[1100:]...)
	again := loadedEngine(t, src)
	if got := again.Stats(); got.Restored+got.Rejected != 0 {
		t.Errorf("got %+v, want a load from the records", got)
	}
	if d := cmp.Diff(answers(t, loadedEngine(t, newDigesting(t, ms)), ms), answers(t, again, ms)); d != "" {
		t.Error(d)
	}
}

// A forgotten memory does not return if the process dies before the next
// snapshot.
func TestForgottenStaysForgotten(t *testing.T) {
	ms := town(1200)
	src := newDigesting(t, ms)
	e := loadedEngine(t, src)
	e.snapshots.saveAll(t.Context(), always)
	if _, err := src.Delete(t.Context(), alice, ms[10].ID); err != nil {
		t.Fatal(err)
	}
	e.Forget(alice, ms[10].ID)
	again := loadedEngine(t, src)
	if got := recallIDs(t, again, Request{Newest: ms[10].Text, NoGate: true, TopK: 50}); slices.Contains(got, ms[10].ID) {
		t.Error("a forgotten memory was recalled")
	}
	if len(src.parts(t)) == 0 {
		t.Fatal("the snapshot was deleted too early for this test")
	}
	e.snapshots.deleteStale(t.Context())
	if got := src.parts(t); len(got) != 0 {
		t.Errorf("%d parts with a forgotten text are left", len(got))
	}
	// Also where the scope is not held, and after the store failed once.
	again.snapshots.saveAll(t.Context(), always)
	other := New(patient(), src, nil, nil)
	defer other.Close()
	gone := ms[11]
	gone.DeletedAt = 5
	other.Add(alice, "", []storage.Memory{gone})
	src.Fail(true)
	other.snapshots.deleteStale(t.Context())
	src.Fail(false)
	other.snapshots.deleteStale(t.Context())
	if got := src.parts(t); len(got) != 0 {
		t.Errorf("%d parts are left", len(got))
	}
}

func TestDamagedSnapshot(t *testing.T) {
	ms := town(2000)
	src := newDigesting(t, ms)
	e := loadedEngine(t, src)
	want := answers(t, e, ms)
	e.snapshots.saveAll(t.Context(), always)
	good := src.parts(t)
	if len(good) != 3 {
		t.Fatalf("got %d parts, want 3", len(good))
	}
	for name, breakIt := range map[string]func(r []storage.Record) []storage.Record{
		"first damaged":  func(r []storage.Record) []storage.Record { src.damaged = r[0].Key; return r },
		"second damaged": func(r []storage.Record) []storage.Record { src.damaged = r[1].Key; return r },
		"third damaged":  func(r []storage.Record) []storage.Record { src.damaged = r[2].Key; return r },
		"second cleared": func(r []storage.Record) []storage.Record { clear(r[1].Value[partHeader:]); return r },
		"third cleared":  func(r []storage.Record) []storage.Record { clear(r[2].Value[partHeader:]); return r },
		"third truncated": func(r []storage.Record) []storage.Record {
			r[2].Value = r[2].Value[:len(r[2].Value)/2]
			return r
		},
		"no magic":        func(r []storage.Record) []storage.Record { r[0].Value[0] = 'x'; return r },
		"future version":  func(r []storage.Record) []storage.Record { r[0].Value[4]++; return r },
		"another build":   func(r []storage.Record) []storage.Record { r[1].Value[8]++; return r },
		"first truncated": func(r []storage.Record) []storage.Record { r[0].Value = r[0].Value[:len(r[0].Value)/2]; return r },
		"second truncated": func(r []storage.Record) []storage.Record {
			r[1].Value = r[1].Value[:len(r[1].Value)/2]
			return r
		},
		"last lost":   func(r []storage.Record) []storage.Record { return r[:2] },
		"only first":  func(r []storage.Record) []storage.Record { return r[:1] },
		"second lost": func(r []storage.Record) []storage.Record { return slices.Delete(r, 1, 2) },
		"empty":       func(r []storage.Record) []storage.Record { r[0].Value = nil; return r },
	} {
		t.Run(name, func(t *testing.T) {
			var refs []storage.RecordRef
			var records []storage.Record
			for _, r := range good {
				refs = append(refs, r.Ref())
				r.Value = slices.Clone(r.Value)
				records = append(records, r)
			}
			if err := src.DeleteRecords(t.Context(), refs); err != nil {
				t.Fatal(err)
			}
			if err := src.Mem.PutRecords(t.Context(), breakIt(records)); err != nil {
				t.Fatal(err)
			}
			again := loadedEngine(t, src)
			src.damaged = ""
			if got := again.Stats(); got.Restored != 0 || got.Rejected != 1 || got.Loads != 1 {
				t.Errorf("got %+v, want one rejected snapshot and one load", got)
			}
			if d := cmp.Diff(want, answers(t, again, ms)); d != "" {
				t.Error(d)
			}
			again.snapshots.saveAll(t.Context(), always) // and all is well again
			if got := loadedEngine(t, src).Stats(); got.Restored != 1 {
				t.Errorf("got %+v after a new snapshot, want it used", got)
			}
		})
	}
}

// A load checks only samples of a blob, so an index that can't be searched is
// never written.
func TestDamagedIndexHasNoSnapshot(t *testing.T) {
	for name, breakIt := range map[string]func(ix *index){
		"a record's terms": func(ix *index) {
			packed := ix.head(501).packed
			packed[len(packed)-1] |= 0x80
		},
		"postings": func(ix *index) {
			p := &ix.posts[201]
			p.buf = append(slices.Clip(p.buf), 0x80)
		},
		"a count of postings": func(ix *index) { ix.posts[201].df++ },
		"a count of facts":    func(ix *index) { ix.posts[201].facts++ },
		"who spoke":           func(ix *index) { ix.turns[501].flags ^= turnSpoken },
	} {
		t.Run(name, func(t *testing.T) {
			src := newDigesting(t, town(1500))
			e := loadedEngine(t, src)
			ix := resting(t, e).ix
			breakIt(ix)
			e.snapshots.saveAll(t.Context(), always)
			if got := e.Stats(); got.Saved != 0 || len(src.parts(t)) != 0 {
				t.Errorf("got %+v and %d parts, want nothing written", got, len(src.parts(t)))
			}
		})
	}
}

// The tally equals the store's digest after every kind of change, or no more
// snapshots would be written.
func TestTallyFollowsTheStore(t *testing.T) {
	src := newDigesting(t, town(1200))
	e := loadedEngine(t, src)
	r := rand.New(rand.NewPCG(5, 6))
	for step := range 150 {
		turn := fmt.Sprintf("%032x", 1+r.IntN(350))
		switch r.IntN(3) {
		case 0: // a turn, new or again, with passages that may not be recalled
			var ms []storage.Memory
			for seq := range 1 + r.IntN(3) {
				m := said(step, fmt.Sprintf("step %d of passage %d", step, seq))
				m.ID, m.Provenance.Turn, m.Provenance.Seq = storage.TurnMemoryID(turn, seq), turn, seq
				if r.IntN(3) == 0 {
					m.Trust = 0
				}
				ms = append(ms, m)
			}
			src.put(t, turn, ms...)
			e.Add(alice, turn, ms)
		case 1: // one memory superseded, or fixed
			m := said(step, "the other of "+turn)
			m.ID, m.Kind, m.Provenance.Turn = "fact-"+turn[30:], storage.KindFact, ""
			if r.IntN(2) == 0 {
				m.ValidTo, m.SupersededBy = 9, "x"
			}
			src.put(t, "", m)
			e.Add(alice, "", []storage.Memory{m})
		case 2:
			ids := []string{storage.TurnMemoryID(turn, r.IntN(2)), "fact-" + turn[30:]}
			if _, err := src.Delete(t.Context(), alice, ids...); err != nil {
				t.Fatal(err)
			}
			e.Forget(alice, ids...)
		}
		want, _ := src.Digest(t.Context(), alice)
		if got := resting(t, e).saved.tally.digest; got != want {
			t.Fatalf("step %d: got %+v, want %+v", step, got, want)
		}
	}
	e.snapshots.saveAll(t.Context(), always)
	if got := loadedEngine(t, src).Stats(); got.Restored != 1 {
		t.Errorf("got %+v, want a load from the snapshot", got)
	}
}

func TestNoSnapshotOfOtherMemories(t *testing.T) {
	ms := town(1200)
	src := newDigesting(t, ms[:1100])
	e := loadedEngine(t, src)
	src.put(t, "", ms[1100:]...) // without an Add
	e.snapshots.saveAll(t.Context(), always)
	if got := src.parts(t); len(got) != 0 {
		t.Errorf("got %d parts, want none", len(got))
	}
}

// A digest that fails is no different digest: the snapshot is retried, and the
// failure is logged.
func TestSnapshotIsRetriedAfterFailedDigest(t *testing.T) {
	for name, failing := range map[string]int{"before it is written": 1, "after it was written": 2} {
		t.Run(name, func(t *testing.T) {
			src := newDigesting(t, town(1200))
			var out bytes.Buffer
			e := New(patient(), src, slog.New(slog.NewTextHandler(&out, nil)), nil)
			recallIDs(t, e, Request{Newest: "hello there"})
			asked := 0
			src.digest = func() error {
				if asked++; asked == failing {
					return storage.ErrUnavailable
				}
				return nil
			}
			e.snapshots.saveAll(t.Context(), always)
			if got := src.parts(t); len(got) != 0 {
				t.Errorf("got %d parts of a snapshot that may be of other memories, want none", len(got))
			}
			if !strings.Contains(out.String(), "recall index snapshot not written") {
				t.Errorf("got the log %q, want a line of the snapshot", out.String())
			}
			e.Close()
			if got := src.parts(t); len(got) == 0 {
				t.Error("the store is back, but no snapshot was written")
			}
		})
	}
}

// An erasure during the write of a snapshot leaves none of its parts.
func TestErasureDuringSnapshot(t *testing.T) {
	for name, drop := range map[string]bool{"dropped": true, "not dropped yet": false} {
		t.Run(name, func(t *testing.T) {
			src := newDigesting(t, town(1200))
			e := loadedEngine(t, src)
			src.onPut = func() {
				if _, err := src.Erase(t.Context(), alice); err != nil {
					t.Error(err)
				}
				if drop {
					e.Drop(alice)
				}
			}
			e.snapshots.saveAll(t.Context(), always)
			if got := src.parts(t); len(got) != 0 {
				t.Errorf("%d parts of an erased scope are left", len(got))
			}
		})
	}
}

func TestWhenSnapshotsAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newDigesting(t, town(1200))
		ctx, cancel := context.WithCancel(t.Context())
		e := New(patient(), src, nil, nil)
		done := make(chan error)
		go func() { done <- e.Run(ctx) }()
		recallIDs(t, e, Request{Newest: "hello there"})
		saved := func(what string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := e.Stats().Saved; got != want {
				t.Errorf("%s: got %d snapshots, want %d", what, got, want)
			}
		}
		time.Sleep(20 * time.Second)
		saved("soon after the load", 0)
		time.Sleep(15 * time.Second)
		saved("at rest after the load", 1)
		time.Sleep(time.Hour)
		saved("nothing new", 1)
		add := func(i int) {
			m := said(1000+i, "something new")
			m.ID = storage.TurnMemoryID(m.Provenance.Turn, 0)
			src.put(t, m.Provenance.Turn, m)
			e.Add(alice, m.Provenance.Turn, []storage.Memory{m})
		}
		add(0)
		time.Sleep(time.Minute)
		saved("a single turn", 1)
		time.Sleep(10 * time.Minute)
		saved("a single turn, long ago", 2)
		for i := range 20 {
			add(1 + i)
			time.Sleep(20 * time.Second)
			saved("while turns arrive", 2)
		}
		time.Sleep(20 * time.Second)
		saved("after many turns", 3)
		add(30)
		cancel()
		<-done
		saved("at the end", 4)
		if got := loadedEngine(t, src).Stats(); got.Restored != 1 {
			t.Errorf("got %+v, want a load from the snapshot", got)
		}
	})
}

func TestEvictedIndexHasSnapshot(t *testing.T) {
	src := newDigesting(t, town(1200))
	cfg := patient()
	cfg.MaxBytes, cfg.MaxScopeBytes = 2<<20, 2<<20
	e := New(cfg, src, nil, nil)
	defer e.Close()
	recallIDs(t, e, Request{Newest: "hello there"})
	for i := 0; isLoaded(e, alice); i++ {
		if i > 1000 {
			t.Fatal("never evicted")
		}
		bob := storage.Scope{Tenant: "t", App: "a", Project: "p", User: fmt.Sprint("bob", i)}
		recallIDs(t, e, Request{Scope: bob, Newest: "hello there"})
	}
	e.snapshots.saveEvicted(t.Context())
	if got := e.Stats(); got.Saved != 1 {
		t.Errorf("got %+v, want one snapshot", got)
	}
}

func TestSmallIndexHasNoSnapshot(t *testing.T) {
	for n, want := range map[int]int64{minSnapshotMemories - 1: 0, minSnapshotMemories: 1} {
		e := loadedEngine(t, newDigesting(t, town(n)))
		e.snapshots.saveAll(t.Context(), func(s *slot) bool { return (blobWriter{s.ix}).snapshotable() })
		if got := e.Stats().Saved; got != want {
			t.Errorf("%d memories: got %d snapshots, want %d", n, got, want)
		}
	}
}

func TestSnapshotExpiresWithItsFirstMemory(t *testing.T) {
	ms := town(1200)
	soon := storage.TimeOf(time.Now().Add(time.Hour))
	ms[5].ExpiresAt, ms[6].ExpiresAt = soon+1, soon
	src := newDigesting(t, ms)
	e := loadedEngine(t, src)
	e.snapshots.saveAll(t.Context(), always)
	if got := src.parts(t); len(got) == 0 || got[0].ExpiresAt != soon {
		t.Errorf("got parts that expire at %v, want %v", got, soon)
	}
}

func TestSourceWithoutDigestsHasNoSnapshots(t *testing.T) {
	src := storagetest.Memory()
	e := loadedEngine(t, struct {
		Source
		storage.Local
	}{src, src})
	if e.snapshots != nil {
		t.Error("got snapshots, want none")
	}
}

// An older snapshot must match the queries of this build: a change of text
// analysis requires a new blobVersion, and a new sum here.
func TestBlobVersionGoesWithAnalysis(t *testing.T) {
	const version, want = 9, 1382705316
	sum := crc32.NewIEEE()
	a, out := text.NewAnalyzer(cachedWords), new(text.Analysis)
	fixture, err := os.ReadFile("testdata/conversations.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(fixture)) {
		a.Analyze(line, text.English, out)
		fmt.Fprintln(sum, out.Terms, out.Traits, out.Language)
	}
	if got := sum.Sum32(); got != want || blobVersion != version {
		t.Errorf("analysis gives %d for blobVersion %d, want %d for %d", got, blobVersion, want, version)
	}
}

// smallBlob returns the three parts of a blob of a few memories.
func smallBlob(t testing.TB) [][]byte {
	ms := town(24)
	ms[3].Kind, ms[5].ID, ms[6].Tags, ms[8].Conversation = storage.KindFact, "a strange id", []string{"x"}, "other"
	e := loadedEngine(t, newDigesting(t, ms))
	s := resting(t, e)
	s.ix.learn()
	var parts [][]byte
	for _, p := range (blobWriter{(compactor{s.ix}).rebuilt(100, nil)}).encode(s.saved.tally, 1) {
		parts = append(parts, p[partHeader:])
	}
	return parts
}

// An index that passes all checks can be searched without a panic, whatever the
// blob contained.
func FuzzDecode(f *testing.F) {
	parts := smallBlob(f)
	f.Add(parts[0], parts[1], parts[2], -1, byte(0))
	for i := 0; i < len(parts[0])+len(parts[1])+len(parts[2]); i += 97 {
		f.Add(parts[0], parts[1], parts[2], i, byte(i))
	}
	f.Fuzz(func(t *testing.T, first, second, third []byte, at int, flip byte) {
		first, second, third = slices.Clone(first), slices.Clone(second), slices.Clone(third)
		for _, part := range [][]byte{first, second, third} {
			if at >= 0 && at < len(part) {
				part[at] ^= flip
			}
			at -= len(part)
		}
		ix, tl, chunks, err := decode(first, second)
		if err != nil {
			return
		}
		if chunks, err = ix.arena.take(third, chunks); err != nil || len(chunks) > 0 || ix.complete(1) != nil {
			return
		}
		e := New(patient(), &fakeSource{}, nil, nil)
		defer e.Close()
		ix.words = e.analyzer
		for _, newest := range []string{"I told you about", "Where is Ada?", "hello 5"} {
			q := e.searcher.readQuery(newest, nil, time.Now(), ix.usualLanguage())
			if _, err := e.searcher.rankAndSelect(t.Context(), ix, q, &Request{Scope: alice, TopK: 50, NoGate: true, Explain: true, Now: time.Now()}); err != nil {
				t.Error(err)
			}
		}
		for i := range ix.mems {
			m := ix.memory(int32(i), alice)
			ix.memoryOf(m.ID)
		}
		if len(ix.mems) > 0 {
			ix.removeMemory(0)
		}
		(blobWriter{(compactor{ix.capture()}).rebuilt(len(ix.turns), nil)}).encode(tl, 1)
	})
}
