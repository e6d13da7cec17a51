package badger

import (
	"fmt"
	"log/slog"
	"strings"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

const (
	memTableSize = 8 << 20
	// maxTxnBytes keeps a transaction below Badger's own limit of 15 % of a memtable.
	maxTxnBytes   = memTableSize * 14 / 100
	maxTxnEntries = 12000
	// entryOverhead is what Badger counts for an entry beside key and value, rounded up.
	entryOverhead = 16
)

// badgerOptions favour a small footprint: one user's machine and a sidecar's share of a pod, not a database server.
func badgerOptions(dir string, log *slog.Logger) badgerdb.Options {
	o := badgerdb.DefaultOptions(dir)
	o.Logger = badgerLog{log}
	o.SyncWrites = false      // batch.commit syncs, but for what may be lost
	o.DetectConflicts = false // writers take turns
	o.MetricsEnabled = false
	o.NumVersionsToKeep = 1

	o.MemTableSize = memTableSize
	o.NumMemtables = 2
	o.NumLevelZeroTables = 2
	o.NumLevelZeroTablesStall = 6
	o.NumCompactors = 2
	o.NumGoroutines = 1

	// Sealed values do not compress, and uncompressed blocks are read from the mapped file: no block cache.
	o.Compression = options.None
	o.BlockCacheSize = 0
	o.IndexCacheSize = 2 << 20

	// Every value stays in the tree: the largest is a write of one memory (storage.MaxWrite). The value log is then an empty file, kept as small as can be.
	o.ValueThreshold = 1 << 20
	o.ValueLogFileSize = 1 << 20
	return o
}

// badgerLog passes on what Badger warns of. Lower levels would tell of every compaction.
type badgerLog struct{ log *slog.Logger }

func (l badgerLog) Errorf(format string, args ...any)   { l.log.Error(line(format, args)) }
func (l badgerLog) Warningf(format string, args ...any) { l.log.Warn(line(format, args)) }
func (badgerLog) Infof(string, ...any)                  {}
func (badgerLog) Debugf(string, ...any)                 {}

func line(format string, args []any) string {
	return "Badger: " + strings.TrimSpace(fmt.Sprintf(format, args...))
}
