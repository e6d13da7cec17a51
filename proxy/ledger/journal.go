package ledger

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// journal is a sequence of files into which rows go before the store has them:
// appending to a file takes microseconds, a commit of the store milliseconds.
// Whatever happens to this process or to the store's, what was appended is read
// again by the next one. Like the store's volatile buckets it isn't synced: if
// the machine goes down, the newest rows may be lost.
//
// A file begins with a magic string and a random salt, from which its key is
// derived together with the installation's secret. Then follow frames: a length
// and what is sealed (AES-256-GCM), numbered from 0. Once the store has its rows
// the salt is overwritten and the file removed.
//
// All files are written by one goroutine, so that a disk that hangs holds up
// nobody.
type journal struct {
	dir    string
	secret []byte

	mu      sync.Mutex
	rows    []byte // to be written next
	batch   *batch // that they belong to; nil = there are none
	spare   []byte // room for the next rows
	number  int    // of the file that they go to
	done    int    // files with smaller numbers are to be removed
	written int64  // bytes, since the store had everything
	closed  bool
	idle    chan struct{} // closed when all that is done is removed; nil = nobody waits
	wake    chan struct{}
	ended   chan struct{} // closed when the goroutine has ended

	// The goroutine's own:

	file  *journalFile // the one that is open
	kept  []int        // numbers of the files that exist, in order
	retry time.Time    // nothing is written before, since a write has failed
}

// batch is what is written at once. done is closed then; failed says that it
// could not be written.
type batch struct {
	done   chan struct{}
	failed bool
}

func (b *batch) isDone() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

const (
	journalMagic  = "remora ledger journal 1\n"
	journalSuffix = ".journal"
	saltSize      = 32
	maxRows       = 1 << 20  // bytes that wait for the goroutine; more are not written
	maxJournal    = 32 << 20 // bytes of all files; more are not written
)

var errJournal = errors.New("unreadable ledger journal")

// openJournal hands what the files in dir hold to restore, oldest first, with
// the number of its file, and continues them. unreadable counts files of which
// a part could not be read.
func openJournal(dir string, secret []byte, restore func(rows []byte, number int)) (j *journal, unreadable int, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, 0, err
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	j = &journal{dir: dir, secret: bytes.Clone(secret), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	for _, e := range names {
		text, ours := strings.CutSuffix(e.Name(), journalSuffix)
		if n, err := strconv.Atoi(text); ours && err == nil && n >= 0 {
			j.kept = append(j.kept, n)
		}
	}
	slices.Sort(j.kept)
	for _, n := range j.kept {
		if err := j.read(n, func(rows []byte) { restore(rows, n) }); err != nil {
			unreadable++
		}
		j.number = n + 1
	}
	if len(j.kept) > 0 {
		j.done = j.kept[0]
	}
	go j.run()
	return j, unreadable, nil
}

func (j *journal) path(n int) string {
	return filepath.Join(j.dir, fmt.Sprintf("%010d%s", n, journalSuffix))
}

// read reads a file up to a frame that is cut or can't be opened.
func (j *journal) read(n int, each func(rows []byte)) error {
	f, err := os.Open(j.path(n))
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxJournal+maxRows))
	if err != nil {
		return err
	}
	if len(b) < len(journalMagic)+saltSize || string(b[:len(journalMagic)]) != journalMagic {
		return errJournal
	}
	b = b[len(journalMagic):]
	seal, err := j.sealer(b[:saltSize])
	if err != nil {
		return err
	}
	b = b[saltSize:]
	for frame := uint64(0); len(b) > 4; frame++ {
		size := binary.BigEndian.Uint32(b)
		if b = b[4:]; uint64(size) > uint64(len(b)) {
			return nil // the process ended while it wrote
		}
		rows, err := seal.Open(nil, frameNonce(frame), b[:size], nil)
		if err != nil {
			return errJournal
		}
		each(rows)
		b = b[size:]
	}
	return nil
}

func (j *journal) sealer(salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, j.secret, salt, "remora ledger journal v1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// frameNonce numbers the frames of a file, whose key is used for nothing else.
func frameNonce(n uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 4, 12), n)
}

// append queues a row and returns the batch that it is in, and the number of
// its file. It returns nil if the row will not be written.
func (j *journal) append(row func([]byte) []byte) (b *batch, number int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.rows) >= maxRows || j.written+int64(len(j.rows)) >= maxJournal || j.closed {
		return nil, j.number
	}
	j.rows = row(j.rows)
	if j.batch == nil {
		j.batch = &batch{done: make(chan struct{})}
	}
	j.signal()
	return j.batch, j.number
}

