package receipt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// slowLocal is a store in memory whose writes can wait or fail.
type slowLocal struct {
	*storagetest.Mem

	mu     sync.Mutex
	before func(ctx context.Context) error // called before each write of records
	writes int
}

func (l *slowLocal) PutRecords(ctx context.Context, records []storage.Record) error {
	l.mu.Lock()
	before := l.before
	l.writes++
	l.mu.Unlock()
	if before != nil {
		if err := before(ctx); err != nil {
			return err
		}
	}
	return l.Mem.PutRecords(ctx, records)
}

func (l *slowLocal) beforeWrite(before func(ctx context.Context) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = before
}

// plainLocal has nothing but what storage.Local asks for.
type plainLocal struct{ storage.Local }

// withRecorder runs a test in a bubble with a Recorder and its store. stop ends
// Run and waits for it.
func withRecorder(t *testing.T, test func(t *testing.T, r *Recorder, local *slowLocal, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		local := &slowLocal{Mem: storagetest.Memory()}
		r := NewRecorder(local, 24*time.Hour, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		stop := sync.OnceFunc(func() { cancel(); <-done })
		defer stop()
		test(t, r, local, stop)
	})
}

// told returns a receipt of now.
func told(scope storage.Scope, query string, in ...Insertion) *Receipt {
	return &Receipt{At: storage.TimeOf(time.Now()), Scope: scope, Query: query, Status: "injected", Inserted: in}
}

// written waits until what was recorded is written.
func written() {
	time.Sleep(2 * flushPause)
	synctest.Wait()
}

func list(t *testing.T, local storage.Local, scope storage.Scope) []Receipt {
	t.Helper()
	all, next, err := List(t.Context(), local, scope, "", 2*MaxPerUser, nil)
	if err != nil || next != "" {
		t.Fatalf("List: next %q, %v", next, err)
	}
	return all
}

func queries(rs []Receipt) []string {
	out := []string{}
	for i := range rs {
		out = append(out, rs[i].Query)
	}
	return out
}

func wantQueries(t *testing.T, what string, got []Receipt, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), queries(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestRecord(t *testing.T) {
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, _ func()) {
		first := told(alice, "first", inserted(false, "m1"))
		r.Record(first)
		time.Sleep(time.Millisecond)
		r.Record(told(alice, "second"))
		r.Record(told(alice, "third")) // in the same millisecond
		r.Record(told(userScope("bob"), "bob's"))
		if list := list(t, local, alice); len(list) > 0 {
			t.Errorf("written at once: %d", len(list))
		}
		written()
		got := list(t, local, alice)
		wantQueries(t, "newest first", got, "third", "second", "first")
		wantQueries(t, "another user's", list(t, local, userScope("bob")), "bob's")
		local.mu.Lock()
		if local.writes != 1 {
			t.Errorf("%d writes, want one for all", local.writes)
		}
		local.mu.Unlock()
		one, err := Get(t.Context(), local, alice, got[2].ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*first, one); diff != "" {
			t.Errorf("Get (-want +got):\n%s", diff)
		}
		for _, id := range []string{"x", usesKey("m1"), usesPrefix, ""} {
			if _, err := Get(t.Context(), local, alice, id); !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrInvalid) {
				t.Errorf("Get %q: %v, want ErrNotFound", id, err)
			}
		}
		if _, err := Get(t.Context(), local, userScope("bob"), got[0].ID); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("another user's id: %v, want ErrNotFound", err)
		}
		time.Sleep(24 * time.Hour)
		if left := list(t, local, alice); len(left) > 0 {
			t.Errorf("kept for longer than asked for: %d", len(left))
		}
	})
}

