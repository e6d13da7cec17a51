package badger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"

	"github.com/remora-proxy/remora/storage"
)

const (
	firstRetry = 200 * time.Millisecond
	maxRetry   = 15 * time.Second
	watchEvery = 5 * time.Second
)

// Run keeps the store open until ctx ends, then waits for the operations under
// way and closes it. While the store cannot be opened, Run logs each new reason
// once and retries after 0.2 s, doubling to 15 s. It returns the error of
// closing.
func (s *Store) Run(ctx context.Context) error {
	wait, logged := firstRetry, ""
	for {
		err := s.Open(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		h := s.Health()
		if h.Reason != logged {
			logged = h.Reason
			s.log.Error("memory is unavailable: the store does not open", "reason", h.Reason, "retry", !h.NoRetry)
		}
		if h.NoRetry {
			<-ctx.Done()
			return nil
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, maxRetry)
		case <-ctx.Done():
			return nil
		}
	}
	s.log.Info("store is open")
	s.space.watch(ctx, s.log)
	return s.Close()
}

// Open opens the store, or returns an error that wraps storage.ErrUnavailable.
// It is for tests and commands; a server uses Run. Opening an open store is an
// error.
func (s *Store) Open(ctx context.Context) error {
	s.mu.Lock()
	switch {
	case s.session != nil || s.opening:
		s.mu.Unlock()
		return unavailable("already open, or being opened")
	case s.failures.noRetry:
		s.mu.Unlock()
		return unavailable(s.reason)
	}
	s.opening = true
	s.mu.Unlock()

	se, err := s.openSession(ctx)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening = false
	if err != nil {
		s.reason = err.Error()
		s.failures.attempts++
		known, ok := errors.AsType[*openError](err)
		if ok && known.dataDamaged {
			s.failures.damaged++
		} else {
			s.failures.damaged = 0
		}
		s.failures.noRetry = ok && known.noRetry
		return unavailable(s.reason)
	}
	s.session, s.reason, s.failures = se, "", openFailures{}
	return nil
}

// Close waits for the operations under way and closes the store, which may be
// opened again. Closing a closed store does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	se := s.session
	if se == nil {
		s.mu.Unlock()
		return nil
	}
	s.session, s.reason, s.opening = nil, "closed", true // not to be opened before it is closed
	s.mu.Unlock()

	se.ops.Wait()
	err := se.db.Close()
	if err == nil {
		err = os.Remove(s.files.inventoryPath())
	}

	s.mu.Lock()
	s.opening = false
	s.mu.Unlock()
	return err
}

// UpdateInventory brings the list of Badger's files up to date by which the
// next opening finds missing ones. The caller calls it several times a second
// while the store is open; it writes only after changes. On a closed store it
// does nothing.
func (s *Store) UpdateInventory() error {
	s.mu.Lock()
	se := s.session
	if se != nil {
		se.ops.Add(1)
	}
	s.mu.Unlock()
	if se == nil {
		return nil
	}
	defer se.ops.Done()
	return se.inventory.update()
}

// SetAside renames data/ of a closed store, so that the next opening makes a
// new one, and returns the new path. The keyring stays: it still opens what was
// set aside, and erasing a user makes that user's part of it unreadable too.
func (s *Store) SetAside(at storage.Time) (string, error) {
	unlock, free, err := lockDir(s.dir.data())
	switch {
	case err != nil:
		return "", err
	case !free:
		return "", unavailable("another process has it open")
	}
	defer unlock()
	to := s.dir.timestamped(asidePrefix, at)
	if err := os.Rename(s.dir.data(), to); err != nil {
		return "", fmt.Errorf("set store aside: %w", err)
	}
	s.mu.Lock()
	s.replaced = true
	s.failures, s.reason = openFailures{}, "not opened yet"
	s.mu.Unlock()
	return to, syncDir(s.cfg.Dir)
}

// Scrub checks the checksums of every table and returns the names of those that
// fail: some of their memories may be missing from scans, because Badger's
// iterators skip a block that they cannot read. Each counts as damaged in
// [Health]. It may run while the store is open. It reads files instead of
// mapped memory, so a bad disk gives an error, no signal.
func (s *Store) Scrub(ctx context.Context) (damaged []string, err error) { return s.files.scrub(ctx) }

