package httpclient

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
)

// UpstreamConfig describes one server that requests are sent to.
type UpstreamConfig struct {
	// Name appears in logs, traces and the ledger's learned fallbacks. Unique,
	// non-empty.
	Name string
	// URL is http or https, a host, and optionally a path. It has no user,
	// query or fragment, because keys belong in headers.
	//
	// The path is put in front of every request's path without duplicating
	// common segments: where its last segments are the request's first ones,
	// they appear once. https://host/v1 and https://host serve a client's
	// /v1/chat/completions alike, and https://host/openai/v1 makes it
	// /openai/v1/chat/completions.
	URL string
	// Paths are the prefixes that the upstream serves, in whole segments:
	// "/v1/messages" takes /v1/messages and /v1/messages/count_tokens, but not
	// /v1/messagesx. "/" takes what no other prefix does. The longest prefix
	// wins.
	Paths []string
	// Headers are names of request headers. A request with one of them comes
	// here if only "/" covers its path. They are for paths that several APIs
	// have, such as /v1/models. No two upstreams may name the same.
	Headers []string
	// CAFile is a PEM file of the certificate authorities to trust for this
	// upstream instead of the system's; "" = the system's.
	CAFile string
}

// DefaultUpstreams returns Anthropic's API for its messages and whatever else
// its clients ask for, and OpenAI's for the rest.
func DefaultUpstreams() []UpstreamConfig {
	return []UpstreamConfig{
		{
			Name: "anthropic", URL: "https://api.anthropic.com",
			Paths: []string{"/v1/messages"}, Headers: []string{"Anthropic-Version"},
		},
		{Name: "gemini", URL: "https://generativelanguage.googleapis.com", Paths: []string{"/v1beta"}},
		{Name: "openai", URL: "https://api.openai.com", Paths: []string{"/"}},
	}
}

// Validate returns all problems of c, without touching the network or the file
// system.
func (c UpstreamConfig) Validate() error { return errors.Join(c.problems()...) }

func (c UpstreamConfig) problems() (errs []error) {
	if c.Name == "" {
		errs = append(errs, errors.New("name: must not be empty"))
	}
	if _, err := parseUpstreamURL(c.URL); err != nil {
		errs = append(errs, fmt.Errorf("url: %w", err))
	}
	if len(c.Paths) == 0 {
		errs = append(errs, errors.New(`paths: must name at least one prefix; "/" takes every path`))
	}
	for i, p := range c.Paths {
		if !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "?# ") {
			errs = append(errs, fmt.Errorf("paths[%d]: must begin with / and hold no ?, # or space", i))
		}
	}
	for i, name := range c.Headers {
		if name == "" || strings.ContainsAny(name, " \t:\r\n") || isControl(name) {
			errs = append(errs, fmt.Errorf("headers[%d]: must be a header name, and none of Remora's own", i))
		}
	}
	return errs
}

// ValidateUpstreams checks each upstream, and that they do not conflict.
func ValidateUpstreams(cfgs []UpstreamConfig) error {
	var errs []error
	if len(cfgs) == 0 {
		errs = append(errs, errors.New("upstreams: must hold at least one"))
	}
	names, paths, headers := map[string]int{}, map[string]int{}, map[string]int{}
	for i, c := range cfgs {
		for _, err := range c.problems() {
			errs = append(errs, fmt.Errorf("upstreams[%d].%w", i, err))
		}
		if first, dup := names[c.Name]; dup && c.Name != "" {
			errs = append(errs, fmt.Errorf("upstreams[%d].name: is that of upstreams[%d]", i, first))
		} else {
			names[c.Name] = i
		}
		for j, p := range c.Paths {
			p = trimPrefix(p)
			if first, dup := paths[p]; dup {
				errs = append(errs, fmt.Errorf("upstreams[%d].paths[%d]: is taken by upstreams[%d]", i, j, first))
			} else {
				paths[p] = i
			}
		}
		for j, name := range c.Headers {
			name = http.CanonicalHeaderKey(name)
			if first, dup := headers[name]; dup {
				errs = append(errs, fmt.Errorf("upstreams[%d].headers[%d]: is taken by upstreams[%d]", i, j, first))
			} else {
				headers[name] = i
			}
		}
	}
	return errors.Join(errs...)
}

