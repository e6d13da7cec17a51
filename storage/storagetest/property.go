package storagetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// model is the expected content of a store, as plain maps.
type model struct {
	memories map[storage.Scope]map[string]storage.Memory
	turns    map[storage.Scope]map[string]int
	records  map[storage.RecordRef]string
}

func (m *model) put(w storage.Write) {
	in := m.memories[w.Scope]
	for _, n := range w.Memories {
		n.Scope, n.Version = w.Scope, 1
		if old, ok := in[n.ID]; ok {
			n.Version, n.CreatedAt = old.Version+1, old.CreatedAt
			if n.Text == old.Text && n.EventTime == old.EventTime { // all other fields are equal by construction
				n = old
			}
		}
		in[n.ID] = n
	}
	if w.Turn != "" {
		for seq := len(w.Memories); seq < m.turns[w.Scope][w.Turn]; seq++ {
			delete(in, storage.TurnMemoryID(w.Turn, seq))
		}
		m.turns[w.Scope][w.Turn] = len(w.Memories)
	}
}

func (m *model) erase(s storage.Scope) (memories, records int) {
	memories = len(m.memories[s])
	m.memories[s], m.turns[s] = map[string]storage.Memory{}, map[string]int{}
	maps.DeleteFunc(m.records, func(ref storage.RecordRef, _ string) bool {
		if ref.Scope == s {
			records++
		}
		return ref.Scope == s
	})
	return memories, records
}

// Operations is the environment variable with the number of random operations;
// the default of 300 takes seconds. `REMORA_STORE_OPERATIONS=1000000 go test
// ./storage/badger -run 'TestContract$/random' -timeout 4h` runs a million in
// one store, best with TMPDIR on a file system in memory.
const Operations = "REMORA_STORE_OPERATIONS"

// compareAllEvery is after how many operations, and after each restart, all
// scopes are compared; otherwise those that were written to.
const compareAllEvery = 50

func operations(t *testing.T) int {
	t.Helper()
	text := os.Getenv(Operations)
	if text == "" {
		return 300
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", Operations, err)
	}
	return n
}

// randomOperations compares a store with the model after each of many random
// steps, over scopes that share ids.
func randomOperations(t *testing.T, o Opened, steps int) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	scopes := []storage.Scope{scopeOf("a"), scopeOf("b"), {Tenant: "a", App: "app", Project: "project", User: "tenant"}}
	m := &model{map[storage.Scope]map[string]storage.Memory{}, map[storage.Scope]map[string]int{}, map[storage.RecordRef]string{}}
	for _, s := range scopes {
		m.erase(s)
	}
	began, restarts, erasures := time.Now(), 0, 0
	for step := range steps {
		s := scopes[r.IntN(len(scopes))]
		touched, all := []storage.Scope{s}, step%compareAllEvery == 0 || step == steps-1
		bucket := storage.Buckets()[r.IntN(2)]
		ref := storage.RecordRef{Bucket: bucket, Scope: s, Key: fmt.Sprint("k", r.IntN(4))}
		switch op := r.IntN(20); {
		case op < 5:
			w := storage.Write{Scope: s}
			for _, i := range r.Perm(6)[:r.IntN(4)] {
				n := simple(fmt.Sprint("m", i), storage.Time(r.IntN(3)))
				n.Text, n.CreatedAt = fmt.Sprint(r.IntN(3)), storage.Time(step+1)
				w.Memories = append(w.Memories, n)
			}
			putWrites(t, o.Store, w)
			m.put(w)
		case op < 10:
			var ws []storage.Write
			for range 1 + r.IntN(3) {
				w := turnOf(scopes[r.IntN(len(scopes))], fmt.Sprint("t", r.IntN(2)), r.IntN(5), fmt.Sprint(r.IntN(2)))
				ws = append(ws, w)
				m.put(w)
				if !slices.Contains(touched, w.Scope) {
					touched = append(touched, w.Scope)
				}
			}
			putWrites(t, o.Store, ws...)
		case op < 13:
			id := []string{fmt.Sprint("m", r.IntN(6)), storage.TurnMemoryID("t0", r.IntN(5))}[r.IntN(2)]
			_, had := m.memories[s][id]
			delete(m.memories[s], id)
			if n, err := o.Store.Delete(t.Context(), s, id); err != nil || (n == 1) != had {
				t.Errorf("step %d: Delete: got %d, %v, want %v", step, n, err, had)
			}
		case op < 16:
			value := make([]byte, []int{3, 3, 3, 3, 3, 3, 3, 300 << 10}[r.IntN(8)])
			value[0] = byte(r.IntN(256))
			putRecords(t, o.Local, storage.Record{Bucket: bucket, Scope: s, Key: ref.Key, Value: value})
			m.records[ref] = string(value)
		case op < 18:
			if err := o.Local.DeleteRecords(t.Context(), []storage.RecordRef{ref}); err != nil {
				t.Error(err)
			}
			delete(m.records, ref)
		case op < 19:
			erasures++
			memories, records := m.erase(s)
			receipt, err := o.Store.Erase(t.Context(), s)
			got := 0
			for _, n := range receipt.Records {
				got += n
			}
			if err != nil || receipt.Memories != memories || got != records {
				t.Errorf("step %d: Erase: got %+v, %v, want %d memories, %d records", step, receipt, err, memories, records)
			}
		case step%3 == 0:
			restarts++
			o, all = o.Reopen(t), true
		}
		buckets := []storage.Bucket{bucket}
		if all {
			touched, buckets = scopes, storage.Buckets()
		}
		for _, s := range touched {
			m.compare(t, o, s, buckets, 1+r.IntN(4))
		}
		if t.Failed() {
			t.Fatalf("stopped at step %d", step)
		}
		if (step+1)%10_000 == 0 {
			t.Logf("%d operations, %d erasures and %d restarts among them, in %s", step+1, erasures, restarts, time.Since(began).Round(time.Second))
		}
	}
}