// Ids sort by time and can't be guessed from one another.
func TestIDs(t *testing.T) {
	r := NewRecorder(storagetest.Memory(), time.Hour, slog.New(slog.DiscardHandler))
	var ids []string
	ends := map[string]bool{}
	for i := range 300 {
		x := &Receipt{At: storage.Time(1_700_000_000_000 + i/3)}
		r.Record(x)
		ids = append(ids, x.ID)
		ends[x.ID[len(x.ID)-12:]] = true
		if err := (storage.RecordRef{Bucket: storage.BucketExchange, Scope: alice, Key: x.ID}).Validate(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.IsSorted(ids) || len(ends) != len(ids) {
		t.Errorf("%d different ends of %d ids, sorted: %t", len(ends), len(ids), slices.IsSorted(ids))
	}
}

// The newest receipts of a user are kept, and all of the others'.
func TestMaxPerUser(t *testing.T) {
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, _ func()) {
		for i := range MaxPerUser + 10 { // of a run before
			old := &Receipt{ID: fmt.Sprintf("x%012x", i), At: storage.Time(i + 1), Scope: alice, Query: fmt.Sprint("old ", i)}
			rec, err := old.record(0)
			if err != nil {
				t.Fatal(err)
			}
			if err := local.PutRecords(t.Context(), []storage.Record{rec}); err != nil {
				t.Fatal(err)
			}
		}
		r.Record(told(userScope("bob"), "bob's"))
		r.Record(told(alice, "new 0", inserted(false, "m1")))
		written()
		got := list(t, local, alice)
		if len(got) != MaxPerUser || got[0].Query != "new 0" || got[1].Query != fmt.Sprint("old ", MaxPerUser+9) || got[MaxPerUser-1].Query != "old 11" {
			t.Fatalf("got %d, from %q to %q", len(got), got[0].Query, got[len(got)-1].Query)
		}
		for i := range 3 * trimEvery {
			r.Record(told(alice, fmt.Sprint("new ", i+1)))
			time.Sleep(10 * time.Millisecond)
			if i%10 == 0 {
				written()
			}
			keys, err := local.RecordKeys(t.Context(), storage.BucketExchange, alice, 0)
			if n := len(keys) - 1; err != nil || n < MaxPerUser || n > MaxPerUser+trimEvery { // one is of the uses
				t.Fatalf("%d are kept, %v", n, err)
			}
		}
		written()
		got = list(t, local, alice)
		for i := range 3 * trimEvery {
			if want := fmt.Sprint("new ", 3*trimEvery-i); got[i].Query != want {
				t.Fatalf("the %d. newest is %q, want %q", i, got[i].Query, want)
			}
		}
		wantQueries(t, "another's", list(t, local, userScope("bob")), "bob's")
		if uses, err := Uses(t.Context(), local, alice); err != nil || uses["m1"].Count != 1 {
			t.Errorf("uses were deleted: %v, %v", uses, err)
		}
		if n := r.Dropped(); n != 0 {
			t.Errorf("%d dropped, want 0", n)
		}
	})
}

// Beyond MaxWaiting receipts are dropped and counted; Record does not wait.
func TestOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := &slowLocal{Mem: storagetest.Memory()}
		r := NewRecorder(local, time.Hour, slog.New(slog.DiscardHandler))
		for i := range MaxWaiting + 7 { // nothing runs, so Record would wait forever
			r.Record(told(userScope(fmt.Sprint("user", i%4)), fmt.Sprint(i)))
		}
		if got := r.Dropped(); got != 7 {
			t.Errorf("%d dropped, want 7", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.Run(ctx) // writes what waits, and returns
		total := 0
		for i := range 4 {
			total += len(list(t, local, userScope(fmt.Sprint("user", i))))
		}
		if total != MaxWaiting || r.Dropped() != 7 {
			t.Errorf("%d are written, %d dropped, want %d and 7", total, r.Dropped(), MaxWaiting)
		}
	})
}

// While the store hangs nothing waits for it, and afterwards all goes on.
func TestHungStore(t *testing.T) {
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, _ func()) {
		local.beforeWrite(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		began := time.Now()
		r.Record(told(alice, "lost"))
		written()
		for i := range 10 {
			r.Record(told(alice, fmt.Sprint("waits ", i)))
		}
		if took := time.Since(began); took > 2*flushPause {
			t.Errorf("took %v", took)
		}
		local.beforeWrite(nil)
		time.Sleep(writeTimeout)
		written()
		if got := list(t, local, alice); len(got) != 10 || r.Dropped() != 1 {
			t.Errorf("%d written, %d dropped, want 10 and 1", len(got), r.Dropped())
		}
	})
}

// What the store does not take is dropped and counted, and only what is no
// outage is logged, without content.
func TestRefusingStore(t *testing.T) {
	for _, tt := range []struct {
		err  error
		logs bool
	}{
		{fmt.Errorf("away: %w", storage.ErrUnavailable), false},
		{errors.New("disk"), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			local := &slowLocal{Mem: storagetest.Memory()}
			local.beforeWrite(func(context.Context) error { return tt.err })
			r := NewRecorder(local, time.Hour, slog.New(slog.NewTextHandler(&log, nil)))
			for range 3 {
				r.Record(told(alice, "canary", inserted(false, "canary")))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			r.Run(ctx)
			if got := r.Dropped(); got != 3 {
				t.Errorf("%v: %d dropped, want 3", tt.err, got)
			}
			if logged := log.Len() > 0; logged != tt.logs || strings.Contains(log.String(), "canary") {
				t.Errorf("%v: log %q", tt.err, log.String())
			}
		})
	}
}