// parseUpstreamURL parses a configured URL. Its errors never quote it, because
// a mistaken URL may contain a key.
func parseUpstreamURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("must name a host")
	case strings.ContainsRune(u.Host, ','):
		return nil, errors.New("must be one URL: several are upstreams of their own")
	case u.User != nil:
		return nil, errors.New("must not hold a user or password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("must not hold a query or fragment")
	}
	return u, nil
}

// Upstream is a server that requests are sent to. It is immutable.
type Upstream struct {
	Name  string
	URL   *url.URL
	Paths []string

	// base is the escaped path of URL without a trailing slash; overlaps are
	// its suffixes that begin at a segment, longest first ("/openai/v1",
	// "/v1").
	base     string
	overlaps []string

	// plain is nil if transport carries the exchanges: over TLS, through a
	// proxy, and on systems where ownClient is false. Tunnels need HTTP/1.1
	// even if the upstream prefers another version, so they have a transport of
	// their own.
	plain     *client
	transport *http.Transport
	upgrades  *http.Transport
}

// Roots returns the authorities of CAFile, or nil if none is named, which means
// the system's.
func (c UpstreamConfig) Roots() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	pem, err := readAuthorities(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read caFile: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("caFile %s holds no PEM certificate", c.CAFile)
	}
	return roots, nil
}

// maxAuthorities is the maximum size of a CA file, in bytes. The system's own
// list is a quarter of a megabyte.
const maxAuthorities = 16 << 20

// readAuthorities reads a regular file, or the target of a link to one. Others,
// such as a pipe, may have no end, or wait for a writer.
func readAuthorities(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", name)
	case info.Size() > maxAuthorities:
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxAuthorities)
	}
	return os.ReadFile(name)
}

// openUpstream reads the CA file and builds the transports. It dials nothing.
func openUpstream(c UpstreamConfig, t TransportConfig) (*Upstream, error) {
	u, err := parseUpstreamURL(c.URL)
	if err != nil {
		return nil, fmt.Errorf("upstream %s: url: %w", c.Name, err)
	}
	roots, err := c.Roots()
	if err != nil {
		return nil, fmt.Errorf("upstream %s: %w", c.Name, err)
	}
	up := &Upstream{
		Name:  c.Name,
		URL:   u,
		Paths: slices.Clone(c.Paths),
		base:  strings.TrimRight(u.EscapedPath(), "/"),
	}
	up.transport = newTransport(t, u.Scheme, roots)
	up.upgrades = newUpgradeTransport(t, u.Scheme, roots)
	if ownClient && u.Scheme == "http" && !t.ProxyFromEnvironment {
		if up.plain, err = newClient(u, t); err != nil {
			return nil, fmt.Errorf("upstream %s: url: %w", c.Name, err)
		}
	}
	for i := range len(up.base) {
		if up.base[i] == '/' {
			up.overlaps = append(up.overlaps, up.base[i:])
		}
	}
	return up, nil
}

func (u *Upstream) closeIdle() {
	if u.plain != nil {
		u.plain.idle.closeAll()
	}
	u.transport.CloseIdleConnections()
	u.upgrades.CloseIdleConnections()
}

// target returns where in goes: the configured scheme and host, the joined
// path, and the path and query exactly as the client wrote them. The Host
// header and an absolute-form target are ignored. It is not ok if the target
// has no path.
func (u *Upstream) target(in *http.Request) (target url.URL, ok bool) {
	target = url.URL{Scheme: u.URL.Scheme, Host: u.URL.Host}
	if in.RequestURI == "*" {
		target.Opaque = "*"
		return target, true
	}
	path := rawPath(in)
	if !strings.HasPrefix(path, "/") {
		return target, false
	}
	target.RawQuery = in.URL.RawQuery
	target.ForceQuery = in.URL.ForceQuery
	if strings.IndexByte(target.RawQuery, ' ') >= 0 {
		// Only HTTP/2 can carry a space here. In an HTTP/1.1 request line it
		// would end the target.
		target.RawQuery = strings.ReplaceAll(target.RawQuery, " ", "%20")
	}
	path = u.join(path)
	if strings.HasPrefix(path, "//") {
		// url.URL would read this as an opaque authority, so it is sent as a
		// path. Escaping may change it; RawPath is kept if it is a valid
		// encoding.
		target.Path, target.RawPath = path, path
		if decoded, err := url.PathUnescape(path); err == nil {
			target.Path = decoded
		}
		return target, true
	}
	target.Opaque = path
	return target, true
}

