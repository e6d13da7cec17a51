package badger

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dgraph-io/ristretto/v2/z"

	"github.com/remora-proxy/remora/storage"
)

// TestSmallBuffers guards that with small sizes Badger's buffers for tables do
// not grow, whatever the sizes of the records are. Eight are kept as long as
// anything is written.
func TestSmallBuffers(t *testing.T) {
	const limit = 2 << 20
	for _, of := range []int{600, 3 << 10, 9 << 10, 40 << 10, 300 << 10} {
		t.Run(fmt.Sprint(of), func(t *testing.T) {
			cfg := testConfig(t)
			cfg.MemoryBytes = smallMemory - 1
			before := z.NewAllocator(512, "before")
			defer before.Release()
			s := mustOpen(t, cfg)
			made := map[*z.Allocator]bool{}
			for i := range 24 { // of 1 MiB
				var records []storage.Record
				for j := range (1 << 20) / of {
					size := of/2 + rand.IntN(of) // bytes
					records = append(records, storage.Record{
						Bucket: storage.BucketAudit, Scope: scopeOf("u"), Key: fmt.Sprint(i, "-", j), Value: []byte(strings.Repeat("x", size)),
					})
				}
				for len(records) > 0 {
					n := min(len(records), storage.MaxRecords)
					if err := s.PutRecords(t.Context(), records[:n]); err != nil {
						t.Fatal(err)
					}
					records = records[n:]
				}
				after := z.NewAllocator(512, "after") // buffers made in between have the numbers in between
				for ref := before.Ref + 1; ref < after.Ref; ref++ {
					if a := z.AllocatorFrom(ref); a != nil {
						made[a] = true
					}
				}
				after.Release()
			}
			mustClose(t, s)
			if len(made) == 0 {
				t.Fatal("no buffer was found: the test proves nothing")
			}
			for a := range made {
				if n := a.Allocated(); n > limit {
					t.Errorf("a buffer of %d KiB, want at most %d", n>>10, limit>>10)
				}
			}
		})
	}
}
