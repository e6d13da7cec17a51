// Package rest is the REST face of the control plane, as api/openapi.yaml
// describes it. Its handlers read a request, call one verb of [api.Service] and
// write what that returns.
//
// Every request needs a key. [Guard] is what all HTTP faces stand behind: ids
// for requests, a list of hosts and protection against other sites on loopback,
// and answers that no cache keeps.
package rest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/proxy/problem"
)

// Handler serves the routes below.
type Handler struct {
	service    *api.Service
	log        *slog.Logger
	mux        *http.ServeMux
	idempotent idempotent
	importing  chan struct{} // one import at a time
}

// verb answers a request of an authenticated caller.
type verb func(c *call) error

// call is one request with its caller.
type call struct {
	*Handler
	w http.ResponseWriter
	r *http.Request
	p api.Principal
	t api.Target
}

// routes returns the routes that need a key, by their patterns.
func routes() map[string]verb {
	return map[string]verb{
		"GET /v1/memories":                    (*call).list,
		"POST /v1/memories":                   (*call).add,
		"POST /v1/memories/search":            (*call).search,
		"POST /v1/memories/delete":            (*call).deleteMany,
		"POST /v1/memories/merge":             mergeMemories,
		"POST /v1/memories/{id}/prefer":       preferMemory,
		"GET /v1/memories/{id}":               (*call).get,
		"PATCH /v1/memories/{id}":             (*call).update,
		"DELETE /v1/memories/{id}":            (*call).delete,
		"GET /v1/memories/{id}/history":       (*call).history,
		"GET /v1/memories/{id}/originals":     (*call).originals,
		"POST /v1/memories/{id}/undo":         (*call).undo,
		"POST /v1/memories/{id}/feedback":     (*call).feedback,
		"POST /v1/memories/{id}/unwanted":     (*call).unwanted,
		"DELETE /v1/memories/{id}/unwanted":   (*call).wantedAgain,
		"GET /v1/sources":                     listSources,
		"GET /v1/contradictions":              listContradictions,
		"GET /v1/forget-requests":             listForgetRequests,
		"POST /v1/forget-requests/{id}":       answerForgetRequest,
		"POST /v1/recall":                     (*call).try,
		"POST /v1/context":                    (*call).context,
		"GET /v1/resources":                   (*call).resources,
		"POST /v1/resources":                  (*call).addResource,
		"DELETE /v1/resources":                (*call).deleteResource,
		"GET /v1/entries":                     (*call).entries,
		"GET /v1/entries/{key...}":            (*call).getEntry,
		"PUT /v1/entries/{key...}":            (*call).putEntry,
		"DELETE /v1/entries/{key...}":         (*call).deleteEntry,
		"POST /v1/events/message":             (*call).event,
		"GET /v1/audits":                      (*call).audits,
		"GET /v1/export":                      (*call).export,
		"POST /v1/import":                     (*call).importFile,
		"GET /v1/users":                       (*call).users,
		"DELETE /v1/users/{id}":               (*call).erase,
		"DELETE /v1/conversations/{id...}":    (*call).eraseConversation,
		"GET /v1/exchanges":                   (*call).exchanges,
		"GET /v1/exchanges/recent":            (*call).recent,
		"GET /v1/exchanges/watch":             (*call).watch,
		"GET /v1/exchanges/{id}":              (*call).exchange,
		"GET /v1/exchanges/{id}/conversation": (*call).said,
		"GET /v1/benefit":                     (*call).benefit,
		"GET /v1/metrics":                     (*call).metrics,
		"GET /v1/settings":                    listSettings,
		"POST /v1/login-links":                makeLoginLink,
	}
}

// New returns the handler of the REST face.
func New(s *api.Service, log *slog.Logger) *Handler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{service: s, log: log, mux: http.NewServeMux(), importing: make(chan struct{}, 1)}
	for pattern, do := range routes() {
		h.route(pattern, do)
	}
	h.mux.HandleFunc("GET /openapi.yaml", serveContract)
	h.mux.HandleFunc("GET /reference", serveReference)
	return h
}

// callTimeout bounds a call. It is longer than an index takes to load, and than
// a store's process to restart.
const callTimeout = 30 * time.Second

// streams are the routes whose calls may take as long as they need.
var streams = map[string]struct{}{
	"GET /v1/export": {}, "POST /v1/import": {}, "GET /v1/exchanges/watch": {}, "DELETE /v1/users/{id}": {}, "POST /v1/resources": {},
}

func (h *Handler) route(pattern string, do verb) {
	_, unbounded := streams[pattern]
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if !unbounded {
			ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
			defer cancel()
			r = r.WithContext(ctx)
		}
		p, err := h.service.Authenticate(r.Context(), request.Credential(r), request.User(r))
		if err == nil {
			err = do(&call{h, w, r, p, request.Target(r)})
		}
		if err != nil {
			request.Fail(w, h.log, err)
		}
	})
}

// ServeHTTP serves one request. Unknown paths and methods are problems, too.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler, pattern := h.mux.Handler(r)
	if pattern != "" {
		h.mux.ServeHTTP(w, r)
		return
	}
	// The mux would answer in plain text.
	probe := &discarded{header: http.Header{}}
	handler.ServeHTTP(probe, r)
	if probe.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", probe.header.Get("Allow"))
		problem.New(http.StatusMethodNotAllowed, "method", "Allow lists the methods of this path").Write(w)
		return
	}
	problem.New(http.StatusNotFound, "not-found", "there is no such path; /reference lists them").Write(w)
}

// discarded keeps the status and the header of an answer.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d *discarded) WriteHeader(status int)      { d.status = status }

// decode reads the body, whose fields are all known.
func (c *call) decode(v any) error { return request.Decode(c.r, request.MaxBody, true, v) }

// write answers with a JSON value.
func (c *call) write(status int, v any) error {
	request.Write(c.w, status, v)
	return nil
}

// flag reads a parameter that is true or false; known is false if it is not
// there.
func (c *call) flag(name string) (set, known bool, err error) {
	switch c.r.URL.Query().Get(name) {
	case "":
		return false, false, nil
	case "true", "1":
		return true, true, nil
	case "false", "0":
		return false, true, nil
	}
	return false, false, &api.FieldError{Field: name, Why: "must be true or false"}
}

// listed returns the values of a parameter that may be repeated, or hold
// several with commas between.
func (c *call) listed(name string) (out []string) {
	for _, v := range c.r.URL.Query()[name] {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}

func etag(version uint64) string { return fmt.Sprintf(`"v%d"`, version) }

// ifMatch returns the version that the caller expects, 0 for any.
func (c *call) ifMatch() (version uint64, err error) {
	v := strings.TrimSpace(c.r.Header.Get("If-Match"))
	if v == "" || v == "*" {
		return 0, nil
	}
	if _, err := fmt.Sscanf(v, `"v%d"`, &version); err != nil || version == 0 || etag(version) != v {
		return 0, &api.FieldError{Field: "If-Match", Why: "must be an ETag of this memory, or *"}
	}
	return version, nil
}