// openSession opens an existing store or makes a new one. Until it opens Badger
// it changes nothing that exists, so a wrong key or another schema leaves
// everything as it was.
func (s *Store) openSession(ctx context.Context) (*session, error) {
	if len(s.cfg.Key) == 0 && s.cfg.KeyFile == "" {
		return nil, refuse("no key: set storage.keyFile (REMORA_STORAGE_KEY_FILE) or storage.key to the key that seals %s", s.cfg.Dir)
	}
	if err := s.cfg.Validate(); err != nil {
		return nil, refuse("invalid configuration: %v", err)
	}
	if err := s.dir.prepare(); err != nil {
		return nil, explain(s.dir, err)
	}
	free, err := s.space.measureNow()
	if err != nil {
		return nil, explain(s.dir, err)
	}
	if free < s.cfg.MinFreeBytes {
		return nil, refuse("%s", s.space.reason(free))
	}
	keys, err := existingKeyring(s.cfg)
	if err != nil {
		return nil, explain(s.dir, err)
	}
	if err := makeDir(s.dir.data()); err != nil {
		return nil, explain(s.dir, err)
	}
	if err := checkWritable(s.dir.data()); err != nil {
		return nil, explain(s.dir, err)
	}
	if err := s.files.check(); err != nil {
		return nil, explainData(s.dir, err)
	}
	if err := s.markMissing(keys); err != nil {
		return nil, explain(s.dir, err)
	}
	db, err := s.openBadger() // which locks the directory
	if err != nil {
		return nil, explainData(s.dir, err)
	}
	se := newSession(db, s.cfg.sizes(), keys, s.space, s.files)
	if err := errors.Join(s.complete(ctx, se), se.inventory.update()); err != nil {
		return nil, explain(s.dir, errors.Join(err, db.Close()))
	}
	return se, nil
}

// checkWritable reports why no file can be created in dir, which Badger's
// errors do not.
func checkWritable(dir string) error {
	f, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// markMissing leaves a mark if there are keys of scopes, which had data, and no
// data: nothing else would show the loss from the next opening on. A restore or
// a person removes the mark. Data that SetAside renamed are not missing.
func (s *Store) markMissing(keys *keyring) error {
	if keys == nil {
		return nil
	}
	if there, err := exists(filepath.Join(s.dir.data(), badgerdb.ManifestFilename)); there || err != nil {
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
	path, err := s.dir.markMissing()
	if err != nil {
		return err
	}
	s.log.Error("the memories of this store are missing: it has keys but no data, and starts empty; stop Remora and put the data back or restore a backup, or remove the mark",
		"data", s.dir.data(), "mark", path)
	s.mu.Lock()
	s.missing = path
	s.mu.Unlock()
	return nil
}

func (s *Store) openBadger() (db *badgerdb.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			s.panics.Add(1)
			err = &openError{noRetry: true, dataDamaged: true, reason: fmt.Sprintf(
				"damaged: Badger panicked while it opened %s (%v); it is not tried again before a restart", s.dir.data(), p)}
		}
	}()
	size := s.cfg.sizes()
	if larger, err := s.files.logsExceed(size); err != nil {
		return nil, err
	} else if larger {
		if db, err = openBadger(s.dir.data(), largeSizes(), s.log, s.cfg.Fatal); err != nil {
			return nil, err
		}
		if err := db.Close(); err != nil { // which makes tables of the logs
			return nil, err
		}
	}
	return openBadger(s.dir.data(), size, s.log, s.cfg.Fatal)
}

// maxNewFiles limits how often Badger is opened again because it found an empty
// file, which it was creating when the process was killed. Badger fills the
// file in, fails all the same, and succeeds the next time. Removing such files
// before would race with a process that holds the lock.
const maxNewFiles = 4

func openBadger(dir string, size sizes, log *slog.Logger, fatal func(string)) (db *badgerdb.DB, err error) {
	for range maxNewFiles {
		o := badgerOptions(dir, size, log)
		o.Logger = badgerLog{log: log, dir: dir, fatal: fatal}
		db, err = badgerdb.Open(o)
		if err == nil || !strings.Contains(err.Error(), z.NewFile.Error()) {
			break
		}
	}
	return db, err
}

// complete makes a session ready to serve: it makes the keyring of a new store,
// finishes interrupted rotations and erasures, and removes left-over chunks.
func (s *Store) complete(ctx context.Context, se *session) (err error) {
	if se.keys == nil { // another process may have made it before this one got the lock
		if se.keys, err = existingKeyring(s.cfg); err != nil {
			return err
		}
	}
	if se.keys == nil {
		if err := s.makeKeyring(se); err != nil {
			return err
		}
	}
	se.keys.hasData = se.dataReporter(s.log)
	se.keys.population.maxUsers, se.keys.population.maxTenantUsers = s.cfg.MaxUsers, s.cfg.MaxTenantUsers
	if err := finishRotation(ctx, s.cfg, se.keys, s.log); err != nil {
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
	if err := se.loadGarbage(); err != nil {
		return err
	}
	return se.sweepChunks(ctx, []byte{levelChunk})
}

func (s *Store) makeKeyring(se *session) error {
	if se.any([][]byte{nil}) {
		return refuse("keyring missing: there is data in %s, but its keyring %s is missing; put it back: no new one is made where there is data",
			s.dir.data(), s.dir.keyring())
	}
	k, file, undo, err := s.cfg.makeKEK()
	if err != nil {
		return err
	}
	if se.keys, err = openKeyring(s.dir.keyring(), k, file, true); err != nil {
		if made, existsErr := exists(s.dir.secrets()); !made && existsErr == nil {
			err = errors.Join(err, undo()) // opening is retried, and would make another key each time
		}
	}
	return err
}
