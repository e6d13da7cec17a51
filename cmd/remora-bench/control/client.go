package control

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// client calls the REST face with the admin token, over connections that it
// keeps. It is safe for concurrent use.
type client struct {
	http  http.Client
	base  string
	token string
}

// maxConns is the most connections at a time.
const maxConns = 16

func newClient(addr, dataDir string) (*client, error) {
	token, err := os.ReadFile(filepath.Join(dataDir, "admin.token"))
	if err != nil {
		return nil, err
	}
	return &client{
		http: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxConns, DisableCompression: true}},
		base: "http://" + addr, token: strings.TrimSpace(string(token)),
	}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// request is a call of a verb.
type request struct {
	method, path string // with the query
	body         string // JSON; "" = none
	want         int    // the status of the answer; 0 = any that means success
}

// statusError is an answer with another status than the one that is wanted.
type statusError struct {
	request
	status int
	text   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s %s: status %d, want %d: %s", e.method, e.path, e.status, e.want, e.text)
}

// do makes a call and hands the answer to read. It returns how long all of that
// took.
func (c *client) do(ctx context.Context, r request, read func(io.Reader) error) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, strings.NewReader(r.body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	began := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != r.want && (r.want != 0 || resp.StatusCode/100 != 2) {
		var text bytes.Buffer
		_, _ = io.Copy(&text, io.LimitReader(resp.Body, 1<<10))
		return 0, &statusError{r, resp.StatusCode, text.String()}
	}
	if err := read(resp.Body); err != nil {
		return 0, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	return time.Since(began), nil
}

// call is do for an answer that nobody looks at.
func (c *client) call(ctx context.Context, r request) (time.Duration, error) {
	return c.do(ctx, r, func(body io.Reader) error {
		_, err := io.Copy(io.Discard, body)
		return err
	})
}
