package storagetest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// reap guards that exactly the expired memories and records are removed, and
// that the digest follows.
func reap(t *testing.T, o Opened) {
	reaper, ok := o.Store.(storage.Reaper)
	if !ok {
		t.Skip("the store has no Reap")
	}
	const soon, later = storage.Time(32503680000000), storage.Time(32503690000000)
	scopes := []storage.Scope{scopeOf("a"), scopeOf("b")}
	left := map[storage.Scope][]storage.Memory{}
	for _, s := range scopes {
		var all []storage.Memory
		for i := range 1500 { // more than a store removes in one step
			m := simple(fmt.Sprintf("m%04d", i), storage.Time(i%7))
			m.ExpiresAt = []storage.Time{0, soon, later}[i%3]
			all = append(all, m)
			if i%3 != 1 {
				left[s] = append(left[s], m)
			}
		}
		for some := range slices.Chunk(all, 400) {
			put(t, o.Store, s, some...)
		}
		turn := turnOf(s, "turn", 3, "said")
		for i := range turn.Memories {
			turn.Memories[i].ExpiresAt = soon
		}
		putWrites(t, o.Store, turn)
		putRecords(t, o.Local,
			storage.Record{Bucket: storage.BucketAudit, Scope: s, Key: "large", Value: bytes.Repeat([]byte("v"), 1<<20), ExpiresAt: soon},
			storage.Record{Bucket: storage.BucketAudit, Scope: s, Key: "small", ExpiresAt: soon},
			storage.Record{Bucket: storage.BucketAudit, Scope: s, Key: "later", ExpiresAt: later},
			storage.Record{Bucket: storage.BucketSpool, Scope: s, Key: "never"})
	}
	run := func(o Opened, now storage.Time, want int) {
		t.Helper()
		n, err := o.Store.(storage.Reaper).Reap(t.Context(), now)
		if err != nil || n != want {
			t.Errorf("Reap at %d: got %d, %v, want %d", now, n, err, want)
		}
	}
	check := func(o Opened, audits ...string) {
		t.Helper()
		for _, s := range scopes {
			if got := scanAll(t, o.Store, s, storage.Query{}); len(got) != len(left[s]) {
				t.Errorf("got %d memories, want %d", len(got), len(left[s]))
			}
			wantDigest(t, "after reaping", o, s, digestOf(left[s]...))
			diff(t, "audits", keys(recordsOf(t, o.Local, storage.BucketAudit, s, 0)), audits)
			diff(t, "spool", keys(recordsOf(t, o.Local, storage.BucketSpool, s, 0)), []string{"never"})
		}
	}
	if newest, err := reaper.Newest(t.Context()); err != nil || newest != 102 {
		t.Errorf("Newest: got %d, %v, want 102", newest, err)
	}
	_, err := reaper.Reap(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	run(o, soon-1, 0)
	run(o, soon, 2*(500+3+2))
	run(o, soon, 0)
	check(o, "later")
	o = o.Reopen(t)
	check(o, "later")

	// A turn whose passages were removed is forgotten.
	for _, s := range scopes {
		put(t, o.Store, s, simple("turn.2", 1))
		putWrites(t, o.Store, turnOf(s, "turn", 1, "again"))
		left[s] = append(left[s], simple("turn.2", 1), turnOf(s, "turn", 1, "again").Memories[0])
	}
	check(o, "later")
	for _, s := range scopes {
		var kept []storage.Memory
		for _, m := range left[s] {
			if m.ExpiresAt == 0 {
				kept = append(kept, m)
			}
		}
		left[s] = kept
	}
	run(o, later+86_400_000, 2*(500+1)) // a day later, when space is reclaimed too
	check(o)
}
