package badger

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"
)

// The inventory, a file in data/, so that it goes where what it tells of goes, names the tables and the newest log of a store that is open, and is gone when it was closed in
// good order. It is behind by [Store.NoteFiles]' interval at most, so what it names may rightly be gone: a log was made
// into a table, tables were merged into others, or into none where nothing of them lasts. The manifest is a log of all that, and the inventory
// counts what it holds: where it has grown, it holds all that it held then, and what it does not name any more went by its own word. Where it has
// not, what is missing was lost, which Badger itself does not notice. Badger seldom writes the manifest anew, which begins the counts anew; then
// a table that the inventory does not name tells of a merge, too (by its number it may be older than some: a merge takes numbers at its start).
const inventoryName = "open"

type inventory struct {
	tables []uint64
	logs   []uint64
	counts manifestCounts
}

// manifestCounts are how many tables a manifest says were made and went. 0 and 0 say nothing.
type manifestCounts struct{ made, went int }

func (s *Store) inventoryPath() string { return filepath.Join(s.dataDir(), inventoryName) }

// listFiles finds the tables and logs in data/.
func (s *Store) listFiles() (inventory, error) {
	entries, err := os.ReadDir(s.dataDir())
	if err != nil {
		return inventory{}, err
	}
	var found inventory
	for _, e := range entries {
		found.add(e.Name())
	}
	return found, nil
}

func (v *inventory) add(name string) {
	number, kind, _ := strings.Cut(name, ".")
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return
	}
	switch kind {
	case "sst":
		v.tables = append(v.tables, id)
	case "mem":
		v.logs = append(v.logs, id)
	}
}

func (v inventory) encode() []byte {
	var b bytes.Buffer
	for _, id := range v.tables {
		fmt.Fprintf(&b, "%06d.sst\n", id)
	}
	for _, id := range v.logs {
		fmt.Fprintf(&b, "%05d.mem\n", id)
	}
	if v.counts != (manifestCounts{}) {
		fmt.Fprintf(&b, inventoryCounts, v.counts.made, v.counts.went)
	}
	fmt.Fprintf(&b, "%s%08x\n", inventorySum, crc32.Checksum(b.Bytes(), castagnoli))
	return b.Bytes()
}

const (
	inventoryCounts = "manifest %d %d\n"
	inventorySum    = "crc32c "
)

// parseInventory is the other way round. One that is itself damaged says nothing.
func parseInventory(b []byte) (v inventory, ok bool) {
	for line := range strings.Lines(string(b)) {
		if v.add(strings.TrimSpace(line)); strings.HasPrefix(line, "manifest ") {
			_, _ = fmt.Sscanf(line, inventoryCounts, &v.counts.made, &v.counts.went) // else it differs from b
		}
	}
	return v, bytes.Equal(v.encode(), b)
}

// NoteFiles brings the inventory up to date. To be called several times a second while the store is open; it writes only
// where something has changed. While the store is not open it does nothing.
func (s *Store) NoteFiles() error {
	s.mu.Lock()
	se := s.session
	if se != nil {
		se.ops.Add(1) // not closed meanwhile
	}
	s.mu.Unlock()
	if se == nil {
		return nil
	}
	defer se.ops.Done()
	return s.noteFiles(se)
}

func (s *Store) noteFiles(se *session) error {
	se.noting.Lock()
	defer se.noting.Unlock()
	if se.unnoted {
		return nil
	}
	// Badger's own list won't do: in the midst of a merge it has what is merged and what comes of it. The manifest is
	// read first, so that a log that is made into a table meanwhile is not missed later.
	tables, counts, err := se.namedTables()
	if err != nil {
		return err
	}
	now, err := s.listFiles()
	if err != nil {
		return err
	}
	now.tables, now.counts = tables, counts // among the files are some that are being made, or were merged into others
	if len(now.logs) > 0 {
		now.logs = []uint64{slices.Max(now.logs)} // others go once they are tables, and whoever reads them holds that up
		if !begun(s.logPath(now.logs[0])) {
			now.logs = nil // Badger deletes one that is empty when it closes
		}
	}
	content := now.encode()
	if old, err := os.ReadFile(s.inventoryPath()); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := s.syncLogs(now.logs, se.synced); err != nil {
		return err
	}
	se.synced = now.logs
	return writeDurably(s.inventoryPath(), content)
}