// Run writes what waits when it is told to end.
func TestRunEnds(t *testing.T) {
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, stop func()) {
		for i := range storage.MaxRecords {
			r.Record(told(alice, fmt.Sprint(i)))
		}
		stop()
		if got := len(list(t, local, alice)); got != storage.MaxRecords {
			t.Errorf("%d written, want %d", got, storage.MaxRecords)
		}
	})
}

func TestUses(t *testing.T) {
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, stop func()) {
		uses := func() map[string]Use {
			t.Helper()
			u, err := Uses(t.Context(), local, alice)
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
		if got := uses(); len(got) > 0 {
			t.Errorf("before any: %v", got)
		}
		early := storage.TimeOf(time.Now())
		r.Record(told(alice, "1", inserted(false, "m1", "m2")))
		r.Record(told(alice, "2", inserted(true, "m1"), inserted(false, "m2")))
		r.Record(told(userScope("bob"), "3", inserted(false, "m1")))
		r.Record(told(alice, "4"))
		written()
		if diff := cmp.Diff(map[string]Use{"m1": {1, early}, "m2": {2, early}}, uses()); diff != "" {
			t.Errorf("first batch (-want +got):\n%s", diff)
		}
		late := storage.TimeOf(time.Now())
		r.Record(told(alice, "5", inserted(false, "m1")))
		slow := told(alice, "6", inserted(false, "m1")) // began before
		slow.At = early
		r.Record(slow)
		written()
		if diff := cmp.Diff(map[string]Use{"m1": {3, late}, "m2": {2, early}}, uses()); diff != "" {
			t.Errorf("second batch (-want +got):\n%s", diff)
		}
		stop()
		damaged := storage.Record{Bucket: storage.BucketExchange, Scope: alice, Key: usesKey("m1"), Value: []byte("null")}
		if err := local.PutRecords(t.Context(), []storage.Record{damaged}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]Use{"m2": {2, early}}, uses()); diff != "" {
			t.Errorf("next to a damaged record (-want +got):\n%s", diff)
		}
		if got, err := Uses(t.Context(), plainLocal{local}, alice); err != nil || len(got) > 0 {
			t.Errorf("of a store that can't tell: %v, %v", got, err)
		}
	})
}

// Uses are bounded; those of long ago are forgotten first.
func TestUsesAreBounded(t *testing.T) {
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, _ func()) {
		many := told(alice, "many", Insertion{Text: "x"})
		for i := range 2 * maxUses {
			in := &many.Inserted[0]
			in.Spans = append(in.Spans, blockOf(fmt.Sprint("old", i)).Spans...)
		}
		r.Record(many)
		written()
		r.Record(told(alice, "one more", inserted(false, "new")))
		written()
		if got, err := UseOf(t.Context(), local, alice, "new"); err != nil || got.Count > 0 {
			t.Errorf("a record of many is written again at once: %+v, %v", got, err)
		}
		time.Sleep(maxUsesPause)
		got, err := Uses(t.Context(), local, alice)
		if err != nil || len(got) != maxUses || got["new"].Count != 1 {
			t.Errorf("%d counted, the new one %+v, %v; want %d with it", len(got), got["new"], err, maxUses)
		}
	})
}

