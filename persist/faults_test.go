package persist

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, index := newFaulty(), &indexed{}
		store.setFault(func(method string, _ int) (error, bool) {
			if method == "Put" {
				return storage.ErrUnavailable, false
			}
			return nil, false
		})
		p := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
		for i := range 20 {
			mustEnqueue(t, p.Pipeline, turnOf(testScope, fmt.Sprintf("t%02d", i%10), fmt.Sprintf("q%02d", i), ""))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		p.stop()
		if got := store.spooledRecords(t); got != 20 {
			t.Fatalf("spooled: got %d, want 20", got)
		}

		store.clearFault()
		store.Fail(true) // down when the next run starts
		q := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
		mustEnqueue(t, q.Pipeline, turnOf(testScope, "t00", "newest", ""))
		time.Sleep(time.Second)
		store.Fail(false)
		mustFlush(t, q.Pipeline)
		// Flush waits for turns accepted before it; recovered ones are stored
		// first.
		want := []string{"q11", "q12", "q13", "q14", "q15", "q16", "q17", "q18", "q19", "newest"}
		if diff := cmp.Diff(want, texts(t, store, testScope)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		q.stop()
		if s := q.Stats(); s.Recovered != 20 || store.spooledRecords(t) != 0 {
			t.Errorf("recovered %d, left in the spool %d", s.Recovered, store.spooledRecords(t))
		}
	})
}

func TestPoisonIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, index := newFaulty(), &indexed{panic: "bad1"}
		store.setFault(func(method string, n int) (error, bool) {
			if method == "Put" {
				for _, w := range store.lastPut() {
					if w.Turn == "bad2" {
						return fmt.Errorf("no: %w", storage.ErrInvalid), false
					}
				}
			}
			return nil, false
		})
		var log bytes.Buffer
		p := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), slog.New(slog.NewTextHandler(&log, nil)), nil))
		for _, id := range []string{"good1", "bad1", "good2", "bad2", "good3"} {
			mustEnqueue(t, p.Pipeline, turnOf(testScope, id, "words of "+id, ""))
		}
		mustFlush(t, p.Pipeline)
		if got := fmt.Sprint(index.adds); !strings.Contains(got, "good1") || !strings.Contains(got, "good2") || !strings.Contains(got, "good3") {
			t.Errorf("indexed: %v", got)
		}
		s := p.Stats()
		if s.Quarantined != 2 || s.Indexed != 3 || s.QueueTurns != 0 {
			t.Errorf("stats: %+v", s)
		}
		p.stop()
		if strings.Contains(log.String(), "words of") {
			t.Errorf("content in the log:\n%s", log.String())
		}

		puts := store.count("Put")
		q := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
		mustFlush(t, q.Pipeline)
		time.Sleep(time.Minute)
		if got := store.count("Put"); got != puts {
			t.Errorf("the next run tried them again")
		}
		list, err := q.Quarantined(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range list {
			got = append(got, fmt.Sprint(e.Turn, " ", e.Tries, " ", e.Problem, " ", e.Scope == testScope))
		}
		if diff := cmp.Diff([]string{"bad1 3 panic true", "bad2 3 refused by the store true"}, got); diff != "" {
			t.Errorf("quarantined (-want +got):\n%s", diff)
		}
	})
}

func TestRefusedBySpoolIsDropped(t *testing.T) {
	for reason, refusal := range map[Drop]error{DropPoison: storage.ErrInvalid, DropUsers: fmt.Errorf("one more: %w", storage.ErrTooManyUsers)} {
		testRefusedBySpool(t, reason, refusal)
	}
}

