package client

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// Server returns the base of a server's URLs, as it was given.
func Server(given string) (base string, err error) {
	u, err := url.Parse(given)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("must be a URL, such as https://remora.example:8788")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("must have no user, query or fragment; the token has a file")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// Remote returns a transport over the network.
func Remote() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	return t
}