func TestList(t *testing.T) {
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, _ func()) {
		for i := range 7 {
			x := told(alice, fmt.Sprint(i), inserted(false, "m1")) // so that there are uses, too
			if i%2 == 0 {
				x.Status = "empty"
			}
			r.Record(x)
			time.Sleep(time.Millisecond)
		}
		r.Record(told(userScope("bob"), "bob's"))
		written()
		pages := func(local storage.Local, limit int, match func(*Receipt) bool) (out [][]string) {
			t.Helper()
			for before := ""; ; {
				page, next, err := List(t.Context(), local, alice, before, limit, match)
				if err != nil || len(page) > limit {
					t.Fatalf("%d in a page of %d, %v", len(page), limit, err)
				}
				if out = append(out, queries(page)); next == "" {
					return out
				}
				before = next
			}
		}
		empty := func(r *Receipt) bool { return r.Status == "empty" }
		for _, tt := range []struct {
			limit int
			match func(*Receipt) bool
			want  [][]string
		}{
			{3, nil, [][]string{{"6", "5", "4"}, {"3", "2", "1"}, {"0"}}},
			{7, nil, [][]string{{"6", "5", "4", "3", "2", "1", "0"}}},
			{100, nil, [][]string{{"6", "5", "4", "3", "2", "1", "0"}}},
			{2, empty, [][]string{{"6", "4"}, {"2", "0"}}},
			{1, func(r *Receipt) bool { return r.Query == "3" }, [][]string{{"3"}, {}}},
			{5, func(*Receipt) bool { return false }, [][]string{{}}},
		} {
			if diff := cmp.Diff(tt.want, pages(local, tt.limit, tt.match)); diff != "" {
				t.Errorf("pages of %d (-want +got):\n%s", tt.limit, diff)
			}
		}
		if page, next, err := List(t.Context(), local, alice, "", 0, nil); len(page) > 0 || next != "" || err != nil {
			t.Errorf("a page of none: %d, %q, %v", len(page), next, err)
		}
		all := list(t, local, alice)
		if err := local.DeleteRecords(t.Context(), []storage.RecordRef{{Bucket: storage.BucketExchange, Scope: alice, Key: all[1].ID}}); err != nil {
			t.Fatal(err)
		}
		page, _, err := List(t.Context(), local, alice, all[1].ID, 2, nil) // continues behind one that is gone
		if err != nil {
			t.Fatal(err)
		}
		wantQueries(t, "behind one that is gone", page, "4", "3")
		broken := storage.Record{Bucket: storage.BucketExchange, Scope: alice, Key: all[2].ID, Value: []byte(`{"version":9}`)}
		if err := local.PutRecords(t.Context(), []storage.Record{broken}); err != nil {
			t.Fatal(err)
		}
		wantQueries(t, "with one that can't be read", list(t, local, alice), "6", "3", "2", "1", "0")
	})
}

// Questions are redacted before anybody sees them, and then cut, so that a
// secret which the cut goes through is seen whole.
func TestQueriesAreRedacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "s3cret-word"
		local := storagetest.Memory()
		r := NewRecorder(local, time.Hour, slog.New(slog.DiscardHandler))
		r.Redact = func(text string) string { return strings.ReplaceAll(text, secret, "[X]") }
		watched, stop, err := r.Watch()
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		long := strings.Repeat("ä", MaxQuery/2-3) + secret + strings.Repeat("b", QueryOverhang-len(secret))
		for _, query := range []string{"my " + secret + ", please", long, strings.Repeat("ä", MaxQuery), ""} {
			r.Record(told(alice, query))
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.Run(ctx)
		got := list(t, local, alice)
		wantQueries(t, "kept", got, "", strings.Repeat("ä", MaxQuery/2), strings.Repeat("ä", MaxQuery/2-3)+"[X]bbb", "my [X], please")
		for len(watched) > 0 {
			if x := <-watched; strings.Contains(x.Query, "s3cret") || len(x.Query) > MaxQuery {
				t.Errorf("a watcher has got %q", x.Query)
			}
		}
	})
}

func TestWatch(t *testing.T) {
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, _ func()) {
		quick, stopQuick, err := r.Watch()
		if err != nil {
			t.Fatal(err)
		}
		idle, stopIdle, err := r.Watch() // reads nothing
		if err != nil {
			t.Fatal(err)
		}
		defer stopIdle()
		x := told(alice, "0", inserted(false, "m1"))
		r.Record(x)
		written()
		select {
		case got := <-quick:
			stored, err := Get(t.Context(), local, alice, x.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(stored, got); diff != "" {
				t.Errorf("watched (-stored +watched):\n%s", diff)
			}
		default:
			t.Error("the watcher has got nothing")
		}
		for i := range watcherBacklog + 20 {
			r.Record(told(alice, fmt.Sprint(i+1)))
		}
		written()
		if got := len(quick); got != watcherBacklog {
			t.Errorf("a watcher behind has %d, want %d", got, watcherBacklog)
		}
		if got, all := len(idle), list(t, local, alice); got != watcherBacklog || len(all) != watcherBacklog+21 {
			t.Errorf("an idle one has %d, and %d are written, want %d and %d", got, len(all), watcherBacklog, watcherBacklog+21)
		}
		for len(quick) > 0 {
			<-quick
		}
		stopQuick()
		stopQuick() // twice does no harm
		r.Record(told(alice, "after"))
		written()
		if got := len(quick); got > 0 {
			t.Errorf("after its end a watcher has got %d", got)
		}
		var stops []func()
		for range MaxWatchers - 1 {
			_, stop, err := r.Watch()
			if err != nil {
				t.Fatal(err)
			}
			stops = append(stops, stop)
		}
		if _, _, err := r.Watch(); err == nil {
			t.Error("one watcher too many is admitted")
		}
		stops[0]()
		if _, _, err := r.Watch(); err != nil {
			t.Errorf("after one has left: %v", err)
		}
	})
}

