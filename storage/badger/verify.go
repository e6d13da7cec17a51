package badger

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// verify looks at Badger's files before Badger does, for what it would make worse: it deletes every table that its manifest does not
// name, and cuts a write-ahead log off at the first record that it can't read. Both are right after a crash, and lose
// what was acknowledged where the manifest or the log is damaged. Only what holds no records is changed, and while another process has the
// store nothing is looked at and it is not opened.
func (s *Store) verify() error {
	unlock, free, err := lockDir(s.dataDir())
	if err != nil {
		return err
	}
	if !free { // Badger might find it free a moment later, and open what nobody looked at
		return fmt.Errorf("look at the files: %s", badgerLocked)
	}
	defer unlock()
	tables, err := filepath.Glob(filepath.Join(s.dataDir(), "*.sst"))
	if err != nil {
		return err
	}
	if err := s.verifyManifest(tables); err != nil {
		return err
	}
	if err := s.mendRegistry(); err != nil {
		return err
	}
	if err := s.mendHeads(); err != nil {
		return err
	}
	if err := s.verifyLogs(); err != nil {
		return err
	}
	return s.noteBefore()
}

// verifyLogs looks for write-ahead logs that lack something. What Badger can't read of one it cuts off, so a copy is kept; the store opens
// with what there is, which is nearly all.
func (s *Store) verifyLogs() error {
	logs, err := filepath.Glob(filepath.Join(s.dataDir(), "*.mem"))
	if err != nil {
		return err
	}
	for _, path := range logs {
		err := verifyLog(path)
		if err == nil {
			continue
		}
		if !errors.Is(err, storage.ErrDamaged) {
			return err
		}
		kept, keepErr := s.keepCopy(path)
		s.damaged.Add(1)
		s.log.Error("a log is damaged: some of what was stored last is lost", "file", path, "error", err, "copy", kept, "copy_error", keepErr)
	}
	return nil
}