// next lets rows that follow go to another file, so that the files before it
// can be removed once the store has what is in them.
func (j *journal) next() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.number++
}

// release removes the files before number. all says that the store has
// everything.
func (j *journal) release(number int, all bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if all {
		number, j.written = j.number, 0
		if j.batch != nil { // no need to write them any more
			close(j.batch.done)
			j.rows, j.batch = j.rows[:0], nil
		}
	}
	if number > j.done {
		j.done = number
		if !j.closed {
			j.signal()
		}
	}
}

// settle waits until the files that were released are removed.
func (j *journal) settle(ctx context.Context) {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return
	}
	if j.idle == nil {
		j.idle = make(chan struct{})
	}
	idle := j.idle
	j.signal()
	j.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// signal wakes the goroutine. Needs j.mu.
func (j *journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// close writes what is queued, and waits for it for at most limit.
func (j *journal) close(limit time.Duration) {
	j.mu.Lock()
	if !j.closed {
		j.closed = true
		close(j.wake)
	}
	j.mu.Unlock()
	select {
	case <-j.ended:
	case <-time.After(limit):
	}
}

func (j *journal) run() {
	defer close(j.ended)
	for range j.wake {
		j.turn()
	}
	j.turn()
	if j.file != nil {
		_ = j.file.Close()
	}
}

// turn writes what is queued and removes what is done.
func (j *journal) turn() {
	j.mu.Lock()
	rows, b, number, done, idle := j.rows, j.batch, j.number, j.done, j.idle
	j.rows, j.batch, j.idle = j.spare[:0], nil, nil
	j.mu.Unlock()
	if idle != nil {
		defer close(idle)
	}
	if b != nil {
		n, err := j.write(rows, number)
		b.failed = err != nil
		close(b.done)
		j.mu.Lock()
		j.written += int64(n)
		j.spare = rows[:0]
		j.mu.Unlock()
	}
	for len(j.kept) > 0 && j.kept[0] < done {
		if !j.remove(j.kept[0]) {
			return // tried again with the next rows
		}
		j.kept = j.kept[1:]
	}
}

// write appends a frame to the file of this number, or of a later one if that
// file is broken: what follows a frame that was cut could not be read.
func (j *journal) write(rows []byte, number int) (n int, err error) {
	if now := time.Now(); now.Before(j.retry) {
		return 0, errJournal
	} else if j.file != nil && (j.file.number < number || j.file.broken) {
		_ = j.file.Close()
		j.file = nil
	}
	if j.file == nil {
		if j.file, err = j.create(number); err != nil {
			j.retry = time.Now().Add(retryDelay)
			return 0, err
		}
	}
	f := j.file
	b := append(f.room[:0], 0, 0, 0, 0)
	b = f.seal.Seal(b, frameNonce(f.frames), rows, nil)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	f.room, f.frames = b, f.frames+1
	if _, err := f.Write(b); err != nil {
		f.broken, j.retry = true, time.Now().Add(retryDelay)
		return 0, err
	}
	return len(b), nil
}

// journalFile is a file that is being written.
type journalFile struct {
	*os.File
	number int
	seal   cipher.AEAD
	frames uint64
	room   []byte
	broken bool
}

// create creates the file of this number, or of the next one that does not exist.
func (j *journal) create(number int) (*journalFile, error) {
	j.mu.Lock()
	if n := len(j.kept); n > 0 {
		number = max(number, j.kept[n-1]+1)
	}
	j.number = max(j.number, number)
	j.mu.Unlock()
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt)
	seal, err := j.sealer(salt)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(j.path(number), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	j.kept = append(j.kept, number)
	if _, err = f.Write(append([]byte(journalMagic), salt...)); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &journalFile{File: f, number: number, seal: seal}, nil
}

// remove makes a file unreadable, and then removes it.
func (j *journal) remove(n int) bool {
	if j.file != nil && j.file.number == n {
		_ = j.file.Close()
		j.file = nil
	}
	if f, err := os.OpenFile(j.path(n), os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteAt(make([]byte, saltSize), int64(len(journalMagic)))
		_ = f.Close()
	}
	err := os.Remove(j.path(n))
	return err == nil || errors.Is(err, os.ErrNotExist)
}
