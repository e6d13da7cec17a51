package badger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// dataFiles checks and repairs the files in data/ before Badger opens them, and
// keeps the inventory by which the next check finds missing ones.
type dataFiles struct {
	dir     directory
	sizes   sizes
	log     *slog.Logger
	damaged *atomic.Uint64 // counts damaged files

	manifest manifest // as check has read it
}

func (d *dataFiles) path(name string) string { return filepath.Join(d.dir.data(), name) }
func (d *dataFiles) manifestPath() string    { return d.path(badgerdb.ManifestFilename) }
func (d *dataFiles) inventoryPath() string   { return d.path(inventoryName) }
func (d *dataFiles) logPath(id uint64) string {
	return d.path(fmt.Sprintf("%05d.mem", id))
}

// glob returns the paths of the files that match.
func (d *dataFiles) glob(pattern string) ([]string, error) {
	return filepath.Glob(d.path(pattern))
}

// check examines the files of a closed store, because Badger makes some damage
// worse: it deletes every table that its manifest does not name, and truncates
// a write-ahead log at the first record that it cannot read. Both are right
// after a crash, and lose acknowledged writes if the manifest or the log is
// damaged. Only files without records are changed. While another process has
// the store open, the check fails.
func (d *dataFiles) check() error {
	unlock, free, err := lockDir(d.dir.data())
	if err != nil {
		return err
	}
	if !free { // Badger might find it free a moment later, and open what was not checked
		return fmt.Errorf("check files: %s", badgerLocked)
	}
	defer unlock()
	tables, err := d.glob("*.sst")
	if err != nil {
		return err
	}
	if err := d.checkManifest(tables); err != nil {
		return err
	}
	if err := d.repairKeyRegistry(); err != nil {
		return err
	}
	if err := d.repairLogHeads(); err != nil {
		return err
	}
	if err := d.checkLogs(); err != nil {
		return err
	}
	return d.writeFirstInventory()
}

// checkManifest compares the manifest with the tables that exist and with the
// inventory.
func (d *dataFiles) checkManifest(tables []string) error {
	path := d.manifestPath()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if len(tables) > 0 {
			return damagedFile(path, fmt.Sprintf("is missing, and there are %d tables", len(tables)))
		}
		lost, _, err := d.lostFiles(manifest{})
		d.reportLostLogs(lost)
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
		return nil // the process was killed while it created the file
	}
	if err := checkManifestRecords(f, info.Size()); err != nil {
		return damagedFile(path, err.Error())
	}
	m, err := d.readManifest()
	if err != nil {
		return damagedFile(path, "cannot be read: "+err.Error())
	}
	d.manifest = m
	there := make(map[string]bool, len(tables))
	for _, t := range tables {
		info, err := os.Stat(t)
		if err != nil {
			return err
		}
		there[filepath.Base(t)] = info.Size() > 0
	}
	if logs, err := d.glob("*.mem"); err != nil {
		return err
	} else if open, _ := exists(d.inventoryPath()); !open && len(logs) == 0 && len(tables) > len(m.tables) {
		n := len(tables) - len(m.tables)
		return damagedFile(path, fmt.Sprintf("does not name %d tables of a store that was closed cleanly", n))
	}
	for id := range m.tables {
		if name := fmt.Sprintf("%06d.sst", id); !there[name] {
			return damagedFile(name, "is missing or empty")
		}
	}
	lostLogs, lostTables, err := d.lostFiles(m)
	if err != nil {
		return err
	}
	if lostTables > 0 {
		return damagedFile(path, fmt.Sprintf("no longer names %d tables", lostTables))
	}
	d.reportLostLogs(lostLogs)
	return nil
}

// reportLostLogs reports logs that are missing or empty. Nothing can bring them
// back, so the store opens without them.
func (d *dataFiles) reportLostLogs(n int) {
	if n > 0 {
		d.damaged.Add(uint64(n))
		d.log.Error("a log is missing or was emptied: some of the last writes are lost", "logs", n, "directory", d.dir.data())
	}
}

// checkLogs looks for damaged write-ahead logs. Badger truncates them, so a
// copy is kept; the store opens with the rest, which is nearly everything.
func (d *dataFiles) checkLogs() error {
	logs, err := d.glob("*.mem")
	if err != nil {
		return err
	}
	for _, path := range logs {
		err := checkLog(path)
		if err == nil {
			continue
		}
		if !errors.Is(err, storage.ErrDamaged) {
			return err
		}
		kept, keepErr := d.keepCopy(path)
		d.damaged.Add(1)
		d.log.Error("a log is damaged: some of the last writes are lost", "file", path, "error", err, "copy", kept, "copy_error", keepErr)
	}
	return nil
}

const (
	keptPrefix = "log.damaged-"
	maxKept    = 8 // of at most 16 MiB each
)

// keepCopy copies a damaged log to the store's directory, unless there are
// maxKept copies already.
func (d *dataFiles) keepCopy(path string) (string, error) {
	old, err := filepath.Glob(d.dir.path(keptPrefix + "*"))
	if err != nil || len(old) >= maxKept {
		return "", err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	to := d.dir.timestamped(keptPrefix, now()) + "-" + filepath.Base(path)
	return to, writeDurably(to, bytes.TrimRight(b, "\x00"))
}

// repairLogHeads clears the id of the encryption key in the heads of logs.
// Badger refuses a log that names a key it does not know, and ours name none,
// since records are sealed before Badger sees them. Any other id is damage, or
// a block that a power cut kept from being written; the records behind it have
// checksums of their own.
func (d *dataFiles) repairLogHeads() error {
	for _, kind := range []string{"*.mem", "*.vlog"} {
		logs, err := d.glob(kind)
		if err != nil {
			return err
		}
		for _, path := range logs {
			if err := d.repairLogHead(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *dataFiles) repairLogHead(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var id [8]byte
	_, err = io.ReadFull(f, id[:])
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // left to checkLog
		err = nil
	case err == nil && binary.BigEndian.Uint64(id[:]) != 0:
		d.log.Warn("the head of a log was damaged and has been repaired; no records are affected", "file", path)
		_, err = f.WriteAt(make([]byte, len(id)), 0)
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}

// The registry of Badger's encryption keys holds an initialisation vector of 16
// bytes, then a text that is in the clear if there is no key.
const (
	registryText = "Hello Badger"
	registrySize = 16 + len(registryText)
)

// repairKeyRegistry renames a damaged registry of Badger's encryption keys.
// Badger refuses to open with one, and makes a new one if there is none; ours
// is always empty.
func (d *dataFiles) repairKeyRegistry() error {
	path := d.path(badgerdb.KeyRegistryFileName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(b) == registrySize && bytes.HasSuffix(b, []byte(registryText)) {
		return err
	}
	d.log.Warn("an empty key registry was damaged and is replaced", "file", path)
	return os.Rename(path, path+".damaged")
}

// logsExceed reports whether a crash has left logs of larger memory tables:
// Badger ends the process when it reads a log into a table that is too small
// for it.
func (d *dataFiles) logsExceed(size sizes) (bool, error) {
	logs, err := d.glob("*.mem")
	if err != nil {
		return false, err
	}
	for _, path := range logs {
		info, err := os.Stat(path)
		if err != nil {
			return false, err
		}
		// Badger truncates a log that it has read to its records, which need up
		// to 1.4 times as much room in a table.
		if n := info.Size(); n > size.memTable/2 && n != size.fullLog() {
			return true, nil
		}
	}
	return false, nil
}
