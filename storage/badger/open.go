package badger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"

	"github.com/remora-proxy/remora/storage"
)

// openError is why a store does not open, in words for the person who has to mend it.
type openError struct {
	reason   string
	hopeless bool
	files    bool // it is of what files hold, in data/ or in the keyring
	damage   bool // the same, in data/
}

func (e *openError) Error() string { return e.reason }

func refuse(format string, args ...any) error {
	return &openError{reason: fmt.Sprintf(format, args...)}
}

// openSession opens what is on disk, or makes a new store. Up to the opening of Badger nothing that exists is changed,
// so a wrong key or another schema leaves all as it was.
func (s *Store) openSession(ctx context.Context) (*session, error) {
	if len(s.cfg.Key) == 0 && s.cfg.KeyFile == "" {
		return nil, refuse("no key: neither storage.keyFile (REMORA_STORAGE_KEY_FILE) nor storage.key says what %s is to be sealed with", s.cfg.Dir)
	}
	if err := s.cfg.Validate(); err != nil {
		return nil, refuse("invalid configuration: %v", err)
	}
	if err := s.prepareDir(); err != nil {
		return nil, s.explain(err)
	}
	free, err := s.space.now()
	if err != nil {
		return nil, s.explain(err)
	}
	if free < s.cfg.MinFreeBytes {
		return nil, refuse("%s", s.space.reason(free))
	}
	keys, err := s.existingKeyring()
	if err != nil {
		return nil, s.explain(err)
	}
	if err := makeDir(s.dataDir()); err != nil {
		return nil, s.explain(err)
	}
	if err := s.probe(); err != nil {
		return nil, s.explain(err)
	}
	if err := s.verify(); err != nil {
		return nil, s.explainData(err)
	}
	if err := s.noteMissing(keys); err != nil {
		return nil, s.explain(err)
	}
	db, err := s.openBadger() // from here on the directory is locked
	if err != nil {
		return nil, s.explainData(err)
	}
	se := &session{
		db: db, sizes: s.cfg.sizes(), keys: keys, space: s.space,
		turn: make(chan struct{}, 1), unfinished: make(map[hash16]struct{}),
	}
	if s.manifest.info != nil {
		se.read(s.manifest) // unless it has changed since
		s.manifest = knownManifest{}
	}
	if err := s.complete(ctx, se); err != nil {
		return nil, s.explain(errors.Join(err, db.Close()))
	}
	if err := s.noteFiles(se); err != nil {
		return nil, s.explain(errors.Join(err, db.Close()))
	}
	return se, nil
}

// prepareDir makes the directory of a new store, and checks the schema of one that is there.
func (s *Store) prepareDir() error {
	dir := s.cfg.Dir
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return refuse("%s is not a directory", dir)
	}
	if cut, err := s.restoreCutShort(); err != nil {
		return err
	} else if cut {
		return refuse("a restore was cut short: %s is there and %s is not; run `remora restore` again, or take it away to begin without memories",
			s.restoringDir(), s.dataDir())
	}
	if there, err := s.checkSchema(); there || err != nil {
		return err
	}
	for _, part := range []string{s.dataDir(), s.keyringDir()} {
		if there, err := exists(part); err != nil {
			return err
		} else if there {
			return refuse("damaged: %s is there but %s is missing", part, s.versionPath())
		}
	}
	if err := makeDir(dir); err != nil {
		return err
	}
	return writeVersion(s.versionPath())
}

