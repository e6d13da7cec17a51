package badger

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

const (
	asidePrefix   = "data.damaged-"
	missingPrefix = "data.missing-"
	asideTime     = "20060102T150405.000Z"
)

// SetAside renames data/ of a store that is not open, so that the next opening makes a new one beside it, and returns the
// new name. The keyring stays: what was set aside can be opened with it, and erasing a user makes that user's
// part of it unreadable as well.
func (s *Store) SetAside(at storage.Time) (string, error) {
	unlock, free, err := lockDir(s.dataDir())
	switch {
	case err != nil:
		return "", err
	case !free:
		return "", unavailable("another process has it")
	}
	defer unlock()
	to := filepath.Join(s.cfg.Dir, asidePrefix+at.Std().Format(asideTime))
	if err := os.Rename(s.dataDir(), to); err != nil {
		return "", fmt.Errorf("set store aside: %w", err)
	}
	s.mu.Lock()
	s.replaced = true
	s.attempts, s.damages, s.damage, s.reason = 0, 0, false, "not opened yet"
	s.mu.Unlock()
	return to, syncDir(s.cfg.Dir)
}

// Aside lists what SetAside has renamed in a store's directory, oldest first, and marks of data that went otherwise ([IsMissing]).
func Aside(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // then there is nothing to find
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), asidePrefix) || IsMissing(e.Name()) {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names
}

// IsMissing says that what [Aside] names is no store that was set aside, but the mark that data/ was gone when the store was opened.
func IsMissing(path string) bool { return strings.HasPrefix(filepath.Base(path), missingPrefix) }

// noteMissing leaves a mark where a store without data has keys of scopes, for these had data: from the next opening on nothing
// else would tell. It goes with a restore, or when a person takes it away. What SetAside renamed is told of as that.
func (s *Store) noteMissing(keys *keyring) error {
	if keys == nil {
		return nil
	}
	if there, err := exists(filepath.Join(s.dataDir(), badgerdb.ManifestFilename)); there || err != nil {
		return err
	}
	s.mu.Lock()
	replaced := s.replaced
	s.replaced, s.missing = false, ""
	s.mu.Unlock()
	scopes := 0
	if err := keys.each(func(hash16) error { scopes++; return fs.SkipAll }); err != nil {
		return err
	}
	if replaced || scopes == 0 {
		return nil
	}
	path := ""
	for _, aside := range Aside(s.cfg.Dir) {
		if IsMissing(aside) {
			path = aside // the opening after it was cut short
		}
	}
	if path == "" {
		path = filepath.Join(s.cfg.Dir, missingPrefix+now().Std().Format(asideTime))
		if err := writeDurably(path, nil); err != nil {
			return err
		}
	}
	s.log.Error("the memories of this store are missing: it has keys and no data, and begins anew; stop Remora and put the data back or restore a backup, or take the mark away",
		"data", s.dataDir(), "mark", path)
	s.mu.Lock()
	s.missing = path
	s.mu.Unlock()
	return nil
}

// forgetMissing takes the marks away: the data are back.
func (s *Store) forgetMissing() error {
	for _, path := range Aside(s.cfg.Dir) {
		if !IsMissing(path) {
			continue
		}
		if err := removeDurably(path); err != nil {
			return err
		}
	}
	return nil
}