// keepCopy copies a damaged log into the directory, unless there are many copies already.
func (s *Store) keepCopy(path string) (string, error) {
	old, err := filepath.Glob(filepath.Join(s.cfg.Dir, keptPrefix+"*"))
	if err != nil || len(old) >= maxKept {
		return "", err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	to := filepath.Join(s.cfg.Dir, keptPrefix+time.Now().UTC().Format("20060102T150405.000Z-")+filepath.Base(path))
	return to, writeDurably(to, bytes.TrimRight(b, "\x00"))
}

const (
	keptPrefix = "log.damaged-"
	maxKept    = 8 // of at most 16 MiB
)

func damagedFile(path, what string) error {
	return fmt.Errorf("%s %s: %w", filepath.Base(path), what, storage.ErrDamaged)
}

// tornManifest is the most that a crash can leave of a change to the manifest: each names the tables of one compaction.
const tornManifest = 4 << 10

func (s *Store) verifyManifest(tables []string) error {
	path := filepath.Join(s.dataDir(), badgerdb.ManifestFilename)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if len(tables) > 0 {
			return damagedFile(path, fmt.Sprintf("is missing where there are %d tables", len(tables)))
		}
		lost, _, err := s.lostFiles(nil, manifestCounts{})
		s.missLogs(lost)
		return err
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 && len(tables) == 0 {
		return nil // killed while it made the file
	}
	if err := manifestWhole(f, info.Size()); err != nil {
		return damagedFile(path, err.Error())
	}
	named, counts, err := namedTables(path, badgerOptions(s.dataDir(), s.cfg.sizes(), s.log))
	if err != nil {
		return damagedFile(path, "can't be read: "+err.Error())
	}
	s.manifest = knownManifest{info, named, counts}
	there := make(map[string]bool, len(tables))
	for _, t := range tables {
		info, err := os.Stat(t)
		if err != nil {
			return err
		}
		there[filepath.Base(t)] = info.Size() > 0
	}
	if logs, err := filepath.Glob(filepath.Join(s.dataDir(), "*.mem")); err != nil {
		return err
	} else if open, _ := exists(s.inventoryPath()); !open && len(logs) == 0 && len(tables) > len(named) {
		n := len(tables) - len(named)
		return damagedFile(path, fmt.Sprintf("does not name %d tables of a store that was closed in good order", n))
	}
	for id := range named {
		if name := fmt.Sprintf("%06d.sst", id); !there[name] {
			return damagedFile(name, "is missing or empty")
		}
	}
	lostLogs, lostTables, err := s.lostFiles(named, counts)
	if err != nil {
		return err
	}
	if lostTables > 0 {
		return damagedFile(path, fmt.Sprintf("does not name %d tables that it named before", lostTables))
	}
	s.missLogs(lostLogs)
	return nil
}

// missLogs tells of logs that are gone or were emptied: nothing brings them back, so the store opens without them.
func (s *Store) missLogs(n int) {
	if n > 0 {
		s.damaged.Add(uint64(n))
		s.log.Error("a log is missing or was emptied: some of what was stored last is lost", "logs", n, "directory", s.dataDir())
	}
}

// manifestWhole finds what Badger passes over: zeros, and a length that reaches far beyond the end.
func manifestWhole(f io.Reader, size int64) error {
	r := bufio.NewReader(f)
	if _, err := r.Discard(8); err != nil {
		return errors.New("has no head")
	}
	empty := 0 // in a row: Badger writes one where nothing changed
	for left := size - 8; left > 0; {
		var head [8]byte
		if left < int64(len(head)) {
			return nil
		}
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		left -= int64(len(head))
		n := int64(binary.BigEndian.Uint32(head[:]))
		if empty++; n > 0 {
			empty = 0
		}
		switch {
		case empty > 1:
			return errors.New("holds zeros")
		case n > left && left > tornManifest:
			return errors.New("holds a record that is longer than the file")
		case n > left:
			return nil
		}
		if _, err := r.Discard(int(n)); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// The head of a write-ahead log, and of a record in it: meta, user meta, then as uvarints the lengths of key and value and
// the expiry; then key, value and CRC-32C of all that.
const (
	logHead   = 20
	maxLogKey = 1 << 10 // longer than any key of layout.go
)

// fullLog is how large Badger makes a log.
func (s sizes) fullLog() int64 { return 2 * s.memTable }

func isFullLog(n int64) bool { return n == smallSizes().fullLog() || n >= largeSizes().fullLog() }

// verifyLog tells a log that ends in what a crash left from one that is damaged in its midst: behind what can't be read
// stand records that can. An empty file is one that a kill kept from being filled.
func verifyLog(path string) error {
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		return err
	}
	if len(b) < logHead {
		return damagedFile(path, "is cut off in its head")
	}
	at := logHead
	for {
		n := logRecord(b[at:])
		if n == 0 {
			break
		}
		at += n
	}
	rest := bytes.TrimRight(b[at:], "\x00")
	if !isFullLog(int64(len(b))) && len(b) > at {
		return damagedFile(path, "is cut off") // Badger makes it full, and cuts it at the end of a record only
	}
	for i := 1; i < len(rest); i++ {
		if n := logRecord(b[at+i:]); n > 0 {
			return damagedFile(path, "holds records behind a place that can't be read")
		}
	}
	return nil
}

// logRecord is the length of the record at the front of b, 0 where there is none.
func logRecord(b []byte) int {
	if len(b) < 2+3+crc32.Size {
		return 0
	}
	at := 2
	var lengths [3]uint64
	for i := range lengths {
		v, n := binary.Uvarint(b[at:])
		if n <= 0 {
			return 0
		}
		lengths[i], at = v, at+n
	}
	key, value := lengths[0], lengths[1]
	if key == 0 || key > maxLogKey || value > uint64(len(b)) || uint64(at)+key+value+crc32.Size > uint64(len(b)) {
		return 0
	}
	end := at + int(key+value)
	if crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return 0
	}
	return end + crc32.Size
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