// existingKeyring opens the keyring; nil if there is none yet.
func (s *Store) existingKeyring() (*keyring, error) {
	there, err := exists(filepath.Join(s.keyringDir(), "secrets"))
	if err != nil || !there {
		return nil, err
	}
	ids, err := secretsWrappedBy(filepath.Join(s.keyringDir(), "secrets"))
	if err != nil {
		return nil, err
	}
	k, file, err := s.cfg.loadKEK(ids)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse("key missing: there is data in %s, but its key file %s does not exist, nor is the key in %s; put the key back, no new one is made where there is data",
			s.cfg.Dir, s.cfg.KeyFile, s.cfg.keyFilesOf(ids))
	}
	if err != nil {
		return nil, err
	}
	keys, err := openKeyring(s.keyringDir(), k, file, false)
	if errors.Is(err, errWrongKey) {
		if len(s.cfg.Key) > 0 {
			return nil, refuse("wrong key: the configured key is not the one that %s was made with; nothing was touched", s.cfg.Dir)
		}
		return nil, refuse("wrong key: the key in %s is not the one that %s was made with, nor is that in %s; nothing was touched",
			s.cfg.KeyFile, s.cfg.Dir, s.cfg.keyFilesOf(ids))
	}
	return keys, err
}

// secretsWrappedBy are the ids of the keys that open a keyring, the newest last.
func secretsWrappedBy(path string) ([]kekID, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return wrappedByKeys("secrets", content)
}

// probe finds out whether files can be written, since Badger's own errors do not tell why they cannot.
func (s *Store) probe() error {
	f, err := os.CreateTemp(s.dataDir(), "probe-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (s *Store) openBadger() (db *badgerdb.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			s.panics.Add(1)
			err = &openError{hopeless: true, damage: true, reason: fmt.Sprintf(
				"damaged: Badger panicked while it opened %s (%v); not tried again before a restart", s.dataDir(), p)}
		}
	}()
	size := s.cfg.sizes()
	if outgrown, err := s.logsOutgrow(size); err != nil {
		return nil, err
	} else if outgrown {
		if db, err = s.openBadgerAs(largeSizes()); err != nil {
			return nil, err
		}
		if err := db.Close(); err != nil { // makes tables of the logs
			return nil, err
		}
	}
	return s.openBadgerAs(size)
}

func (s *Store) openBadgerAs(size sizes) (db *badgerdb.DB, err error) {
	for range maxNewFiles {
		o := badgerOptions(s.dataDir(), size, s.log)
		o.Logger = badgerLog{log: s.log, dir: s.dataDir(), fatal: s.cfg.Fatal}
		db, err = badgerdb.Open(o)
		if err == nil || !strings.Contains(err.Error(), z.NewFile.Error()) {
			break
		}
	}
	return db, err
}

// logsOutgrow says that a crash has left logs of larger memory tables: Badger ends the process when it reads one into a table
// that it doesn't fit.
func (s *Store) logsOutgrow(size sizes) (bool, error) {
	logs, err := filepath.Glob(filepath.Join(s.dataDir(), "*.mem"))
	if err != nil {
		return false, err
	}
	for _, path := range logs {
		info, err := os.Stat(path)
		if err != nil {
			return false, err
		}
		// One that was read is cut to its records, which take up to 1.4 times as much room in a table where they are small.
		if n := info.Size(); n > size.memTable/2 && n != size.fullLog() {
			return true, nil
		}
	}
	return false, nil
}

// maxNewFiles bounds how often Badger is opened again because it came upon a file without a byte: one that was being
// created when the process was killed. Badger fills in the file, fails all the same, and succeeds the next time. (Taking
// such files away before would race with the process that may hold the lock.)
const maxNewFiles = 4

