package proxy

import (
	"encoding/hex"
	"sync"
	"testing"
)

// TestRandomName: names are hex, and no two are the same, whoever asks at the
// same time.
func TestRandomName(t *testing.T) {
	const askers, each = 8, 500
	var seen sync.Map
	var wg sync.WaitGroup
	for range askers {
		wg.Go(func() {
			for range each {
				name := randomName()
				if b, err := hex.DecodeString(name); err != nil || len(b) != nameBytes {
					t.Errorf("name %q, error %v", name, err)
				}
				if _, twice := seen.LoadOrStore(name, true); twice {
					t.Errorf("%q came twice", name)
				}
			}
		})
	}
	wg.Wait()
}
