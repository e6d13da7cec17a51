package badger

import (
	"io/fs"
	"path/filepath"
	"strings"

	badgerdb "github.com/dgraph-io/badger/v4"
)

const missingPrefix = "data.missing-"

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
