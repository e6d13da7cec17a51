package imports

import (
	"crypto/sha256"
	"fmt"
)

// memo is a set of ids or texts of which it holds digests, so that its size
// does not depend on theirs.
type memo struct {
	digests map[[16]byte]struct{}
	max     int
}

func newMemo(max int) *memo { return &memo{map[[16]byte]struct{}{}, max} }

// add reports whether s is new.
func (k *memo) add(s string) (bool, error) {
	sum := sha256.Sum256([]byte(s))
	digest := [16]byte(sum[:16])
	if _, there := k.digests[digest]; there {
		return false, nil
	}
	if len(k.digests) >= k.max {
		return false, fmt.Errorf("the export has more than %d different memories, which is the most that is read", k.max)
	}
	k.digests[digest] = struct{}{}
	return true, nil
}
