package badger

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The inventory is a file in data/ that lists the tables and the newest log of
// an open store. It is removed when the store is closed cleanly, so the next
// opening can tell what a crash left from what was lost.
//
// It lags by the interval of [Store.UpdateInventory], so files that it lists
// may rightly be gone: a log became a table, or tables were merged. The
// manifest logs these changes. If it has grown since the inventory counted its
// entries, it explains what is gone; if it has not, what is missing was lost,
// which Badger does not notice. Badger rarely rewrites the manifest, which
// resets the counts; a table that the inventory does not list then shows that
// there was a merge.
type inventory struct {
	tables []uint64
	logs   []uint64
	counts manifestCounts
}

const (
	inventoryName   = "open"
	inventoryCounts = "manifest %d %d\n"
	inventorySum    = "crc32c "
)

// add adds a file by its name, if it is a table or a log.
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
		fmt.Fprintf(&b, inventoryCounts, v.counts.created, v.counts.deleted)
	}
	fmt.Fprintf(&b, "%s%08x\n", inventorySum, crc32.Checksum(b.Bytes(), castagnoli))
	return b.Bytes()
}

// parseInventory decodes what encode wrote; ok is false if it is damaged.
func parseInventory(b []byte) (v inventory, ok bool) {
	for line := range strings.Lines(string(b)) {
		if v.add(strings.TrimSpace(line)); strings.HasPrefix(line, "manifest ") {
			_, _ = fmt.Sscanf(line, inventoryCounts, &v.counts.created, &v.counts.deleted)
		}
	}
	return v, bytes.Equal(v.encode(), b)
}

// list returns the tables and logs that exist.
func (d *dataFiles) list() (found inventory, err error) {
	entries, err := os.ReadDir(d.dir.data())
	for _, e := range entries {
		found.add(e.Name())
	}
	return found, err
}

// lostFiles returns how many logs and tables are missing from a store that was
// not closed cleanly, by its inventory: logs that are gone or empty, and tables
// that the manifest no longer names.
func (d *dataFiles) lostFiles(m manifest) (logs, tables int, err error) {
	b, err := os.ReadFile(d.inventoryPath())
	if err != nil {
		if there, _ := exists(d.inventoryPath()); !there {
			err = nil // closed cleanly, or new
		}
		return 0, 0, err
	}
	was, ok := parseInventory(b)
	if !ok {
		d.log.Warn("the inventory of the store's files was damaged and is replaced", "file", d.inventoryPath())
		return 0, 0, nil
	}
	if was.counts != (manifestCounts{}) && m.counts.created > was.counts.created {
		return 0, 0, nil // a table was created since, and may be gone again
	}
	for id := range m.tables {
		if !slices.Contains(was.tables, id) {
			return 0, 0, nil
		}
	}
	now, err := d.list()
	if err != nil {
		return 0, 0, err
	}
	for _, id := range was.logs { // Badger empties and removes a log only after the manifest names its table
		if !slices.Contains(now.logs, id) || !holdsRecord(d.logPath(id)) {
			logs++
		}
	}
	if was.counts != (manifestCounts{}) && m.counts.deleted > was.counts.deleted {
		return logs, 0, nil // a merge left nothing
	}
	for _, id := range was.tables {
		if !m.tables[id] {
			tables++
		}
	}
	return logs, tables, nil
}

// writeFirstInventory writes the inventory before Badger opens its files, so
// that there is one however soon the process is killed: Badger deletes logs
// without records before it makes a new one, and merges tables as soon as they
// are open. It lists only what check found intact.
func (d *dataFiles) writeFirstInventory() error {
	found, err := d.list()
	if err != nil {
		return err
	}
	m := d.manifest
	if info, err := os.Stat(d.manifestPath()); err != nil || !m.isCurrent(info) {
		if m, err = d.readManifest(); err != nil {
			return err
		}
	}
	v := inventory{counts: m.counts}
	v.tables = slices.DeleteFunc(found.tables, func(id uint64) bool { return !m.tables[id] })
	slices.Sort(v.tables)
	for _, id := range found.logs {
		if some, err := holdsTransaction(d.logPath(id)); err != nil {
			return err
		} else if some {
			v.logs = append(v.logs, id)
		}
	}
	return d.writeInventory(v, nil)
}

// writeInventory writes v if it differs from the file. Logs are synced before
// they are listed, except for those in synced: a listed log that is empty has
// then lost something, and was not just empty when the machine crashed.
func (d *dataFiles) writeInventory(v inventory, synced []uint64) error {
	content := v.encode()
	if old, err := os.ReadFile(d.inventoryPath()); err == nil && bytes.Equal(old, content) {
		return nil
	}
	for _, id := range v.logs {
		if slices.Contains(synced, id) {
			continue
		}
		f, err := os.OpenFile(d.logPath(id), os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has become a table
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return writeDurably(d.inventoryPath(), content)
}

// inventoryUpdater keeps the inventory of an open store.
type inventoryUpdater struct {
	files *dataFiles

	mu        sync.Mutex // guards what follows
	suspended bool       // the inventory lists nothing
	manifest  manifest   // as last read
	synced    []uint64   // logs in the inventory
}

// update writes the inventory if it has changed.
func (u *inventoryUpdater) update() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.suspended {
		return nil
	}
	// The tables are those of the manifest: neither the directory nor Badger's
	// own list will do, for they include tables that are being made or merged.
	// It is read before the logs, so that a log that becomes a table meanwhile
	// is not missed later.
	if err := u.readManifest(); err != nil {
		return err
	}
	found, err := u.files.list()
	if err != nil {
		return err
	}
	v := inventory{tables: slices.Sorted(maps.Keys(u.manifest.tables)), counts: u.manifest.counts}
	if len(found.logs) > 0 { // older logs are becoming tables
		newest := slices.Max(found.logs)
		if holdsRecord(u.files.logPath(newest)) { // Badger deletes an empty one when it closes
			v.logs = []uint64{newest}
		}
	}
	if err := u.files.writeInventory(v, u.synced); err != nil {
		return err
	}
	u.synced = v.logs
	return nil
}

// manifestTries is how often the manifest is read: a record that Badger is
// writing cannot be read.
const manifestTries = 5

func (u *inventoryUpdater) readManifest() error {
	for try := 1; ; try++ {
		info, err := os.Stat(u.files.manifestPath())
		if err != nil {
			return err
		}
		if u.manifest.isCurrent(info) {
			return nil
		}
		m, err := u.files.readManifest()
		if err == nil {
			m.info, u.manifest = info, m // Badger may have written since: then it is read again
			return nil
		}
		if try == manifestTries {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// suspend empties the inventory until resume is called, while tables go without
// newer ones in their place.
func (u *inventoryUpdater) suspend() (resume func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.suspended = true
	resume = func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.suspended = false
	}
	return resume, writeDurably(u.files.inventoryPath(), inventory{}.encode())
}
