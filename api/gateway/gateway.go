// Package gateway is the face of the control plane that speaks the protocol of
// the Memory Gateway: an agent searches before it asks its model, adds the turn
// after the final answer, and then flushes.
//
//	POST /memories/search   what is relevant to a query
//	POST /memories/add      messages of a conversation
//	POST /memories/flush    waits until what was added is searchable
//
// The credential is user_key in the body, the admin token or a key that the
// upstream has accepted; a bearer token counts where the body has none. Errors
// are problems that name a field and quote nothing, so the key is never in one.
// Private memories are never returned.
//
// A handler is safe for concurrent use.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/proxy/problem"
)

// Options change a handler. The zero Options are the defaults.
type Options struct {
	Log *slog.Logger // nil = none
	// FlushTimeout is how long a flush waits at most; 0 = DefaultFlushTimeout.
	FlushTimeout time.Duration
}

// DefaultFlushTimeout is less than the ten seconds for which clients wait.
const DefaultFlushTimeout = 8 * time.Second

// face is the handler.
type face struct {
	service *api.Service
	Options
}

// Handler returns the handler of the three paths. It is mounted at the root, or
// behind http.StripPrefix.
func Handler(s *api.Service, o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.FlushTimeout <= 0 {
		o.FlushTimeout = DefaultFlushTimeout
	}
	f := &face{s, o}
	mux := http.NewServeMux()
	mux.HandleFunc("/memories/search", serve(f, f.search))
	mux.HandleFunc("/memories/add", serve(f, f.add))
	mux.HandleFunc("/memories/flush", serve(f, f.flush))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		problem.New(http.StatusNotFound, "not-found", "there is no such path; /memories/search, add and flush are served").Write(w)
	})
	return mux
}

// caller is who asks, and whose memory it is about. Every body has it.
type caller struct {
	UserID    string `json:"user_id"`
	UserKey   string `json:"user_key"`
	AppID     string `json:"app_id"`
	ProjectID string `json:"project_id"`
}

func (i *caller) who() *caller { return i }

// question is a body.
type question[T any] interface {
	*T
	who() *caller
}

// serve returns the handler of one path: it reads the body, authenticates and
// answers.
func serve[T any, Q question[T]](f *face, do func(context.Context, api.Principal, api.Target, Q) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			problem.New(http.StatusMethodNotAllowed, "method", "only POST is served here").Write(w)
			return
		}
		var body Q = new(T)
		answer, err := func() (any, error) {
			if err := request.Decode(r, request.MaxBody, false, body); err != nil {
				return nil, err
			}
			who := body.who()
			if who.UserKey == "" {
				who.UserKey = request.Credential(r)
			}
			p, err := f.service.Authenticate(r.Context(), who.UserKey, request.User(r))
			if err != nil {
				return nil, err
			}
			if who.UserID == "" {
				return nil, &api.FieldError{Field: "user_id", Why: "is required"}
			}
			return do(r.Context(), p, api.Target{User: who.UserID, App: who.AppID, Project: who.ProjectID}, body)
		}()
		if err != nil {
			request.Fail(w, f.Log, named(err))
			return
		}
		request.Write(w, http.StatusOK, answer)
	}
}

// fields are the names of this protocol for fields of the Service.
var fields = map[string]string{
	"user": "user_id", "app": "app_id", "project": "project_id", "topK": "top_k", "tenant": "user_key", "conversation": "conversation_id",
}

// named returns an error with the field's name in this protocol.
func named(err error) error {
	if field, ok := errors.AsType[*api.FieldError](err); ok && fields[field.Field] != "" {
		return &api.FieldError{Field: fields[field.Field], Why: field.Why}
	}
	return err
}