// propertyIDs returns all ids that the steps use. Each scope is asked for all
// of them, also those of other scopes.
func propertyIDs() []string {
	var ids []string
	for i := range 6 {
		ids = append(ids, fmt.Sprint("m", i))
	}
	for turn := range 2 {
		for i := range 5 {
			ids = append(ids, storage.TurnMemoryID(fmt.Sprint("t", turn), i))
		}
	}
	return ids
}

func (m *model) compare(t *testing.T, o Opened, s storage.Scope, buckets []storage.Bucket, limit int) {
	t.Helper()
	want := slices.SortedFunc(maps.Values(m.memories[s]), func(a, b storage.Memory) int {
		return cmp.Or(cmp.Compare(a.EventTime, b.EventTime), cmp.Compare(a.ID, b.ID))
	})
	same(t, "memories", scanAll(t, o.Store, s, storage.Query{Limit: limit}), want)
	for _, id := range propertyIDs() {
		n, had := m.memories[s][id]
		switch got, err := o.Store.Memory(t.Context(), s, id); {
		case had && err == nil:
			same(t, "memory", got, n)
		case had || !errors.Is(err, storage.ErrNotFound):
			t.Errorf("memory %s: got %+v, %v, want it there: %v", id, got, err, had)
		}
	}
	if _, ok := o.Store.(storage.Digester); ok {
		wantDigest(t, "random operations", o, s, digestOf(want...))
	}
	for _, b := range buckets {
		wantRecords := map[storage.RecordRef]string{}
		for ref, value := range m.records {
			if ref.Scope == s && ref.Bucket == b {
				wantRecords[ref] = value
			}
		}
		got := recordsOf(t, o.Local, b, s, limit)
		differ := len(got) != len(wantRecords)
		for _, r := range got {
			value, had := wantRecords[r.Ref()]
			differ = differ || !had || value != string(r.Value)
		}
		if differ {
			t.Errorf("records of %s differ: got %d, want %d", b, len(got), len(wantRecords))
		}
	}
}

// same is diff, ten times faster if nothing differs.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		diff(t, what, got, want)
	}
}
