package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

// Bounds of exports that were sent to be imported.
const (
	maxUploads = 4  // files at a time; more are refused
	maxResults = 16 // imports that are over and can be read still; beyond it the oldest goes

	// uploadTTL is how long a file waits to be imported, and how long the result
	// of an import can be read.
	uploadTTL = 30 * time.Minute
)

// What an upload is refused with. They are all api.ErrBusy.
var (
	errUploadsFull   = fmt.Errorf("%d files are waiting to be imported already; try again in a few minutes: %w", maxUploads, api.ErrBusy)
	errUploadRunning = fmt.Errorf("your last file is still being read or imported; wait until it is done: %w", api.ErrBusy)
	errImportRunning = fmt.Errorf("another import is running; try again when it is done: %w", api.ErrBusy)
	errClosing       = fmt.Errorf("this Remora is stopping: %w", api.ErrBusy)
)

// States of an upload.
const (
	uploadComing  = iota // its bytes, or the count of what is in it
	uploadReady          // to be imported, or thrown away
	uploadRunning        // it is being imported
	uploadDone
)

// owner is whose an upload is: a browser that has logged in, or nobody's but a
// principal's whose requests carry their key.
type owner struct {
	session *session
	p       api.Principal
}

// upload is an export that somebody has sent.
type upload struct {
	id     string
	owner  owner
	whose  api.Target
	format string // that was chosen, "" = detected
	name   string // of the file

	// The rest is guarded by uploads.mu. While the file is coming, the request
	// that brings it alone uses it.
	state    int
	file     *request.Upload  // nil = it is coming, or removed
	found    api.ImportReport // what is in it
	done     api.ImportReport // what has become of it so far
	problem  error            // of the last import, nil = none
	finished time.Time
	timer    *time.Timer
}

// uploads are the exports that were sent. An owner has one at a time: a newer
// one replaces it. A file is removed when it is imported, replaced, thrown away,
// after uploadTTL, and when the program ends. One import runs at a time.
type uploads struct {
	log  *slog.Logger
	ctx  context.Context // ends with the program
	stop context.CancelFunc

	mu     sync.Mutex
	byID   map[string]*upload
	work   sync.WaitGroup // uploads that are coming, and the import that runs
	closed bool
}

// Close ends the import that runs, if one does, waits for it, and removes all
// files that were sent to be imported. No more are accepted.
func (h *Handler) Close() { h.uploads.close() }

func (u *uploads) open(log *slog.Logger) {
	u.log, u.byID = log, map[string]*upload{}
	u.ctx, u.stop = context.WithCancel(context.Background())
}

func (u *uploads) close() {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.stop()
	u.work.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, up := range u.byID {
		u.remove(up)
	}
}

// reserve makes room for an upload, in place of the owner's last. The caller
// calls ready or drop when it is there.
func (u *uploads) reserve(o owner, whose api.Target, format string) (*upload, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, errClosing
	}
	files := 0
	var last *upload
	for _, up := range u.byID {
		switch {
		case up.owner == o:
			last = up
		case up.state != uploadDone:
			files++
		}
	}
	switch {
	case last != nil && (last.state == uploadComing || last.state == uploadRunning):
		return nil, errUploadRunning
	case files >= maxUploads:
		return nil, errUploadsFull
	}
	if last != nil {
		u.remove(last)
	}
	id, _ := newSecret()
	up := &upload{id: id, owner: o, whose: whose, format: format}
	u.byID[id] = up
	u.work.Add(1)
	return up, nil
}

// ready keeps an upload that has come, with what is in it.
func (u *uploads) ready(up *upload, found api.ImportReport) {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer u.work.Done()
	up.state, up.name, up.found = uploadReady, up.file.Name(), found
	up.timer = time.AfterFunc(uploadTTL, func() { u.expire(up) })
}

// drop gives up an upload that did not come. What has come of its file is
// removed.
func (u *uploads) drop(up *upload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer u.work.Done()
	u.remove(up)
}

// remove forgets an upload and removes its file. The caller holds mu.
func (u *uploads) remove(up *upload) {
	delete(u.byID, up.id)
	if up.timer != nil {
		up.timer.Stop()
	}
	u.removeFile(up)
}

func (u *uploads) removeFile(up *upload) {
	if up.file == nil {
		return
	}
	if err := up.file.Remove(); err != nil {
		u.log.Warn("an upload is not removed", "error", err)
	}
	up.file = nil
}

// expire removes an upload whose time is over, unless it is being imported.
func (u *uploads) expire(up *upload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if up.state != uploadRunning && u.byID[up.id] == up {
		u.remove(up)
	}
}

// find returns a copy of an upload as it is now. What is not the owner's is
// api.ErrNotFound.
func (u *uploads) find(id string, o owner) (upload, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	up := u.byID[id]
	if up == nil || up.owner != o || up.state == uploadComing {
		return upload{}, api.ErrNotFound
	}
	return *up, nil
}

// discard removes an upload that is not being imported.
func (u *uploads) discard(id string, o owner) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	up := u.byID[id]
	switch {
	case up == nil || up.owner != o:
		return api.ErrNotFound
	case up.state == uploadComing || up.state == uploadRunning:
		return errUploadRunning
	}
	u.remove(up)
	return nil
}

// importer imports a file, and calls progress now and then.
type importer func(ctx context.Context, path string, progress func(api.ImportReport)) (api.ImportReport, error)

// start imports an upload in the background, until the program ends.
func (u *uploads) start(id string, o owner, run importer, now func() time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	up := u.byID[id]
	switch {
	case u.closed:
		return errClosing
	case up == nil || up.owner != o || up.state == uploadComing:
		return api.ErrNotFound
	case up.state != uploadReady: // somebody has pressed the button twice
		return nil
	}
	for _, other := range u.byID {
		if other.state == uploadRunning {
			return errImportRunning
		}
	}
	up.state, up.problem, up.done = uploadRunning, nil, api.ImportReport{}
	path := up.file.Path
	u.work.Go(func() {
		done, err := u.guarded(run, path, func(r api.ImportReport) {
			u.mu.Lock()
			defer u.mu.Unlock()
			up.done = copyOf(r)
		})
		u.finish(up, copyOf(done), err, now())
	})
	return nil
}

var errPanicked = errors.New("an import panicked")

// guarded has a panic end nothing but the import.
func (u *uploads) guarded(run importer, path string, progress func(api.ImportReport)) (done api.ImportReport, err error) {
	defer func() {
		if recover() != nil { // its value may hold content
			u.log.Error("panic", "in", "import", "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	return run(u.ctx, path, progress)
}

// finish keeps what came of an import. After an error the file stays, so that it
// can be tried again.
func (u *uploads) finish(up *upload, done api.ImportReport, err error, now time.Time) {
	if err != nil && u.ctx.Err() == nil {
		u.log.Warn("an import broke off", "error", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	up.done, up.problem, up.finished, up.state = done, err, now, uploadReady
	if err == nil {
		up.state = uploadDone
		u.removeFile(up)
	}
	up.timer.Reset(uploadTTL)
	var over []*upload
	for _, other := range u.byID {
		if other.state == uploadDone {
			over = append(over, other)
		}
	}
	slices.SortFunc(over, func(a, b *upload) int { return cmp.Compare(b.finished.UnixNano(), a.finished.UnixNano()) })
	for len(over) > maxResults {
		u.remove(over[len(over)-1])
		over = over[:len(over)-1]
	}
}

// copyOf copies a report that is still being counted.
func copyOf(r api.ImportReport) api.ImportReport {
	r.Refused, r.Rejected = maps.Clone(r.Refused), maps.Clone(r.Rejected)
	return r
}
