// Package client has the verbs of the control plane for people at a terminal
// and for scripts. Each is written once, against REST, whatever carries the
// requests: the network, the socket of a Remora on this machine, or a handler in
// this process.
//
// It promises:
//
//   - Text that came from conversations does not control the terminal.
//   - A token is sent to the given server and to nobody else: no redirect is
//     followed.
//   - What can't be undone is asked of the server only by verbs that say so.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
)

// Client calls the control plane for somebody.
type Client struct {
	transport http.RoundTripper
	base      string // what precedes the paths
	token     string // "" = the transport knows it
	whose     api.Target
}

// New returns a Client. base is a URL without a slash at its end. The names in
// whose are as answers show them; empty ones select everybody, or the default
// where a verb is about one person.
func New(transport http.RoundTripper, base, token string, whose api.Target) *Client {
	return &Client{transport, base, token, whose}
}

// Session is a Client with what a verb reads and writes.
type Session struct {
	*Client
	*Console
	JSON bool // writes what the control plane answers, an object a line
}

// Verb is a command with its arguments.
type Verb interface {
	Run(ctx context.Context, s *Session) error
}

// VerbFunc is a function as a [Verb].
type VerbFunc func(ctx context.Context, s *Session) error

// Run implements [Verb].
func (f VerbFunc) Run(ctx context.Context, s *Session) error { return f(ctx, s) }

// UsageError is a wrong call of a verb.
type UsageError string

func (u UsageError) Error() string { return string(u) }

// ask is one request to the control plane.
type ask struct {
	method string
	path   string // with escaped parts
	query  url.Values
	whose  *api.Target // nil = the client's
	match  string      // If-Match
	body   any         // is sent as JSON
	upload *upload     // is sent as it is
}

// maxAnswer bounds an answer that is read as a whole, in bytes.
const maxAnswer = 64 << 20

// call makes a request, and reads the answer into to unless it is nil.
func (c *Client) call(ctx context.Context, r ask, to any) error {
	res, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("the answer broke off: %w", err)
	case len(body) > maxAnswer:
		return errors.New("the answer is too large")
	case to == nil:
		return nil
	}
	if err := json.Unmarshal(body, to); err != nil {
		return errors.New("the answer can't be read: is this the control plane of a Remora?")
	}
	return nil
}

// How long a store that can't serve now is waited for, by what only reads: it
// may have been stopped for a moment, or be started again.
const (
	maxPatience = 5 * time.Second
	pause       = 200 * time.Millisecond
)

// open makes a request and returns the answer, whose body the caller closes. An
// answer other than success is an error.
func (c *Client) open(ctx context.Context, r ask) (*http.Response, error) {
	for began := time.Now(); ; {
		res, err := c.send(ctx, r)
		if r.method != http.MethodGet || !errors.Is(err, storage.ErrUnavailable) || time.Since(began) > maxPatience {
			return res, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// send is open without patience.
func (c *Client) send(ctx context.Context, r ask) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, body)
	if err != nil {
		return nil, err
	}
	whose := c.whose
	if r.whose != nil {
		whose = *r.whose
	}
	req.URL.RawQuery = withTarget(r.query, whose).Encode()
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.upload != nil {
		req.Body, req.ContentLength = r.upload, r.upload.size
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	if r.match != "" {
		req.Header.Set("If-Match", r.match)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.transport.RoundTrip(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("can't reach the control plane: %w", err)
	case res.StatusCode/100 != 2:
		defer res.Body.Close()
		return nil, failureOf(res)
	}
	return res, nil
}

// withTarget adds to a query whom it is about.
func withTarget(query url.Values, t api.Target) url.Values {
	out := url.Values{}
	for name, all := range query {
		out[name] = all
	}
	for name, part := range map[string]string{"tenant": t.Tenant, "app": t.App, "project": t.Project, "user": t.User} {
		if part != "" {
			out.Set(name, part)
		}
	}
	return out
}

// memoryPath returns the path of a memory, or of what is below it.
func memoryPath(id string, below ...string) string {
	return strings.Join(append([]string{"/v1/memories/" + url.PathEscape(id)}, below...), "/")
}

// listing is a page of anything.
type listing struct {
	Memories, Users, Exchanges []json.RawMessage
	Next                       string
	Damaged, Unreadable        int
}

// maxPage is the size of the pages that are asked for.
const maxPage = api.MaxPage

// each calls do for each element of a list, page by page, and page, if not nil,
// after each page. errEnough of do ends it.
func (c *Client) each(ctx context.Context, r ask, do func(json.RawMessage) error, page func(*listing) error) error {
	r.method = http.MethodGet
	query := withTarget(r.query, api.Target{})
	r.query = query
	for {
		var l listing
		if err := c.call(ctx, r, &l); err != nil {
			return err
		}
		for _, all := range [...][]json.RawMessage{l.Memories, l.Users, l.Exchanges} {
			for _, raw := range all {
				if err := do(raw); errors.Is(err, errEnough) {
					return nil
				} else if err != nil {
					return err
				}
			}
		}
		if page != nil {
			if err := page(&l); err != nil {
				return err
			}
		}
		if l.Next == "" {
			return nil
		}
		query.Set("cursor", l.Next)
	}
}

var errEnough = errors.New("enough")

// eachScope calls do for everybody of whom something is remembered, as far as
// the target names them. unreadable counts those whose names are lost.
func (c *Client) eachScope(ctx context.Context, do func(t api.Target, raw json.RawMessage) error) (unreadable int, err error) {
	err = c.each(ctx, ask{path: "/v1/users", query: limited(maxPage)}, func(raw json.RawMessage) error {
		var u api.User
		if err := json.Unmarshal(raw, &u); err != nil {
			return err
		}
		return do(api.Target{Tenant: u.Tenant, App: identity.Show(u.App), Project: identity.Show(u.Project), User: u.User}, raw)
	}, func(l *listing) error { unreadable += l.Unreadable; return nil })
	return unreadable, err
}

func limited(n int) url.Values { return url.Values{"limit": {fmt.Sprint(n)}} }

// everywhere calls do for the target, and if nothing is found there, for each
// tenant, unless one is named.
func (c *Client) everywhere(ctx context.Context, do func(t api.Target) error) error {
	err := do(c.whose)
	if !errors.Is(err, api.ErrNotFound) || c.whose.Tenant != "" {
		return err
	}
	seen := map[string]bool{}
	_, failed := c.eachScope(ctx, func(t api.Target, _ json.RawMessage) error {
		if seen[t.Tenant] {
			return nil
		}
		seen[t.Tenant] = true
		one := c.whose
		one.Tenant = t.Tenant
		if found := do(one); !errors.Is(found, api.ErrNotFound) {
			err = found
			return errEnough
		}
		return nil
	})
	if failed != nil && !errors.Is(failed, api.ErrNotFound) {
		return failed
	}
	return err
}

// memory reads a memory, also one that can be brought back. at is whose it is.
func (c *Client) memory(ctx context.Context, id string) (m api.Memory, raw json.RawMessage, at api.Target, err error) {
	if id, err = c.fullID(ctx, id, false); err != nil {
		return m, nil, at, err
	}
	err = c.everywhere(ctx, func(t api.Target) error {
		return c.call(ctx, ask{method: http.MethodGet, path: memoryPath(id), query: url.Values{"deleted": {"true"}}, whose: &t}, &raw)
	})
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	return m, raw, targetOf(&m), named(err, id)
}

// targetOf returns whose a memory is.
func targetOf(m *api.Memory) api.Target {
	return api.Target{Tenant: m.Tenant, App: identity.Show(m.App), Project: identity.Show(m.Project), User: m.User}
}
