package badger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/remora-proxy/remora/storage"
)

// directory is the directory of a store:
//
//	VERSION                the schema of what is next to it
//	data/                  Badger's files
//	keyring/               the wrapped keys, see keyring
//	journal/               of the proxy's ledger, which alone uses it
//	data.restoring/        what a restore has loaded so far
//	data.damaged-<time>/   data that SetAside renamed
//	data.missing-<time>    a mark: there were keys but no data at that time
//	log.damaged-<time>-*   copies of damaged write-ahead logs
type directory string

func (d directory) path(name string) string { return filepath.Join(string(d), name) }

func (d directory) data() string      { return d.path("data") }
func (d directory) restoring() string { return d.path("data.restoring") }
func (d directory) keyring() string   { return d.path("keyring") }
func (d directory) secrets() string   { return filepath.Join(d.keyring(), "secrets") }
func (d directory) version() string   { return d.path("VERSION") }

const (
	asidePrefix   = "data.damaged-"
	missingPrefix = "data.missing-"
	pathTime      = "20060102T150405.000Z"
)

// timestamped returns a path that names a time.
func (d directory) timestamped(prefix string, at storage.Time) string {
	return d.path(prefix + at.Std().Format(pathTime))
}

// schemaVersion is the schema of this package. A store with another one is not
// touched.
const schemaVersion = 3

const versionPrefix = "remora store "

func (d directory) writeVersion() error {
	return writeDurably(d.version(), []byte(versionPrefix+strconv.Itoa(schemaVersion)+"\n"))
}

// checkSchema refuses a store of another schema; there is false if there is no
// store.
func (d directory) checkSchema() (there bool, err error) {
	content, err := os.ReadFile(d.version())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(string(content)), versionPrefix)
	n, err := strconv.Atoi(text)
	switch {
	case !ok || err != nil || n < 1:
		return false, refuse("damaged: %s does not hold the version of a store", d.version())
	case n > schemaVersion:
		return true, refuse("%s was written by a newer Remora (schema %d, this one supports %d): update Remora, or use another directory",
			d, n, schemaVersion)
	case n < schemaVersion:
		return true, refuse("%s was written by an older Remora (schema %d, this one supports only %d): use that version, or another directory",
			d, n, schemaVersion)
	}
	return true, nil
}

// prepare makes the directory of a new store, and checks the schema of an
// existing one.
func (d directory) prepare() error {
	if info, err := os.Stat(string(d)); err == nil && !info.IsDir() {
		return refuse("%s is not a directory", d)
	}
	if interrupted, err := d.restoreInterrupted(); err != nil {
		return err
	} else if interrupted {
		return refuse("a restore was interrupted: %s exists and %s does not; run `remora restore` again, or remove it to start without memories",
			d.restoring(), d.data())
	}
	if there, err := d.checkSchema(); there || err != nil {
		return err
	}
	for _, part := range []string{d.data(), d.keyring()} {
		if there, err := exists(part); err != nil {
			return err
		} else if there {
			return refuse("damaged: %s exists but %s is missing", part, d.version())
		}
	}
	if err := makeDir(string(d)); err != nil {
		return err
	}
	return d.writeVersion()
}

// restoreInterrupted reports whether a restore has begun and not ended.
func (d directory) restoreInterrupted() (bool, error) {
	begun, err := exists(d.restoring())
	if err != nil || !begun {
		return false, nil // the next check meets the same error
	}
	done, err := exists(d.data())
	return !done, err
}

// ListSetAside returns the paths in a store's directory of data that were set
// aside, oldest first, and of marks that data were missing ([IsMissingMark]).
func ListSetAside(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // nothing to find
	}
	var paths []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), asidePrefix) || IsMissingMark(e.Name()) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// IsMissingMark reports whether a path of [ListSetAside] is not a store, but
// the mark that data/ was missing when the store was opened.
func IsMissingMark(path string) bool { return strings.HasPrefix(filepath.Base(path), missingPrefix) }

// markMissing returns the last mark that data are missing, made now if there is
// none.
func (d directory) markMissing() (path string, err error) {
	for _, mark := range ListSetAside(string(d)) {
		if IsMissingMark(mark) {
			path = mark // the opening that made it was interrupted
		}
	}
	if path != "" {
		return path, nil
	}
	path = d.timestamped(missingPrefix, now())
	return path, writeDurably(path, nil)
}

// removeMissingMarks is called when the data are back.
func (d directory) removeMissingMarks() error {
	for _, path := range ListSetAside(string(d)) {
		if !IsMissingMark(path) {
			continue
		}
		if err := removeDurably(path); err != nil {
			return err
		}
	}
	return nil
}

// existingKeyring opens the keyring of a store; nil if it has none.
func existingKeyring(cfg Config) (*keyring, error) {
	dir := directory(cfg.Dir)
	content, err := os.ReadFile(dir.secrets())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ids, err := wrappingKeys("secrets", content)
	if err != nil {
		return nil, err
	}
	k, file, err := cfg.loadKEK(ids)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse("key missing: there is data in %s, but its key file %s does not exist, nor does %s; put the key back: no new one is made where there is data",
			dir, cfg.KeyFile, cfg.keyFilesOf(ids))
	}
	if err != nil {
		return nil, err
	}
	keys, err := openKeyring(dir.keyring(), k, file, false)
	if errors.Is(err, errWrongKey) {
		if len(cfg.Key) > 0 {
			return nil, refuse("wrong key: the configured key is not the one that %s was made with; nothing was changed", dir)
		}
		return nil, refuse("wrong key: neither the key in %s nor that in %s is the one that %s was made with; nothing was changed",
			cfg.KeyFile, cfg.keyFilesOf(ids), dir)
	}
	return keys, err
}

// openKeyringOf opens the keyring of a store that may be open: files of a
// keyring are only ever replaced whole.
func openKeyringOf(cfg Config) (*keyring, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	keys, err := existingKeyring(cfg)
	if err != nil {
		return nil, explain(directory(cfg.Dir), err)
	}
	if keys == nil {
		return nil, refuse("there is no keyring in %s", cfg.Dir)
	}
	return keys, nil
}

func damagedFile(path, what string) error {
	return fmt.Errorf("%s %s: %w", filepath.Base(path), what, storage.ErrDamaged)
}
