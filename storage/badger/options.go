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

// entryOverhead is what Badger counts for an entry in addition to key and
// value, rounded up.
const entryOverhead = 16

// sizes determine Badger's memory: up to four memory tables, each with an arena
// of 1.3 times memTable, and a buffer of twice baseTable, rounded up to a power
// of two, for each table that is being made. A merge fills up to six tables at
// a time, eight more may wait for the disk, and there may be two merges. Eight
// buffers are always kept. A buffer that once made the table of a memory table
// has grown to twice that size and keeps it.
type sizes struct {
	memTable   int64
	baseTable  int64
	tableGrows int // size of a level's tables relative to the level above
	memTables  int // full ones that may wait
	levelZero  int // tables in it that trigger a merge
	stall      int // tables in it that stop writes
	block      int // of a table
	inline     int // maximum record value that is not chunked
	chunk      int // maximum chunk of a record value
	threshold  int64
	maxTxn     int // bytes of a transaction; Badger's own limit is 15 % of a memory table
	maxEntries int // of a transaction, at 96 bytes each
	maxWrite   int // storage.Write.Size
}

// largeSizes are the usual ones. Disk keys are hashes, so what leaves the
// memory tables overlaps all of the next level and a merge rewrites both.
// Merges therefore wait for 8 tables, which saves a third of the processor time
// of a turn compared with 2 tables and a base level of 10 MiB.
func largeSizes() sizes {
	return sizes{
		memTable: 8 << 20, baseTable: 2 << 20, tableGrows: 2, memTables: 2, levelZero: 8, stall: 18,
		block: 4 << 10, inline: inlineSize, chunk: chunkSize, threshold: 1 << 20, maxTxn: (8 << 20) * 14 / 100, maxEntries: 12_000, maxWrite: storage.MaxWrite,
	}
}

// smallSizes are for a process of some 50 MiB. A memory table just holds the
// keys of one call, so its table fits a buffer of 2 MiB; the next size would be
// 6. Badger starts a block for each value that does not fit the last one, and a
// value larger than a block takes three times its size of the buffer, so blocks
// are large, and four chunks fill one. Large blocks also keep the tables'
// indexes small. Tables do not grow with the store, so about 1,000 files are
// open for each GiB.
func smallSizes() sizes {
	return sizes{
		memTable: 11 << 17, baseTable: 1 << 20, tableGrows: 1, memTables: 1, levelZero: 16, stall: 36,
		block: 32 << 10, inline: 15 << 9, chunk: 15 << 9, threshold: 208 << 10, maxTxn: (11 << 17) * 145 / 1000, maxEntries: 2_200, maxWrite: 160 << 10,
	}
}

// smallMemory is the memory limit below which sizes are small.
const smallMemory = 96 << 20

func (c Config) sizes() sizes {
	if c.MemoryBytes > 0 && c.MemoryBytes < smallMemory {
		return smallSizes()
	}
	return largeSizes()
}

// MaxWrite returns the largest write that the store accepts, by
// [storage.Write.Size]: [storage.MaxWrite], or 160 KiB if memory is limited to
// less than 96 MiB.
func (c Config) MaxWrite() int { return c.sizes().maxWrite }

// badgerOptions favour a small footprint: they suit a laptop or a sidecar, not
// a database server.
func badgerOptions(dir string, size sizes, log *slog.Logger) badgerdb.Options {
	o := badgerdb.DefaultOptions(dir)
	o.Logger = badgerLog{log: log, dir: dir}
	o.SyncWrites = false      // batch.commit syncs, except for volatile records
	o.DetectConflicts = false // writes are serialised
	o.MetricsEnabled = false
	o.NumVersionsToKeep = 1

	o.MemTableSize = size.memTable
	o.NumMemtables = size.memTables
	o.BaseTableSize = size.baseTable
	o.BlockSize = size.block
	o.TableSizeMultiplier = size.tableGrows
	o.NumLevelZeroTables = size.levelZero
	o.NumLevelZeroTablesStall = size.stall
	// Larger than most stores, so that tables go from level 0 straight to the
	// last level.
	o.BaseLevelSize = 64 << 20
	o.NumCompactors = 2
	o.NumGoroutines = 1

	// Sealed values do not compress, and uncompressed blocks are read from the
	// mapped file, without a block cache.
	o.Compression = options.None
	o.BlockCacheSize = 0
	o.IndexCacheSize = 2 << 20

	// Every value is below the threshold, and so stays in the tree. The value
	// log is an empty file, as small as possible.
	o.ValueThreshold = size.threshold
	o.ValueLogFileSize = 1 << 20
	return o
}

// badgerLog logs Badger's warnings and errors. Lower levels would log every
// compaction.
type badgerLog struct {
	log   *slog.Logger
	dir   string
	fatal func(reason string) // nil = none
}

func (l badgerLog) Errorf(format string, args ...any)   { l.log.Error(line(format, args)) }
func (l badgerLog) Warningf(format string, args ...any) { l.log.Warn(line(format, args)) }
func (badgerLog) Infof(string, ...any)                  {}

// Debugf stops a compaction that would lose data. Badger 4.9.6 drops the error
// of a table that it cannot create (subcompact in its levels.go defers a call
// whose argument is still nil), commits the compaction without the table, and
// deletes the tables that were merged. Every compaction logs here before it
// commits, so this checks whether a table can be created now.
//
// BUG(badger): a failure that comes and goes within that moment is not noticed.
func (l badgerLog) Debugf(format string, _ ...any) {
	if !strings.HasPrefix(format, compactionDone) {
		return
	}
	err := probeTable(l.dir)
	if err == nil {
		return
	}
	reason := fmt.Sprintf("no table can be created, and a compaction would lose what it merges: %v", err)
	l.log.Error("the store must be reopened", "reason", reason)
	if l.fatal != nil {
		l.fatal(reason)
	}
	select {} // it must not commit; without compactions the store accepts writes for a while, then none
}

const compactionDone = "Discard stats"

// probeSize is the size of most tables.
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
