package badger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/remora-proxy/remora/storage"
)

// openError is why a store does not open, in words for the person who has to
// repair it.
type openError struct {
	reason      string
	noRetry     bool
	badFile     bool // the content of a file is to blame, in data/ or in the keyring
	dataDamaged bool // the same, in data/
}

func (e *openError) Error() string { return e.reason }

func refuse(format string, args ...any) error {
	return &openError{reason: fmt.Sprintf(format, args...)}
}

// explainData is explain for errors met in Badger's files.
func explainData(dir directory, err error) error {
	explained := explain(dir, err)
	if known, ok := errors.AsType[*openError](explained); ok {
		known.dataDamaged = known.dataDamaged || known.badFile
	}
	return explained
}

// badgerLocked is part of Badger's error if another process has the store open.
const badgerLocked = "Cannot acquire directory lock"

// explain turns an error into an openError that names the directory.
func explain(dir directory, err error) error {
	if known, ok := errors.AsType[*openError](err); ok {
		return known
	}
	if file, ok := errors.AsType[*keyFileError](err); ok { // not one of the store's own files
		return refuse("%s", file.text)
	}
	text := err.Error()
	errno, refused := refusal(err)
	switch {
	case strings.Contains(text, badgerLocked), strings.Contains(text, "Cannot create lock file"):
		holder := "another process"
		if pid, err := os.ReadFile(filepath.Join(dir.data(), "LOCK")); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(string(pid))); err == nil {
				holder = fmt.Sprintf("another process (pid %d)", n)
			}
		}
		return refuse("locked: %s uses %s", holder, dir)
	case errors.Is(err, fs.ErrPermission), errno == syscall.EACCES, errno == syscall.EPERM:
		return refuse("permission denied in %s: %v", dir, err)
	case errno == syscall.EROFS:
		return refuse("%s is on a read-only file system: %v", dir, err)
	case errno == syscall.ENOSPC, errno == syscall.EDQUOT, strings.Contains(text, "no space left"):
		return refuse("no space left for %s: %v", dir, err)
	case errno == syscall.ENOTDIR:
		return refuse("a parent of %s is not a directory: %v", dir, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return refuse("opening %s was canceled", dir)
	case refused:
		return refuse("cannot open %s, the system refuses: %v", dir, err)
	case errors.Is(err, storage.ErrDamaged):
		return &openError{badFile: true, reason: fmt.Sprintf("damaged: %v in %s", err, dir)}
	}
	return &openError{badFile: true, reason: fmt.Sprintf("cannot open %s, it may be damaged: %v", dir, err)}
}

// refusals are the errors that speak of the system and not of the content of
// files.
var refusals = []syscall.Errno{
	syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	syscall.EAGAIN, syscall.EINTR, syscall.EBUSY, syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.ENODEV, syscall.ENXIO,
}

// refusal finds the system's error in err, of which Badger may have kept the
// text alone.
func refusal(err error) (errno syscall.Errno, found bool) {
	if errno, found = errors.AsType[syscall.Errno](err); found {
		return errno, true
	}
	text := err.Error()
	i := slices.IndexFunc(refusals, func(e syscall.Errno) bool { return strings.Contains(text, e.Error()) })
	if i < 0 {
		return 0, false
	}
	return refusals[i], true
}
