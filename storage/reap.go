package storage

import "context"

// Reaper is what a [Store] offers that removes what has expired. Until it does, expired memories cannot be read but take
// their space, and count in the scope's Digest.
type Reaper interface {
	// Reap removes the memories and records that have expired by now, and returns how many there were. From time to time
	// it also has the bytes of what was removed or deleted taken off the disk, which may take seconds; the store serves
	// meanwhile. Cut short, it has removed a part; repeating it is safe.
	Reap(ctx context.Context, now Time) (removed int, err error)
}

// Volatile says that records of this bucket can be made again, or done without: those put last may be lost when the
// machine crashes, though not when a process does, and not those put before the last durable write. Deleting them is
// durable like everything else.
func (b Bucket) Volatile() bool { return b == BucketLedger || b == BucketIndex }
