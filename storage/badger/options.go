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

	"github.com/remora-proxy/remora/storage"
)

// entryOverhead is what Badger counts for an entry beside key and value, rounded up.
const entryOverhead = 16

// sizes are what Badger's memory goes with: up to four memory tables, each with an arena of 1.3 times memTable, and a buffer of
// twice baseTable, rounded up to a power of two, for each table that is being made or was of late. A merge fills up to six tables at a
// time, and eight more wait for the disk; there may be two merges. Eight buffers are kept for good. Any of them may come to make the
// table of a memory table, for which it gets more of twice its size, and keeps it.
type sizes struct {
	memTable   int64
	baseTable  int64
	tableGrows int // a level's tables against those of the level above
	memTables  int // full ones that wait
	levelZero  int // tables in it that call for a merge
	stall      int // tables in it that stop writes
	block      int // of a table
	inline     int // the longest value of a record that is not chunked
	chunk      int // of a record
	threshold  int64
	maxTxn     int // bytes of a transaction; Badger's own limit is 15 % of a memory table
	maxEntries int // the same, by 96 bytes an entry
	maxWrite   int // storage.Write.Size
}

// Disk keys are hashes, so what leaves the memory tables overlaps all of the next level, and merging the two rewrites both: it
// waits until there is as much as makes that worth while. Against 2 tables and a base level of 10 MiB it is a third less processor
// time a turn.
func largeSizes() sizes {
	return sizes{
		memTable: 8 << 20, baseTable: 2 << 20, tableGrows: 2, memTables: 2, levelZero: 8, stall: 18,
		block: 4 << 10, inline: inlineSize, chunk: chunkSize, threshold: 1 << 20, maxTxn: (8 << 20) * 14 / 100, maxEntries: 12_000, maxWrite: storage.MaxWrite,
	}
}

// smallSizes are for a process of some 50 MiB. A memory table is as small as takes the names of a call, and its table fits a buffer
// of 2 MiB, which the next step would make 6: Badger begins a block for each value that does not fit the last one, and one that is
// larger than a block takes three times its size of the buffer. So blocks are large, and chunks such that four fill one. Large
// blocks also make the tables' indexes small, of which few fit the cache. Each table that is being written takes 3 MiB more for its index.
// Tables don't grow with the store, so there are some 1,000 for each GiB: so many files are open.
func smallSizes() sizes {
	return sizes{
		memTable: 11 << 17, baseTable: 1 << 20, tableGrows: 1, memTables: 1, levelZero: 16, stall: 36,
		block: 32 << 10, inline: 15 << 9, chunk: 15 << 9, threshold: 208 << 10, maxTxn: (11 << 17) * 145 / 1000, maxEntries: 2_200, maxWrite: 160 << 10,
	}
}

// smallMemory is what a store's process must have for large sizes.
const smallMemory = 96 << 20

func (c Config) sizes() sizes {
	if c.MemoryBytes > 0 && c.MemoryBytes < smallMemory {
		return smallSizes()
	}
	return largeSizes()
}

// MaxWrite is the largest write that a store of this configuration takes, by [storage.Write.Size]: [storage.MaxWrite], or 160 KiB
// where memory is short.
func (c Config) MaxWrite() int { return c.sizes().maxWrite }

// badgerOptions favour a small footprint: one user's machine and a sidecar's share of a pod, not a database server.
func badgerOptions(dir string, size sizes, log *slog.Logger) badgerdb.Options {
	o := badgerdb.DefaultOptions(dir)
	o.Logger = badgerLog{log: log, dir: dir}
	o.SyncWrites = false      // batch.commit syncs, but for what may be lost
	o.DetectConflicts = false // writers take turns
	o.MetricsEnabled = false
	o.NumVersionsToKeep = 1

	o.MemTableSize = size.memTable
	o.NumMemtables = size.memTables
	o.BaseTableSize = size.baseTable
	o.BlockSize = size.block
	o.TableSizeMultiplier = size.tableGrows
	o.NumLevelZeroTables = size.levelZero
	o.NumLevelZeroTablesStall = size.stall
	// A level of the size of most stores is the last one, without a smaller one above it to go through.
	o.BaseLevelSize = 64 << 20
	o.NumCompactors = 2
	o.NumGoroutines = 1

	// Sealed values do not compress, and uncompressed blocks are read from the mapped file: no block cache.
	o.Compression = options.None
	o.BlockCacheSize = 0
	o.IndexCacheSize = 2 << 20

	// Every value stays in the tree: the largest is a write of one memory, or a chunk. The value log is then an empty file, kept as small as can be.
	o.ValueThreshold = size.threshold
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

// probeSize is as large as tables get, but in the lower levels of large stores.
const probeSize = 8 << 20

// probeTable creates a file as Badger creates a table.
func probeTable(dir string) error {
	path := filepath.Join(dir, fmt.Sprintf("probe-%d", rand.Uint64()))
	f, err := z.OpenMmapFile(path, os.O_CREATE|os.O_RDWR|os.O_EXCL, probeSize)
	if !errors.Is(err, z.NewFile) {
		_ = os.Remove(path)
		return err
	}
	return f.Delete()
}

func line(format string, args []any) string {
	return "Badger: " + strings.TrimSpace(fmt.Sprintf(format, args...))
}
