// Package problem holds the errors that the listeners answer with, in the form
// of RFC 9457. A problem has a kind, which is stable and links to its
// description in docs/problems.md, and a detail for people, which never holds a
// key, a query or content. The proxy and its forward listener make problems of
// what fails, and write them.
package problem

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// types is the prefix of a problem's type; the page lists every kind.
const types = "https://github.com/remora-proxy/remora/blob/main/docs/problems.md#"

// titles are the titles of problems, by kind. A kind has one meaning.
var titles = map[string]string{
	"bad-target":           "Request target not usable",
	"changed":              "Changed meanwhile",
	"forbidden":            "Not allowed",
	"forward-forbidden":    "Target not allowed",
	"forward-auth":         "Proxy authentication required",
	"forward-busy":         "Too many tunnels",
	"forward-method":       "Only CONNECT is served here",
	"forward-others":       "Host not on the list",
	"gone":                 "Gone",
	"host-forbidden":       "Host not allowed",
	"internal":             "Internal error",
	"invalid":              "Request not usable",
	"method":               "Method not allowed",
	"no-text":              "Nothing left to save",
	"no-upstream":          "No upstream for this path",
	"not-found":            "Not found",
	"not-implemented":      "Not available here",
	"own-path":             "No such path of Remora",
	"queue-full":           "Too much to store",
	"request-body":         "Request body not readable",
	"request-timeout":      "Request body too slow",
	"secret":               "Secrets are not saved",
	"too-large":            "Too large",
	"too-many":             "Too many",
	"unauthorized":         "Key required",
	"unavailable":          "Memory not available",
	"unsupported-media":    "Media type not readable",
	"upstream-failed":      "Upstream broke off",
	"upstream-protocol":    "Upstream does not speak HTTP as expected",
	"upstream-timeout":     "Upstream too slow",
	"upstream-tls":         "Upstream not trusted",
	"upstream-unreachable": "Upstream not reachable",
	"websocket-fallback":   "HTTP is spoken here",
}

// Problem is an error of a listener in the form of RFC 9457. Detail never holds
// a key, a query or content.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Field names what in the request is meant, "" if that is not one field.
	Field string `json:"field,omitempty"`
}

// Kind returns the kind of p, which its type ends with.
func (p Problem) Kind() string { return strings.TrimPrefix(p.Type, types) }

// Kinds returns all kinds, sorted.
func Kinds() []string { return slices.Sorted(maps.Keys(titles)) }

// New returns a problem of a kind that docs/problems.md lists.
func New(code int, kind, detail string) Problem {
	return Problem{Type: types + kind, Title: titles[kind], Status: code, Detail: detail}
}

// Write sends p as the response.
func (p Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = w.Write(p.Encode())
}

// Encode returns p as JSON, with a newline at the end.
func (p Problem) Encode() []byte {
	b, _ := json.Marshal(p) // three strings and an int always encode
	return append(b, '\n')
}

// traffic are the kinds that the proxy and its forward listener answer.
var traffic = [...]string{
	"bad-target", "forward-auth", "forward-busy", "forward-forbidden", "forward-method", "forward-others", "no-upstream", "own-path",
	"request-body", "request-timeout", "upstream-failed", "upstream-protocol", "upstream-timeout", "upstream-tls", "upstream-unreachable",
}

// Counts counts failures by their class, which is a kind of problem or another
// of few words. The zero value is ready to use, by several goroutines.
type Counts struct {
	mu sync.Mutex
	by map[string]int64
}

// Add counts one.
func (c *Counts) Add(class string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int64{}
	}
	c.by[class]++
}

// AddTo adds the counts to others. Kinds that traffic may meet are there even if
// there was none: a rise from nothing is not seen in a series that begins with
// it.
func (c *Counts) AddTo(by map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range traffic {
		by[kind] += 0
	}
	for class, n := range c.by {
		by[class] += n
	}
}
