// Package page is the web page of the control plane: for people who want to see
// what is remembered, what their requests were given, and to correct it. Its
// handlers read a request, call verbs of [api.Service] and render a template.
//
// It promises:
//
//   - Nothing is loaded from elsewhere. Scripts and styles are embedded, and the
//     Content-Security-Policy allows nothing inline.
//   - What people said is shown as text, whatever it looks like.
//   - Every view can be read, and memories edited and deleted, without
//     JavaScript.
//   - A session lives in memory, at most [MaxSessions] at a time, and ends after
//     12 hours without use. Login links work once, for 10 minutes.
//
// The state of a view is in its URL. Whose memory it shows is there, too: the
// parameters tenant, app, project and user, as in the REST face.
package page

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

// Options configure a Handler.
type Options struct {
	Version string
	Log     *slog.Logger // nil = none
	Now     func() time.Time
}

// Handler serves the page. It is safe for concurrent use.
type Handler struct {
	service  *api.Service
	version  string
	log      *slog.Logger
	now      func() time.Time
	mux      *http.ServeMux
	sessions sessions
	views    views
	assets   map[string]*asset
	uploads  uploads
}

// view answers a request of somebody who has logged in.
type view func(c *call) error

// routes returns the routes that need a login, by their patterns.
func routes() map[string]view {
	return map[string]view{
		"GET /{$}":                      showLive,
		"GET /live/events":              streamLive,
		"GET /exchanges/{id}":           showReceipt,
		"POST /exchanges/{id}/unwanted": setUnwanted,
		"GET /memories":                 showMemories,
		"POST /memories":                addMemory,
		"GET /memories/{id}":            showMemory,
		"POST /memories/{id}":           changeMemory,
		"POST /memories/bulk":           changeMany,
		"GET /review":                   showReview,
		"POST /review":                  answerReview,
		"GET /try":                      showTry,
		"GET /people":                   showPeople,
		"GET /people/export":            exportUser,
		"GET /people/erase":             askErase,
		"POST /people/erase":            eraseUser,
		"GET /benefit":                  showBenefit,
		"GET /import":                   showImport,
		"POST /import":                  takeUpload,
		"POST /import/{id}":             runImport,
		"GET /import/{id}":              showUpload,
		"GET /health":                   showHealth,
		"POST /logout":                  logOut,
		"POST /theme":                   setTheme,
	}
}

// New returns a Handler.
func New(s *api.Service, o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &Handler{service: s, version: o.Version, log: o.Log, now: o.Now, mux: http.NewServeMux(), assets: readAssets()}
	h.views = parseViews(h.assets)
	h.uploads.open(h.log)
	for pattern, do := range routes() {
		h.mux.HandleFunc(pattern, h.serve(pattern, do))
	}
	h.mux.HandleFunc("GET /assets/{name}", h.serveAsset)
	h.mux.HandleFunc("GET /login", h.askLogin)
	h.mux.HandleFunc("POST /login", h.login)
	return h
}

// Patterns returns the patterns of all routes of the page, for the mux that it
// shares with other faces.
func (h *Handler) Patterns() []string {
	out := []string{"GET /assets/{name}", "GET /login", "POST /login"}
	for pattern := range routes() {
		out = append(out, pattern)
	}
	slices.Sort(out)
	return out
}

// securityPolicy is the Content-Security-Policy of every answer.
const securityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", securityPolicy)
	w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	h.mux.ServeHTTP(w, r)
}

// callTimeout bounds a view. It is longer than an index takes to load.
const callTimeout = 30 * time.Second

// unbounded are the routes that may take as long as they need.
var unbounded = []string{"GET /live/events", "GET /people/export", "POST /people/erase", "POST /import", "POST /review"}

// call is one request with its caller.
type call struct {
	*Handler
	w       http.ResponseWriter
	r       *http.Request
	ctx     context.Context
	p       api.Principal
	session *session // nil if the request carries its key itself
	whose   api.Target
}

func (h *Handler) serve(pattern string, do view) http.HandlerFunc {
	bounded := !slices.Contains(unbounded, pattern)
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if bounded {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, callTimeout)
			defer cancel()
		}
		c := &call{Handler: h, w: w, r: r, ctx: ctx, whose: request.Target(r)}
		err := c.authenticate()
		if errors.Is(err, api.ErrUnauthorized) {
			c.sendToLogin()
			return
		}
		if err == nil {
			err = do(c)
		}
		if err != nil {
			c.fail(err)
		}
	}
}

// maxForm bounds the body of a form, in bytes.
const maxForm = 1 << 20

// form reads the fields of a form that was sent.
func (c *call) form() (url.Values, error) {
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, maxForm)
	if err := c.r.ParseForm(); err != nil {
		return nil, &api.FieldError{Field: "body", Why: "is no form that can be read"}
	}
	return c.r.PostForm, nil
}

// errDo refuses a form whose button is not one of the view's.
var errDo = &api.FieldError{Field: "do", Why: "names nothing that can be done"}

// partial reports whether a script asks for a part of the view.
func (c *call) partial() bool { return c.r.Header.Get("Hx-Request") != "" }

// wants reports whether a script asks for the part of the view with this id.
func (c *call) wants(id string) bool {
	return c.partial() && strings.HasSuffix(c.r.Header.Get("Hx-Target"), "#"+id)
}

// report leads to a view that reports what a change did, or why it was refused.
// What is not the caller's fault is returned.
func (c *call) report(done flash, err error, to string) error {
	if isOf(err, "unavailable", "internal") {
		return err
	}
	if err != nil {
		done = flash{Text: sentence(api.Detail(err)), Bad: true}
	}
	c.session.say(done)
	return c.redirect(to)
}

// redirect sends the browser on, to a path of this page.
func (c *call) redirect(to string) error {
	if !ownPath(to) {
		to = "/"
	}
	if c.partial() {
		c.w.Header().Set("Hx-Redirect", to)
		c.w.WriteHeader(http.StatusOK)
		return nil
	}
	http.Redirect(c.w, c.r, to, http.StatusSeeOther)
	return nil
}

// ownPath reports whether a path leads to this page and not to another host.
func ownPath(path string) bool {
	u, err := url.Parse(path)
	return err == nil && u.Scheme == "" && u.Host == "" && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") &&
		!strings.ContainsAny(path, "\\\r\n\t")
}