func testRefusedBySpool(t *testing.T, reason Drop, refusal error) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		store.setFault(func(method string, n int) (error, bool) {
			if method == "PutRecords" {
				for _, r := range store.lastSpool() {
					if strings.HasSuffix(r.Key, "-bad") {
						return refusal, false
					}
				}
			}
			return nil, false
		})
		p := start(t, New(DefaultConfig(), store, store, nil, newRedactor(t), nil, nil))
		for _, id := range []string{"good", "bad", "fine"} {
			mustEnqueue(t, p.Pipeline, turnOf(testScope, id, id, ""))
			time.Sleep(time.Millisecond)
		}
		mustFlush(t, p.Pipeline)
		if diff := cmp.Diff([]string{"good", "fine"}, texts(t, store, testScope)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		if s := p.Stats(); s.Dropped[reason] != 1 || s.Persisted != 2 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// TestFaultTable has each write step fail before and after its effect, once and
// for a whole run. Every turn is stored exactly once.
func TestFaultTable(t *testing.T) {
	for _, method := range []string{"PutRecords", "Memory", "Probe", "Put", "DeleteRecords", "AllRecords"} {
		for _, after := range []bool{false, true} {
			for _, nth := range []int{1, 2, 3} {
				t.Run(fmt.Sprint(method, " ", nth, " persisted ", after), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { faultOnce(t, method, after, nth) })
				})
			}
			t.Run(fmt.Sprint(method, " until the restart, persisted ", after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { faultUntilRestart(t, method, after) })
			})
		}
	}
}

const faultTurns = 30

func enqueueFaultTurns(t *testing.T, p *Pipeline) {
	for i := range faultTurns {
		mustEnqueue(t, p, turnOf(testScope, fmt.Sprintf("t%02d", i), fmt.Sprintf("q%02d", i), fmt.Sprintf("a%02d", i)))
		if i%10 == 9 {
			time.Sleep(20 * time.Millisecond) // several commits
		}
	}
}

func checkExactlyOnce(t *testing.T, store *faulty, index *indexed) {
	t.Helper()
	got := texts(t, store, testScope)
	seen := make(map[string]int)
	for _, text := range got {
		seen[text]++
	}
	for i := range faultTurns {
		for _, text := range []string{fmt.Sprintf("q%02d", i), fmt.Sprintf("a%02d", i)} {
			if seen[text] != 1 {
				t.Errorf("%s is stored %d times", text, seen[text])
			}
		}
		if n := len(index.turns[fmt.Sprintf("t%02d", i)]); n != 2 {
			t.Errorf("turn %d has %d passages in the index", i, n)
		}
	}
	if len(got) != 2*faultTurns {
		t.Errorf("stored passages: got %d, want %d", len(got), 2*faultTurns)
	}
	if left := store.spooledRecords(t); left != 0 {
		t.Errorf("left in the spool: %d", left)
	}
}

func faultOnce(t *testing.T, method string, after bool, nth int) {
	store, index := newFaulty(), &indexed{}
	store.setFault(func(m string, n int) (error, bool) {
		if m == method && n == nth {
			return storage.ErrUnavailable, after
		}
		return nil, false
	})
	p := start(t, New(DefaultConfig(), store, store, index, newRedactor(t), nil, nil))
	enqueueFaultTurns(t, p.Pipeline)
	mustFlush(t, p.Pipeline)
	p.stop()
	checkExactlyOnce(t, store, index)
	if s := p.Stats(); s.Indexed != faultTurns || s.Persisted != faultTurns || s.Duplicates != 0 || s.Replaced != 0 {
		t.Errorf("stats: %+v", s)
	}
}

func faultUntilRestart(t *testing.T, method string, after bool) {
	store, index := newFaulty(), &indexed{}
	cfg := DefaultConfig()
	cfg.DrainTimeout = time.Second
	p := start(t, New(cfg, store, store, index, newRedactor(t), nil, nil))
	synctest.Wait()
	store.setFault(func(m string, n int) (error, bool) {
		if m == method && n > 1 {
			return storage.ErrUnavailable, after
		}
		return nil, false
	})
	enqueueFaultTurns(t, p.Pipeline)
	p.stop()
	store.clearFault()

	q := start(t, New(cfg, store, store, index, newRedactor(t), nil, nil))
	enqueueFaultTurns(t, q.Pipeline) // clients repeat what they are not sure of
	mustFlush(t, q.Pipeline)
	q.stop()
	checkExactlyOnce(t, store, index)
}
