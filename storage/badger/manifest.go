package badger

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	badgerdb "github.com/dgraph-io/badger/v4"
)

// manifest is what Badger's manifest holds: the live tables. Badger appends to
// the file for ten thousand tables before it rewrites it, and reading it takes
// up to tens of milliseconds, so the last version read is kept.
type manifest struct {
	info   fs.FileInfo // nil = none was read
	tables map[uint64]bool
	counts manifestCounts
}

// manifestCounts are how many creations and deletions of tables a manifest
// holds. 0 and 0 mean unknown.
type manifestCounts struct{ created, deleted int }

// isCurrent reports whether m is what the file holds.
func (m manifest) isCurrent(file fs.FileInfo) bool {
	return m.info != nil && os.SameFile(m.info, file) && m.info.Size() == file.Size() && m.info.ModTime().Equal(file.ModTime())
}

// readManifest returns an empty manifest if there is none yet.
func (d *dataFiles) readManifest() (m manifest, err error) {
	f, err := os.Open(d.manifestPath())
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return m, err
	}
	replayed, _, err := badgerdb.ReplayManifestFile(f, 0, badgerOptions(d.dir.data(), d.sizes, d.log))
	if err != nil {
		return m, err
	}
	m = manifest{info, make(map[uint64]bool, len(replayed.Tables)), manifestCounts{replayed.Creations, replayed.Deletions}}
	for id := range replayed.Tables {
		m.tables[id] = true
	}
	return m, nil
}

// maxTornRecord limits what a crash can leave of a record of the manifest,
// which names the tables of one compaction.
const maxTornRecord = 4 << 10

// checkManifestRecords finds what Badger ignores: zeros, and a length far
// beyond the end of the file.
func checkManifestRecords(f io.Reader, size int64) error {
	r := bufio.NewReader(f)
	if _, err := r.Discard(8); err != nil {
		return errors.New("has no head")
	}
	empty := 0 // in a row: Badger writes one if nothing changed
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
		case n > left && left > maxTornRecord:
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