// SentPath returns the path that a request has at the upstream, without its
// query.
func (u *Upstream) SentPath(in *http.Request) string { return u.join(in.URL.Path) }

// join puts the upstream's path in front of the request's without duplicating
// segments.
func (u *Upstream) join(path string) string {
	if u.base == "" {
		return path
	}
	for _, tail := range u.overlaps {
		if underPrefix(path, tail) {
			return u.base[:len(u.base)-len(tail)] + path
		}
	}
	return u.base + path
}

// rawPath returns the path of in as it was written, with its escapes, or "" if
// there is none. OPTIONS *, which asks about the server as a whole, counts as
// its root.
func rawPath(in *http.Request) string {
	raw := in.RequestURI
	if raw == "*" {
		return "/"
	}
	if !strings.HasPrefix(raw, "/") {
		return in.URL.EscapedPath() // absolute form, or a request that no server parsed
	}
	raw, _, _ = strings.Cut(raw, "?")
	for i := range len(raw) {
		if raw[i] <= ' ' || raw[i] == 0x7f {
			return in.URL.EscapedPath() // from HTTP/2, which can carry what HTTP/1.1 cannot
		}
	}
	return raw
}

// underPrefix reports whether path is prefix or lies below it. prefix has no
// trailing slash.
func underPrefix(path, prefix string) bool {
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/')
}

// trimPrefix returns a configured prefix in the form that underPrefix takes;
// "/" becomes "".
func trimPrefix(p string) string { return strings.TrimRight(p, "/") }

// Router chooses the upstream of a request by its path and, if only "/" covers
// that, by its headers.
type Router struct {
	config    TransportConfig
	upstreams []*Upstream
	routes    []pathRoute // longest prefix first
	headers   []headerRoute
}

type headerRoute struct {
	name string // canonical
	up   *Upstream
}

type pathRoute struct {
	prefix string
	up     *Upstream
}

// OpenRouter reads the upstreams' CA files. It dials nothing.
func OpenRouter(cfgs []UpstreamConfig, t TransportConfig) (*Router, error) {
	r := &Router{config: t}
	var errs []error
	for _, c := range cfgs {
		up, err := openUpstream(c, t)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.upstreams = append(r.upstreams, up)
		for _, p := range up.Paths {
			r.routes = append(r.routes, pathRoute{trimPrefix(p), up})
		}
		for _, name := range c.Headers {
			r.headers = append(r.headers, headerRoute{http.CanonicalHeaderKey(name), up})
		}
	}
	slices.SortStableFunc(r.routes, func(a, b pathRoute) int { return len(b.prefix) - len(a.prefix) })
	return r, errors.Join(errs...)
}

// CloseIdle closes the idle connections.
func (r *Router) CloseIdle() {
	for _, up := range r.upstreams {
		up.closeIdle()
	}
}

// ForHost returns the upstream called name or, if name is "", the one whose URL
// is https with this host. If there is none with this host, it adds one named
// like it. It must not be called while requests are routed.
func (r *Router) ForHost(host, name string) (*Upstream, error) {
	at := slices.IndexFunc(r.upstreams, func(u *Upstream) bool {
		if name != "" {
			return u.Name == name
		}
		return u.URL.Scheme == "https" && strings.EqualFold(u.URL.Host, host)
	})
	if at >= 0 {
		return r.upstreams[at], nil
	}
	if name != "" {
		return nil, fmt.Errorf("there is no upstream named %s", name)
	}
	up, err := openUpstream(UpstreamConfig{Name: host, URL: "https://" + host, Paths: []string{"/"}}, r.config)
	if err == nil {
		r.upstreams = append(r.upstreams, up)
	}
	return up, err
}

// Route returns the upstream for in, or nil.
func (r *Router) Route(in *http.Request) *Upstream {
	path, h := rawPath(in), in.Header
	for _, route := range r.routes {
		if route.prefix != "" && underPrefix(path, route.prefix) {
			return route.up
		}
	}
	for _, route := range r.headers {
		if len(h[route.name]) > 0 {
			return route.up
		}
	}
	if n := len(r.routes); n > 0 && r.routes[n-1].prefix == "" {
		return r.routes[n-1].up
	}
	return nil
}
