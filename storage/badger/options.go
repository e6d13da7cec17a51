package badger

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/ristretto/v2/z"
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
	o.Logger = badgerLog{log: log, dir: dir}
	o.SyncWrites = false      // batch.commit syncs, but for what may be lost
	o.DetectConflicts = false // writers take turns
	o.MetricsEnabled = false
	o.NumVersionsToKeep = 1

	o.MemTableSize = memTableSize
	o.NumMemtables = 2
	// Disk keys are hashes, so what leaves the memory tables overlaps all of the next level, and merging the two rewrites both: it
	// waits until there is as much as makes that worth while. A level of the size of most stores is the last one, without a
	// smaller one above it to go through. Against 2 tables and 10 MiB it is a third less processor time a turn.
	o.NumLevelZeroTables = 8
	o.NumLevelZeroTablesStall = 18
	o.BaseLevelSize = 64 << 20
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
type badgerLog struct {
	log   *slog.Logger
	dir   string
	fatal func(reason string) // nil = none
}

func (l badgerLog) Errorf(format string, args ...any)   { l.log.Error(line(format, args)) }
func (l badgerLog) Warningf(format string, args ...any) { l.log.Warn(line(format, args)) }
func (badgerLog) Infof(string, ...any)                  {}

// Debugf is where a compaction can be stopped. Badger 4.9.6 loses the error of a table that it can't create (subcompact in
// its levels.go defers a call whose argument is nil still), commits the compaction without the table and deletes those that it was made
// of: all they held is gone, without a word. Each compaction passes here before it commits, so this finds out
// whether a table can be created now.
//
// BUG(badger): a failure that comes and goes within the moment is not noticed.
func (l badgerLog) Debugf(format string, _ ...any) {
	if !strings.HasPrefix(format, compactionDone) {
		return
	}
	err := probeTable(l.dir)
	if err == nil {
		return
	}
	reason := fmt.Sprintf("no table can be created, and a compaction would lose what it merges: %v", err)
	l.log.Error("the store must be opened anew", "reason", reason)
	if l.fatal != nil {
		l.fatal(reason)
	}
	select {} // it must not commit; without compaction the store takes writes for a while, then none
}

const compactionDone = "Discard stats"

// probeTable creates a file as Badger creates a table.
func probeTable(dir string) error {
	path := filepath.Join(dir, fmt.Sprintf("probe-%d", rand.Uint64()))
	f, err := z.OpenMmapFile(path, os.O_CREATE|os.O_RDWR|os.O_EXCL, memTableSize)
	if !errors.Is(err, z.NewFile) {
		_ = os.Remove(path)
		return err
	}
	return f.Delete()
}

func line(format string, args []any) string {
	return "Badger: " + strings.TrimSpace(fmt.Sprintf(format, args...))
}
