package client

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress is a bar on the terminal for work that takes long; nil = there is
// none.
type progress struct{ bar *progressbar.ProgressBar }

// progress shows a bar if errors go to a terminal. total is in bytes or in
// pieces; -1 = unknown.
func (c *Console) progress(what string, total int64, bytes bool) *progress {
	if !c.live {
		return nil
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(c.Err), progressbar.OptionSetDescription(what), progressbar.OptionSetWidth(20),
		progressbar.OptionThrottle(100 * time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionShowBytes(bytes),
		progressbar.OptionSpinnerType(14), progressbar.OptionSetElapsedTime(true), progressbar.OptionSetRenderBlankState(true),
	}
	if total >= 0 {
		options = append(options, progressbar.OptionShowCount())
	}
	return &progress{progressbar.NewOptions64(total, options...)}
}

func (p *progress) add(n int) {
	if p != nil {
		_ = p.bar.Add(n) // beyond the total is an error
	}
}

// done takes the bar away.
func (p *progress) done() {
	if p != nil {
		_ = p.bar.Exit()
		_ = p.bar.Clear()
	}
}

// upload is a file that is sent.
type upload struct {
	file *os.File
	path string
	size int64

	mu   sync.Mutex
	bar  *progress
	then func() *progress // shows what follows once all is sent
}

// openUpload opens a file to send.
func openUpload(path string) (*upload, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &upload{file: f, path: path, size: info.Size()}, nil
}

// Read implements [io.Reader].
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.file.Read(p)
	u.mu.Lock()
	u.bar.add(n)
	u.mu.Unlock()
	if err == io.EOF {
		u.sent()
	}
	return n, err
}

// sent shows what follows.
func (u *upload) sent() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.then != nil {
		u.bar.done()
		u.bar, u.then = u.then(), nil
	}
}

// answered takes the bars away.
func (u *upload) answered() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bar.done()
	u.bar, u.then = nil, nil
}

// Close implements [io.Closer].
func (u *upload) Close() error { return u.file.Close() }
