package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/remora-proxy/remora/api"
)

// Export writes all memories of the target, as they are read.
type Export struct {
	Format string    // "" = that of Remora
	To     io.Writer // nil = the session's output
}

// Run implements [Verb].
func (v *Export) Run(ctx context.Context, s *Session) error {
	q := url.Values{}
	if v.Format != "" {
		q.Set("format", v.Format)
	}
	bar, err := v.bar(ctx, s)
	if err != nil {
		return err
	}
	defer bar.done()
	res, err := s.open(ctx, ask{method: http.MethodGet, path: "/v1/export", query: q})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	to := v.To
	if to == nil {
		to = s.Out
	}
	if _, err := io.Copy(to, &counted{res.Body, bar}); err != nil {
		return errors.Join(errors.New("the export broke off: what was written is a part of it"), err)
	}
	return nil
}

// bar shows how many of the memories have come, about.
func (v *Export) bar(ctx context.Context, s *Session) (*progress, error) {
	if !s.live || v.To == nil && s.width > 0 { // not where it is written to the same terminal
		return nil, nil
	}
	total := int64(0)
	_, err := s.eachScope(ctx, func(_ api.Target, raw json.RawMessage) error {
		var u api.User
		err := json.Unmarshal(raw, &u)
		total += int64(u.Memories)
		return err
	})
	return s.progress("memories", total, false), err
}

// counted counts the lines that are read: there is one for each memory.
type counted struct {
	io.Reader
	bar *progress
}

// Read implements [io.Reader].
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bar.add(bytes.Count(p[:n], []byte{'\n'}))
	return n, err
}