// complete brings a just opened store into a state to serve: a new one gets its keyring, erasures that were cut short are finished, left-overs removed.
func (s *Store) complete(ctx context.Context, se *session) error {
	if se.keys == nil {
		keys, err := s.existingKeyring() // another process may have made it before this one got the lock
		if err != nil {
			return err
		}
		se.keys = keys
	}
	if se.keys == nil {
		if se.any([][]byte{nil}) {
			return refuse("keyring missing: there is data in %s, but its keyring %s is gone; put it back, no new one is made where there is data",
				s.dataDir(), s.keyringDir())
		}
		k, file, undo, err := s.cfg.makeKEK()
		if err != nil {
			return err
		}
		if se.keys, err = openKeyring(s.keyringDir(), k, file, true); err != nil {
			if made, existsErr := exists(filepath.Join(s.keyringDir(), "secrets")); !made && existsErr == nil {
				err = errors.Join(err, undo()) // this is tried again and again
			}
			return err
		}
	}
	se.keys.holdsData = s.orphans(se)
	if err := s.finishRotation(ctx, se.keys); err != nil {
		return err
	}
	marked, err := se.keys.marked()
	if err != nil {
		return err
	}
	for group := range slices.Chunk(marked, eraseGroup) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := se.finishErase(group, prefixesOf(group)); err != nil {
			return fmt.Errorf("finish erasure: %w", err)
		}
	}
	if err := se.loadWaste(); err != nil {
		return err
	}
	return se.sweepChunks(ctx, []byte{levelChunk})
}

// explainData is explain for what was met in Badger's files: what is wrong with them is damage.
func (s *Store) explainData(err error) error {
	told := s.explain(err)
	if known, ok := errors.AsType[*openError](told); ok {
		known.damage = known.damage || known.files
	}
	return told
}

// refusals are what the system says of itself and not of what lies in the files.
func refusals() []syscall.Errno {
	return []syscall.Errno{
		syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
		syscall.EAGAIN, syscall.EINTR, syscall.EBUSY, syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.ENODEV, syscall.ENXIO,
	}
}

// refusal finds what the system refused in an error of which Badger may have left no more than the text.
func refusal(err error) (is syscall.Errno, found bool) {
	if is, found = errors.AsType[syscall.Errno](err); found {
		return is, true
	}
	text := err.Error()
	all := refusals()
	i := slices.IndexFunc(all, func(e syscall.Errno) bool { return strings.Contains(text, e.Error()) })
	if i < 0 {
		return 0, false
	}
	return all[i], true
}

// badgerLocked is in Badger's error where another process has the store.
const badgerLocked = "Cannot acquire directory lock"

// explain turns an error into an openError that names the directory.
func (s *Store) explain(err error) error {
	if known, ok := errors.AsType[*openError](err); ok {
		return known
	}
	if of, ok := errors.AsType[*keyFileError](err); ok { // it says nothing of the store's own files
		return refuse("%s", of.text)
	}
	text := err.Error()
	no, refused := refusal(err)
	switch {
	case strings.Contains(text, badgerLocked), strings.Contains(text, "Cannot create lock file"):
		holder := "another process"
		if pid, err := os.ReadFile(filepath.Join(s.dataDir(), "LOCK")); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(string(pid))); err == nil {
				holder = fmt.Sprintf("another process (pid %d)", n)
			}
		}
		return refuse("locked: %s uses %s", holder, s.cfg.Dir)
	case errors.Is(err, fs.ErrPermission), no == syscall.EACCES, no == syscall.EPERM:
		return refuse("permission denied in %s: %v", s.cfg.Dir, err)
	case no == syscall.EROFS:
		return refuse("%s is on a read-only file system: %v", s.cfg.Dir, err)
	case no == syscall.ENOSPC, no == syscall.EDQUOT, strings.Contains(text, "no space left"):
		return refuse("no space left for %s: %v", s.cfg.Dir, err)
	case no == syscall.ENOTDIR:
		return refuse("not a directory on the way to %s: %v", s.cfg.Dir, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return refuse("opening %s was called off", s.cfg.Dir)
	case refused:
		return refuse("cannot open %s, the system refuses: %v", s.cfg.Dir, err)
	case errors.Is(err, storage.ErrDamaged):
		return &openError{files: true, reason: fmt.Sprintf("damaged: %v in %s", err, s.cfg.Dir)}
	}
	return &openError{files: true, reason: fmt.Sprintf("cannot open %s, it may be damaged: %v", s.cfg.Dir, err)}
}
