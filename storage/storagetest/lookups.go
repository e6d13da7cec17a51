package storagetest

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// lookups guards that Probe and Record agree with Memory and Records.
func lookups(t *testing.T, o Opened) {
	prober, ok := o.Store.(storage.Prober)
	reader, both := o.Local.(storage.RecordReader)
	if !ok || !both {
		t.Skip("the store has no lookups")
	}
	part, ok := o.Local.(storage.PrefixReader)
	if !ok {
		t.Skip("the store has no lookups")
	}
	own, other := scopeOf("u"), scopeOf("v")
	put(t, o.Store, own, simple("there", 1), simple("gone", 2))
	put(t, o.Store, other, simple("theirs", 1))
	if _, err := o.Store.Delete(t.Context(), own, "gone"); err != nil {
		t.Fatal(err)
	}
	got, err := prober.Probe(t.Context(), []storage.MemoryRef{
		{Scope: own, ID: "there"}, {Scope: own, ID: "gone"}, {Scope: own, ID: "theirs"}, {Scope: other, ID: "theirs"}, {Scope: other, ID: "there"},
		{Scope: scopeOf("nobody"), ID: "there"}, {Scope: own, ID: "there"},
	})
	if err != nil {
		t.Errorf("Probe: %v", err)
	}
	diff(t, "Probe", got, []bool{true, false, false, true, false, false, true})
	none, err := prober.Probe(t.Context(), nil)
	if err != nil || len(none) != 0 {
		t.Errorf("Probe of nothing: got %v, %v", none, err)
	}
	_, err = prober.Probe(t.Context(), []storage.MemoryRef{{Scope: own, ID: "there"}, {Scope: own}})
	wantErr(t, "Probe without an id", err, storage.ErrInvalid)
	_, err = prober.Probe(t.Context(), slices.Repeat([]storage.MemoryRef{{Scope: own, ID: "x"}}, storage.MaxRecords+1))
	wantErr(t, "Probe of too many", err, storage.ErrInvalid)

	small := storage.Record{Bucket: storage.BucketSummary, Scope: own, Key: "small", Value: []byte("v"), ExpiresAt: 32503680000000}
	large := storage.Record{Bucket: storage.BucketSummary, Scope: own, Key: "large", Value: bytes.Repeat([]byte("large "), 200_000)}
	past := storage.Record{Bucket: storage.BucketSummary, Scope: own, Key: "past", ExpiresAt: storage.TimeOf(time.Now()) - 1000}
	putRecords(t, o.Local, small, large, past)
	for _, want := range []storage.Record{small, large} {
		r, err := reader.Record(t.Context(), want.Ref())
		if err != nil {
			t.Errorf("Record %q: %v", want.Key, err)
		}
		diff(t, "Record "+want.Key, r, want)
	}
	for name, ref := range map[string]storage.RecordRef{
		"an expired record": past.Ref(),
		"another bucket":    {Bucket: storage.BucketAudit, Scope: own, Key: "small"},
		"another scope":     {Bucket: storage.BucketSummary, Scope: other, Key: "small"},
		"an empty scope":    {Bucket: storage.BucketSummary, Scope: scopeOf("nobody"), Key: "small"},
		"an unknown key":    {Bucket: storage.BucketSummary, Scope: own, Key: "smal"},
	} {
		_, err := reader.Record(t.Context(), ref)
		wantErr(t, "Record of "+name, err, storage.ErrNotFound)
	}
	for prefix, want := range map[string][]storage.Record{"": {large, small}, "s": {small}, "small": {small}, "smaller": nil, "p": nil} {
		page, err := part.RecordsWithPrefix(t.Context(), storage.BucketSummary, own, prefix, "", 0)
		if err != nil {
			t.Errorf("RecordsWithPrefix %q: %v", prefix, err)
		}
		diff(t, "RecordsWithPrefix "+prefix, page.Records, want)
	}
	page, err := part.RecordsWithPrefix(t.Context(), storage.BucketSummary, own, "", "", 1)
	if err != nil || page.Next == "" {
		t.Fatalf("RecordsWithPrefix, one a page: %v, next %q", err, page.Next)
	}
	page, err = part.RecordsWithPrefix(t.Context(), storage.BucketSummary, own, "sm", page.Next, 1)
	if err != nil || page.Next != "" {
		t.Errorf("RecordsWithPrefix, the second page: %v, next %q", err, page.Next)
	}
	diff(t, "RecordsWithPrefix, the second page", page.Records, []storage.Record{small})
	for limit, want := range [][]string{{"large", "small"}, {"large"}, {"large", "small"}} {
		keys, err := part.RecordKeys(t.Context(), storage.BucketSummary, own, limit)
		if err != nil {
			t.Errorf("RecordKeys: %v", err)
		}
		diff(t, "RecordKeys", keys, want)
	}
	_, err = reader.Record(t.Context(), storage.RecordRef{Bucket: "no such", Scope: own, Key: "small"})
	wantErr(t, "Record of an unknown bucket", err, storage.ErrInvalid)
}

// Probe implements [storage.Prober].
func (m *Mem) Probe(ctx context.Context, refs []storage.MemoryRef) ([]bool, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if len(refs) > storage.MaxRecords {
		return nil, storage.ErrInvalid
	}
	found := make([]bool, len(refs))
	for i, r := range refs {
		if err := r.Validate(); err != nil {
			return nil, err
		}
		_, found[i] = m.memories[r.Scope][r.ID]
	}
	return found, nil
}

// Record implements [storage.RecordReader].
func (m *Mem) Record(ctx context.Context, ref storage.RecordRef) (storage.Record, error) {
	if err := m.lock(ctx); err != nil {
		return storage.Record{}, err
	}
	defer m.mu.Unlock()
	if err := ref.Validate(); err != nil {
		return storage.Record{}, err
	}
	r, ok := m.records[ref]
	if !ok || expired(r.ExpiresAt, storage.TimeOf(time.Now())) {
		return storage.Record{}, storage.ErrNotFound
	}
	r.Value = bytes.Clone(r.Value)
	return r, nil
}
