package badger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// schemaVersion is what this package writes. A store with another number is left untouched.
const schemaVersion = 2

const versionPrefix = "remora store "

func (s *Store) versionPath() string { return filepath.Join(s.cfg.Dir, "VERSION") }

// checkSchema refuses what this package did not write; there is false where there is no store.
func (s *Store) checkSchema() (there bool, err error) {
	n, err := readVersion(s.versionPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case n > schemaVersion:
		return true, refuse("%s was written by a newer Remora (schema %d, this one knows %d): update Remora, or use another directory",
			s.cfg.Dir, n, schemaVersion)
	case n < schemaVersion:
		return true, refuse("%s was written by an older Remora (schema %d, this one knows %d alone): use that one, or another directory",
			s.cfg.Dir, n, schemaVersion)
	}
	return true, nil
}

func readVersion(path string) (int, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(string(content)), versionPrefix)
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 1 {
		return 0, refuse("damaged: %s does not hold the version of a store", path)
	}
	return n, nil
}

func writeVersion(path string) error {
	return writeDurably(path, []byte(versionPrefix+strconv.Itoa(schemaVersion)+"\n"))
}
