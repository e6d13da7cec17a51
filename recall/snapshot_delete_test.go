package recall

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// unsealing counts the records that are read.
type unsealing struct {
	*digesting
	read atomic.Int64
}

func (u *unsealing) Record(ctx context.Context, ref storage.RecordRef) (storage.Record, error) {
	u.read.Add(1)
	return u.digesting.Record(ctx, ref)
}

func (u *unsealing) Records(ctx context.Context, b storage.Bucket, scope storage.Scope, after string, limit int) (storage.RecordPage, error) {
	page, err := u.digesting.Records(ctx, b, scope, after, limit)
	u.read.Add(int64(len(page.Records)))
	return page, err
}

// Deleting a snapshot reads no record, so it works for damaged ones, and leaves
// other records of the bucket alone.
func TestDeleteSnapshotReadsNothing(t *testing.T) {
	ms := town(1200)
	src := &unsealing{digesting: newDigesting(t, ms)}
	e := loadedEngine(t, src)
	record := func(key string) storage.Record {
		return storage.Record{Bucket: storage.BucketIndex, Scope: alice, Key: key, Value: []byte("x")}
	}
	put := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			if err := src.Mem.PutRecords(t.Context(), []storage.Record{record(key)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	keys := func() (out []string) {
		t.Helper()
		for _, r := range src.parts(t) {
			out = append(out, r.Key)
		}
		return out
	}
	put("recall-0099", "recall-0499", "vectors-0001") // of a larger one, and what is no snapshot's
	src.read.Store(0)
	e.snapshots.saveAll(t.Context(), always)
	if got := src.read.Load(); got > 0 {
		t.Errorf("%d records were read to write a snapshot", got)
	}
	if got := keys(); e.Stats().Saved != 1 || len(got) < 3 || slices.Contains(got, "recall-0099") || slices.Contains(got, "recall-0499") || got[len(got)-1] != "vectors-0001" {
		t.Errorf("after a snapshot: %v", got)
	}
	put("recall-0099")
	src.read.Store(0)
	e.Erased(alice)
	if got := src.read.Load(); got > 0 {
		t.Errorf("%d records were read to delete a snapshot", got)
	}
	if d := cmp.Diff([]string{"vectors-0001"}, keys()); d != "" {
		t.Errorf("what is left (-want +got):\n%s", d)
	}
}