// What waits to be written when something is erased is not written afterwards:
// it could show it.
func TestErasedWhileWaiting(t *testing.T) {
	for name, erase := range map[string]func(r *Recorder, scope storage.Scope){
		"memories": func(r *Recorder, scope storage.Scope) { r.Erased(scope, "m1") },
		"a user":   func(r *Recorder, scope storage.Scope) { r.Drop(scope) },
	} {
		t.Run(name, func(t *testing.T) {
			withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, _ func()) {
				watched, _, err := r.Watch()
				if err != nil {
					t.Fatal(err)
				}
				running := told(alice, "under way", inserted(false, "m1"))
				r.Record(told(alice, "waits", inserted(false, "m1")))
				r.Record(told(userScope("bob"), "bob's"))
				erase(r, alice)
				time.Sleep(time.Millisecond)
				r.Record(running) // its exchange ends now
				r.Record(told(alice, "afterwards"))
				written()
				wantQueries(t, "written", list(t, local, alice), "afterwards")
				wantQueries(t, "another user's", list(t, local, userScope("bob")), "bob's")
				if n := r.Dropped(); n != 2 {
					t.Errorf("%d dropped, want 2", n)
				}
				if n := len(watched); n != 2 {
					t.Errorf("%d watched, want 2", n)
				}
				if uses, err := Uses(t.Context(), local, alice); err != nil || len(uses) > 0 {
					t.Errorf("uses %v, %v", uses, err)
				}
			})
		})
	}
}

// What is known of erasures is bounded: beyond it, more is dropped than need
// be, and never less.
func TestErasuresAreBounded(t *testing.T) {
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, _ func()) {
		before, others := told(userScope("user0"), "before"), told(alice, "of another")
		for i := range 3*maxErased + 1 {
			r.Erased(userScope(fmt.Sprint("user", i)))
			if len(r.erased) > maxErased {
				t.Fatalf("%d are known", len(r.erased))
			}
		}
		time.Sleep(time.Millisecond)
		for _, x := range []*Receipt{before, others, told(alice, "after"), told(userScope("user0"), "after")} {
			r.Record(x)
		}
		written()
		wantQueries(t, "whose memory was erased", list(t, local, userScope("user0")), "after")
		wantQueries(t, "another", list(t, local, alice), "after")
	})
}

// While writes are paused nothing is written, and afterwards all is.
func TestPauseWrites(t *testing.T) {
	withRecorder(t, func(t *testing.T, r *Recorder, local *slowLocal, _ func()) {
		resume, err := r.PauseWrites(t.Context(), alice)
		if err != nil {
			t.Fatal(err)
		}
		r.Record(told(alice, "waits"))
		time.Sleep(time.Minute)
		synctest.Wait()
		wantQueries(t, "while paused", list(t, local, alice))
		resume()
		written()
		wantQueries(t, "resumed", list(t, local, alice), "waits")

		release := make(chan struct{})
		local.beforeWrite(func(context.Context) error { <-release; return nil })
		r.Record(told(alice, "is being written"))
		written()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.PauseWrites(ctx, alice); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("paused during a write: %v", err)
		}
		close(release)
		resume, err = r.PauseWrites(t.Context(), alice)
		if err != nil {
			t.Fatal(err)
		}
		wantQueries(t, "after the write", list(t, local, alice), "is being written", "waits")
		resume()
	})
}

// Receipts are written and read while many record, watch and erase.
func TestRecorderRace(t *testing.T) {
	local := storagetest.Memory()
	r := NewRecorder(local, time.Hour, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running, wg sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	for w := range 4 {
		wg.Go(func() {
			scope := userScope(fmt.Sprint("user", w))
			for i := range 50 {
				r.Record(told(scope, "q", inserted(false, fmt.Sprint("m", i))))
				if i%10 == 0 {
					r.Erased(userScope("other"))
					_, stop, err := r.Watch()
					if err != nil {
						t.Error(err)
						return
					}
					defer stop()
					if _, _, err := List(ctx, local, scope, "", 10, nil); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	cancel()
	running.Wait()
	for w := range 4 {
		if got := len(list(t, local, userScope(fmt.Sprint("user", w)))); got != 50 {
			t.Errorf("user %d has %d, want 50", w, got)
		}
	}
}