// syncLogs makes what logs hold durable before they are named, but for those that it has done that for: one that is named and empty has lost
// something, then, and is not one that the machine's end kept from being filled.
func (s *Store) syncLogs(logs, done []uint64) error {
	for _, id := range logs {
		if slices.Contains(done, id) {
			continue
		}
		f, err := os.OpenFile(s.logPath(id), os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // made into a table meanwhile
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) logPath(id uint64) string {
	return filepath.Join(s.dataDir(), fmt.Sprintf("%05d.mem", id))
}

// namedTables are those of the manifest, in order. Needs noting.
func (se *session) namedTables() ([]uint64, manifestCounts, error) {
	path := filepath.Join(se.db.Opts().Dir, badgerdb.ManifestFilename)
	for try := range manifestTries {
		info, err := os.Stat(path)
		if err != nil {
			return nil, manifestCounts{}, err
		}
		if se.manifest.is(info) {
			break
		}
		named, counts, err := namedTables(path, se.db.Opts())
		if err == nil {
			se.read(knownManifest{info, named, counts})
			break
		}
		if try == manifestTries-1 {
			return nil, manifestCounts{}, err
		}
		time.Sleep(time.Millisecond)
	}
	return se.named, se.manifest.counts, nil
}

func (se *session) read(m knownManifest) {
	se.manifest, se.named = m, slices.Sorted(maps.Keys(m.tables))
}

// knownManifest is what a manifest names, and which one that was. Badger appends to it for ten thousand tables before it writes it anew, so
// that reading it takes tens of milliseconds.
type knownManifest struct {
	info   fs.FileInfo // nil = none
	tables map[uint64]bool
	counts manifestCounts
}

func (m knownManifest) is(now fs.FileInfo) bool {
	return m.info != nil && os.SameFile(m.info, now) && m.info.Size() == now.Size() && m.info.ModTime().Equal(now.ModTime())
}

// manifestTries: a record that Badger is just writing can't be read.
const manifestTries = 5

// unnote has the inventory name nothing until note is called: for the time in which tables go, and no newer ones need take
// their place.
func (se *session) unnote() (note func(), err error) {
	se.noting.Lock()
	defer se.noting.Unlock()
	se.unnoted = true
	note = func() {
		se.noting.Lock()
		defer se.noting.Unlock()
		se.unnoted = false
	}
	return note, writeDurably(filepath.Join(se.db.Opts().Dir, inventoryName), inventory{}.encode())
}

// lostFiles says what a store that was not closed in good order lacks, by its inventory: logs that are gone or empty, and tables
// that the manifest does not name any more.
func (s *Store) lostFiles(named map[uint64]bool, counts manifestCounts) (logs, tables int, err error) {
	b, err := os.ReadFile(s.inventoryPath())
	if err != nil {
		if there, _ := exists(s.inventoryPath()); !there {
			err = nil // closed in good order, or new
		}
		return 0, 0, err
	}
	was, ok := parseInventory(b)
	if !ok {
		s.log.Warn("a file of no consequence was damaged and is made anew", "file", s.inventoryPath())
		return 0, 0, nil
	}
	if was.counts != (manifestCounts{}) && counts.made > was.counts.made {
		return 0, 0, nil // one was made since, and may be gone again
	}
	for id := range named {
		if !slices.Contains(was.tables, id) {
			return 0, 0, nil
		}
	}
	now, err := s.listFiles()
	if err != nil {
		return 0, 0, err
	}
	for _, id := range was.logs { // Badger empties one before it removes it, and both only once the manifest names the table that it became
		if !slices.Contains(now.logs, id) || !begun(s.logPath(id)) {
			logs++
		}
	}
	if was.counts != (manifestCounts{}) && counts.went > was.counts.went {
		return logs, 0, nil // a merge of which nothing was left
	}
	for _, id := range was.tables {
		if !named[id] {
			tables++
		}
	}
	return logs, tables, nil
}

// noteBefore writes the inventory before Badger opens its files, so that one is there however soon it is killed: Badger deletes logs without a
// record before it makes a new one, and merges tables as soon as it has opened them, which leaves unnamed ones.
// Nothing but what verify found whole is in it.
func (s *Store) noteBefore() error {
	found, err := s.listFiles()
	if err != nil {
		return err
	}
	path := filepath.Join(s.dataDir(), badgerdb.ManifestFilename)
	named, counts := s.manifest.tables, s.manifest.counts
	if info, err := os.Stat(path); err != nil || !s.manifest.is(info) {
		if named, counts, err = namedTables(path, badgerOptions(s.dataDir(), s.cfg.sizes(), s.log)); err != nil {
			return err
		}
	}
	found.counts = counts
	found.tables = slices.DeleteFunc(found.tables, func(id uint64) bool { return !named[id] })
	logs := found.logs[:0]
	for _, id := range found.logs {
		if some, err := holdsTransaction(s.logPath(id)); err != nil {
			return err
		} else if some {
			logs = append(logs, id)
		}
	}
	found.logs = logs
	slices.Sort(found.tables)
	content := found.encode()
	if old, err := os.ReadFile(s.inventoryPath()); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := s.syncLogs(found.logs, nil); err != nil {
		return err
	}
	return writeDurably(s.inventoryPath(), content)
}

// namedTables are those of a manifest; none where there is none yet.
func namedTables(path string, o badgerdb.Options) (map[uint64]bool, manifestCounts, error) {
	none := manifestCounts{}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, none, nil
	}
	if err != nil {
		return nil, none, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		return nil, none, err
	}
	manifest, _, err := badgerdb.ReplayManifestFile(f, 0, o)
	if err != nil {
		return nil, none, err
	}
	named := make(map[uint64]bool, len(manifest.Tables))
	for id := range manifest.Tables {
		named[id] = true
	}
	return named, manifestCounts{manifest.Creations, manifest.Deletions}, nil
}

// holdsTransaction says whether a log holds a whole transaction. One that holds none, for a kill came in its first, Badger deletes
// when it opens, without a word in the manifest.
func holdsTransaction(path string) (bool, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	for at := min(logHead, len(b)); ; {
		n := logRecord(b[at:])
		if n == 0 {
			return false, nil
		}
		if b[at]&inTransaction == 0 { // the record at a transaction's end, or one that stands alone
			return true, nil
		}
		at += n
	}
}

// begun says whether anything was written to a log.
func begun(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // made into a table meanwhile
	}
	defer f.Close()
	var first [8]byte
	n, _ := f.ReadAt(first[:], logHead)
	return len(bytes.Trim(first[:n], "\x00")) > 0
}

// inTransaction marks, in a record's meta, one of a transaction whose end is still to come.
const inTransaction = 1 << 6
