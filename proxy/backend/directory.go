package backend

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

// directory has the curated files of one person. It opens regular files only,
// and follows no link that leads out of it.
type directory string

// readFile is a ReadFile. It returns a little more than MaxCuratedFile of a
// longer file.
func (d directory) readFile(_ context.Context, _ storage.Scope, name string) (string, error) {
	content, err := d.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", storage.ErrNotFound
	case err != nil:
		return "", fmt.Errorf("read curated file: %w", err)
	}
	return string(content), nil
}

func (d directory) read(name string) ([]byte, error) {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait
		return nil, errors.New("is no regular file")
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxCuratedFile+1))
}

// conversations remembers which conversations have begun: the newest
// maxConversations, by hash.
type conversations struct {
	mu     sync.Mutex
	hashes [][16]byte // oldest first
}

const maxConversations = 4096

func conversationHash(r *recall.Request) (h [16]byte) {
	s := r.Scope
	sum := sha256.Sum256([]byte(strings.Join([]string{s.Tenant, s.App, s.Project, s.User, r.Conversation}, "\x00")))
	copy(h[:], sum[:])
	return h
}

func (c *conversations) has(r *recall.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.hashes, conversationHash(r))
}

func (c *conversations) add(r *recall.Request) {
	h := conversationHash(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.hashes, h) {
		return
	}
	if len(c.hashes) == maxConversations {
		c.hashes = slices.Delete(c.hashes, 0, maxConversations/4)
	}
	c.hashes = append(c.hashes, h)
}
