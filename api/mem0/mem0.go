// Package mem0 is the face of the control plane for programs that were written
// for mem0: its hosted API with the clients for it, and its self-hosted server.
// It also serves the small API of /api/v1/memories.
//
// mem0's names are parts of what Remora calls a scope, each on its own:
//
//	user_id   the user; without one, the user of requests that name none
//	app_id    the app
//	agent_id  the project
//	run_id    the conversation, within a user, an app and an agent
//
// So memories of two agents are as separate as those of two users. What is
// written without an app or an agent goes to the default one. What is read
// without them comes from all apps and agents of the user, never from another
// user.
//
// Memories are what a user stated: facts, passages of documents, and of what was
// said in conversations those passages that say more than the facts made of
// them. Metadata and categories are tags of a memory (metadata.go).
//
// It refuses what it can't keep: filters, dates of expiry and operators that
// have no meaning here are a problem (RFC 9457) that names the field. Hints for
// a model that extracts memories are ignored. Routes of mem0 that have no
// meaning here answer 501.
//
// A Handler keeps the last 1,000 events and exports in memory, by their names
// only: what they stand for is read, and authorized, when it is asked for.
package mem0

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/proxy/problem"
)

// Options of a handler.
type Options struct {
	Log *slog.Logger // nil = none
}

// Handler serves the routes of this package. The caller mounts it under
// /compat/mem0 with http.StripPrefix.
func Handler(s *api.Service, o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f := &face{service: s, log: o.Log, exports: newExports()}
	f.events = newEvents(f)
	f.routes = routes()
	return f
}

type face struct {
	service *api.Service
	log     *slog.Logger
	routes  []route
	events  *events
	exports *exports
}

// call is one request with its caller.
type call struct {
	*face
	w    http.ResponseWriter
	r    *http.Request
	p    api.Principal
	base api.Target // what headers and the query name in Remora's own words

	opened map[api.Target]*space
}

// verb answers a request of an authenticated caller.
type verb func(c *call) error

// adminCall is a call about many memories, or about what became of calls.
type adminCall struct{ *call }

func asAdmin(do func(adminCall) error) verb {
	return func(c *call) error { return do(adminCall{c}) }
}

// ServeHTTP serves one request. Unknown paths and methods are problems, too.
func (f *face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	do, allowed := f.find(r)
	switch {
	case do == nil && len(allowed) > 0:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		problem.New(http.StatusMethodNotAllowed, "method", "Allow lists the methods of this path").Write(w)
		return
	case do == nil:
		problem.New(http.StatusNotFound, "not-found", "there is no such path; docs/mem0.md lists them").Write(w)
		return
	}
	p, err := f.service.Authenticate(r.Context(), request.Credential(r), request.User(r))
	if err == nil {
		err = do(&call{face: f, w: w, r: r, p: p, base: request.Target(r)})
	}
	if err != nil {
		request.Fail(w, f.log, renamed(err))
	}
}

// find returns the verb of a request and sets the values of its path, or the
// methods that the path has.
func (f *face) find(r *http.Request) (do verb, allowed []string) {
	path := strings.Trim(r.URL.EscapedPath(), "/")
	segments := strings.Split(path, "/")
	for i := range f.routes {
		rt := &f.routes[i]
		values, ok := rt.match(segments)
		switch {
		case !ok:
		case rt.method != r.Method && rt.method != "":
			allowed = append(allowed, rt.method)
		default:
			for name, v := range values {
				r.SetPathValue(name, v)
			}
			return rt.do, nil
		}
	}
	return nil, allowed
}

// match returns what the path has in the places of a route's names.
func (rt *route) match(segments []string) (values map[string]string, ok bool) {
	for i, want := range rt.segments {
		if want == "..." {
			return values, true
		}
		if i == len(segments) {
			return nil, false
		}
		name, named := strings.CutPrefix(want, ":")
		if !named {
			if segments[i] != want {
				return nil, false
			}
			continue
		}
		v, err := url.PathUnescape(segments[i])
		if err != nil || v == "" {
			return nil, false
		}
		if values == nil {
			values = map[string]string{}
		}
		values[name] = v
	}
	return values, len(segments) == len(rt.segments)
}

// fieldNames are mem0's names for fields of the Service.
var fieldNames = map[string]string{
	"user": "user_id", "app": "app_id", "project": "agent_id", "conversation": "run_id", "topK": "top_k", "tags": "categories",
	"why": "feedback_reason", "eventTime": "timestamp",
}

// renamed returns an error whose field is named as mem0 names it.
func renamed(err error) error {
	if field, ok := errors.AsType[*api.FieldError](err); ok {
		name := strings.TrimPrefix(field.Field, "ids.") // a part of a request that has it
		return invalid(cmp.Or(fieldNames[name], name), field.Why)
	}
	return err
}

// decode reads the body. Fields that v does not have are hints, and ignored.
func (c *call) decode(v any) error { return request.Decode(c.r, request.MaxBody, false, v) }

// write answers with a JSON value.
func (c *call) write(status int, v any) error {
	request.Write(c.w, status, v)
	return nil
}

// say answers with a message alone.
func (c *call) say(message string) error {
	return c.write(http.StatusOK, map[string]string{"message": message})
}

func invalid(field, why string) error { return &api.FieldError{Field: field, Why: why} }
