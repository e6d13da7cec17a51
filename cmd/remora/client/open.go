package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// Open makes a link that opens the web page once, and prints it.
type Open struct {
	// Browse opens a URL in a browser; nil = the link is only printed.
	Browse func(ctx context.Context, url string) error
}

// Run implements [Verb].
func (v *Open) Run(ctx context.Context, s *Session) error {
	var link api.LoginLink
	err := s.call(ctx, ask{method: http.MethodPost, path: "/v1/login-links", whose: &api.Target{}}, &link)
	if errors.Is(err, api.ErrOff) {
		return errors.New("this Remora has no page to open: api.listen is off, or its address was taken when it started")
	}
	if err != nil {
		return err
	}
	if link.URL, err = s.reached(link.URL); err != nil {
		return err
	}
	if s.JSON {
		raw, err := json.Marshal(link)
		if err != nil {
			return err
		}
		return s.raw(raw)
	}
	fmt.Fprintln(s.Out, link.URL)
	fmt.Fprintf(s.Err, "valid once, until %s\n", minute(OneLine(link.ExpiresAt)))
	if v.Browse != nil && v.Browse(ctx, link.URL) != nil {
		fmt.Fprintln(s.Err, "no browser can be started here: open the link in one")
	}
	return nil
}

// reached returns a link as this client reaches it: a server knows the address
// that it listens on, but not by which name it is called.
func (c *Client) reached(link string) (string, error) {
	u, err := url.Parse(link)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" || !strings.HasPrefix(u.Path, "/") {
		return "", errors.New("the server made no link that can be opened")
	}
	if c.base != Local {
		return c.base + u.RequestURI(), nil
	}
	return u.String(), nil
}
