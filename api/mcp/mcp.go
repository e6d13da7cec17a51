// Package mcp is the MCP face of the control plane: tools with which a model, or
// the program around it, searches, saves and corrects what is remembered. It is
// served over streamable HTTP, by [Handler], and over a pipe, by [Serve].
//
// There are eight tools of Remora's own. Sets of tools add those of other
// memory servers, with their names, arguments and answers, for clients and
// prompts that were written for them.
//
// It promises:
//
//   - A tool calls verbs of the control plane, which decide what the caller may
//     reach. Nothing is decided here.
//   - What goes wrong is an error of the tool, which names a field and never
//     quotes what is stored. The sets alone repeat a caller's own arguments,
//     where the server that they replace does.
//   - Arguments are read with patience: other names for them, numbers and lists
//     in strings, and fields that no tool has are no errors.
//   - A request stands alone: no sessions, nothing that a client must keep.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/proxy/identity"
)

// Sets of tools.
const (
	SetMem0       = "mem0"       // those of mem0's hosted server
	SetOpenMemory = "openmemory" // those of mem0's OpenMemory
	SetReference  = "reference"  // the knowledge graph of the protocol's reference server
	SetMemory     = "memory"     // Anthropic's memory tool
	SetSearch     = "search"     // search and fetch, as ChatGPT's connectors want them
)

// Options of a server.
type Options struct {
	// Compat are the sets of tools to offer besides Remora's own. Of tools with
	// one name the last holds.
	Compat []string
	// Target is whose memory it is about where a call does not say.
	Target api.Target
	// BaseURL is where Remora is reached, for links to memories. "" = where the
	// request came to; without one, links begin with remora:.
	BaseURL string
	Version string
	Log     *slog.Logger // nil = none
}

// Sets lists the names of the sets of tools.
func Sets() []string {
	return []string{SetMem0, SetOpenMemory, SetReference, SetMemory, SetSearch}
}

// Validate returns an error that names the first set that does not exist.
func (o Options) Validate() error {
	for _, name := range o.Compat {
		if !slices.Contains(Sets(), name) {
			return fmt.Errorf("%q is no set of tools: there are %s", name, strings.Join(Sets(), ", "))
		}
	}
	return nil
}

// maxBody bounds the body of a request, in bytes.
const maxBody = request.MaxBody

// Handler serves MCP over streamable HTTP, without sessions. Each request needs
// a key, as the REST face does. Whose memory it is about, the request's query
// and headers say, or the argument user_id of a tool.
func Handler(s *api.Service, o Options) http.Handler {
	f := newFace(o)
	same := func(*http.Request) *sdk.Server { return f.server }
	streams := sdk.NewStreamableHTTPHandler(same, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody,
		PropagateRequestCancellation: true,
		// A page that reaches this machine has no key; and a container calls the
		// machine by other names.
		DisableLocalhostProtection: true,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := s.Authenticate(r.Context(), request.Credential(r), request.User(r))
		if err != nil {
			request.Fail(w, f.log, err)
			return
		}
		se := session{verbs: Local(s, p), who: p.Tenant + "\x00" + p.User, gone: r.Context()}
		se.target, se.base = overlay(o.Target, request.Target(r)), o.BaseURL
		if p.User != "" && se.target.User == "" {
			se.target.User = identity.Show(p.User)
		}
		if se.base == "" {
			se.base = baseOf(r)
		}
		r = r.Clone(context.WithValue(r.Context(), sessionKey{}, se))
		acceptBoth(r.Header)
		streams.ServeHTTP(w, r)
	})
}

// overlay returns a target with the parts that another one names.
func overlay(t, with api.Target) api.Target {
	return api.Target{
		Tenant: cmp.Or(with.Tenant, t.Tenant), App: cmp.Or(with.App, t.App),
		Project: cmp.Or(with.Project, t.Project), User: cmp.Or(with.User, t.User),
	}
}

// baseOf returns where a request has reached Remora.
func baseOf(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// acceptBoth has a client that accepts JSON, or does not say, accept what the
// protocol asks of clients. It is answered with JSON.
func acceptBoth(h http.Header) {
	given := strings.Join(h.Values("Accept"), ",")
	if given == "" || strings.Contains(given, "json") {
		h.Set("Accept", "application/json, text/event-stream")
	}
}

// Serve runs a server over a pipe, for one caller, until ctx ends or the input
// does.
func Serve(ctx context.Context, v Verbs, o Options, in io.Reader, out io.Writer) error {
	f := newFace(o)
	se := session{verbs: v, target: o.Target, base: o.BaseURL}
	ctx = context.WithValue(ctx, sessionKey{}, se)
	ends := newPipe(ctx, in, out)
	err := f.server.Run(ctx, &sdk.IOTransport{Reader: ends, Writer: ends, MaxLineLength: 2 * maxLine})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
