package storage

import (
	"context"
	"io"
)

// Backuper is what a [Store] offers that can write a copy of itself while it serves.
type Backuper interface {
	// Backup writes all memories and records as they are at one moment, sealed as they are stored, without any key: who
	// restores it needs the keyring too. Records of volatile buckets may be left out. What was written is a backup only if
	// the error is nil.
	Backup(ctx context.Context, w io.Writer) error
}
