package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// noSuch is what tools say of what there is not.
var noSuch = api.Detail(api.ErrNotFound)

const adminToken = "the-admin-token-of-tests"

// newService returns a service over a store in memory, whose pipeline runs
// until the test ends.
func newService(t testing.TB) *api.Service {
	s, _ := newServiceAndStore(t)
	return s
}

func newServiceAndStore(t testing.TB) (*api.Service, *storagetest.Mem) {
	who := identity.DefaultConfig()
	who.Loopback = true
	return newServiceFor(t, who)
}

func newServiceFor(t testing.TB, who identity.Config) (*api.Service, *storagetest.Mem) {
	t.Helper()
	store := storagetest.Memory()
	red, err := redact.New(redact.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	engine := recall.New(recall.DefaultConfig(), store, nil, nil)
	pipe := persist.New(persist.DefaultConfig(), store, store, engine, red, nil, nil)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = pipe.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
		engine.Close()
	})
	return api.New(api.Config{Token: adminToken}, api.Deps{
		Store: store, Pipeline: pipe, Engine: engine, Recall: recall.DefaultConfig(), Identity: identity.New(who, nil),
		Policy: &policy.Policy{}, HidesSecret: red.HidesSecret, Placeholder: red.IsPlaceholder,
		Redact: func(text string) string {
			out, _ := red.Redact(text)
			return out
		},
	}), store
}

// headers adds headers to each request.
type headers map[string]string

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, v := range h {
		r.Header.Set(name, v)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// client is a client of the SDK with a short form of calls.
type client struct {
	*sdk.ClientSession
	t testing.TB
}

// serve serves a service over HTTP and returns its address.
func serve(t testing.TB, s *api.Service, o Options) string {
	t.Helper()
	server := httptest.NewServer(Handler(s, o))
	t.Cleanup(server.Close)
	return server.URL
}

// connect returns a client of the server at an address, for a user.
func connect(t testing.TB, url, user string) *client {
	t.Helper()
	h := headers{"Authorization": "Bearer " + adminToken}
	if user != "" {
		h["X-Remora-User"] = user
	}
	return dial(t, &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: h}})
}

func dial(t testing.TB, transport sdk.Transport) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(ctx, transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return &client{session, t}
}

// newClient returns a client of a new service with sets of tools.
func newClient(t testing.TB, sets ...string) *client {
	t.Helper()
	return connect(t, serve(t, newService(t), Options{Compat: sets, Version: "test"}), "alice")
}

// call calls a tool with arguments in JSON and returns the text of the answer.
func (c *client) call(name, arguments string) (said string, failed bool) {
	c.t.Helper()
	res := c.result(name, arguments)
	if len(res.Content) != 1 {
		c.t.Fatalf("%s: %d contents", name, len(res.Content))
	}
	return res.Content[0].(*sdk.TextContent).Text, res.IsError
}

func (c *client) result(name, arguments string) *sdk.CallToolResult {
	c.t.Helper()
	p := &sdk.CallToolParams{Name: name}
	if arguments != "" {
		p.Arguments = json.RawMessage(arguments)
	}
	res, err := c.CallTool(c.t.Context(), p)
	if err != nil {
		c.t.Fatalf("%s %s: %v", name, arguments, err)
	}
	return res
}

// ok is call for one that must not fail. It decodes the structured content into
// v, unless v is nil.
func (c *client) ok(v any, name, arguments string) string {
	c.t.Helper()
	res := c.result(name, arguments)
	said := res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		c.t.Fatalf("%s %s: %s", name, arguments, said)
	}
	if v != nil {
		data, err := json.Marshal(res.StructuredContent)
		if err == nil {
			err = json.Unmarshal(data, v)
		}
		if err != nil {
			c.t.Fatalf("%s %s: %v", name, arguments, err)
		}
	}
	return said
}

// fails is call for one that must fail.
func (c *client) fails(name, arguments string) string {
	c.t.Helper()
	said, failed := c.call(name, arguments)
	if !failed {
		c.t.Fatalf("%s %s did not fail: %s", name, arguments, said)
	}
	return said
}

// quote returns a string as JSON.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// results are what most tools answer.
type results struct {
	Results []struct {
		ID, Text, Memory, Event, Error string
		Score                          float64
	}
}

func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not hold %q", text, part)
		}
	}
}
