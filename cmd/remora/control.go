package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/gateway"
	"github.com/remora-proxy/remora/api/mcp"
	"github.com/remora-proxy/remora/api/mem0"
	"github.com/remora-proxy/remora/api/page"
	"github.com/remora-proxy/remora/api/rest"
	"github.com/remora-proxy/remora/cmd/remora/client"
	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/backend"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/proxy/problem"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// tokenFile holds the admin token, in the directory of the store.
const tokenFile = "admin.token"

// adminToken returns the admin token: the configured one, or that in the file,
// which is generated if it is missing.
func adminToken(c config.Config) (string, error) {
	if c.API.Token != "" {
		return c.API.Token.Reveal(), nil
	}
	path := filepath.Join(c.Storage.Dir, tokenFile)
	token, err := readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := os.MkdirAll(c.Storage.Dir, 0o700); err != nil {
		return "", err
	}
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	token = hex.EncodeToString(b[:])
	made := path + "." + token[:8]
	if err := os.WriteFile(made, []byte(token+"\n"), 0o600); err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(made) }()
	if err := os.Link(made, path); err != nil { // another process may have made one meanwhile
		if errors.Is(err, fs.ErrExist) {
			return readToken(path)
		}
		return token, os.Rename(made, path) // a file system without links
	}
	return token, nil
}

func readToken(path string) (string, error) {
	text, err := config.ReadRegular(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("%s is empty: delete it, and another token is made", path)
	}
	return token, nil
}

// newService returns the verbs of the control plane.
func (s *system) newService(token string, redactor *redact.Redactor) *api.Service {
	s.plane.token = token
	var upstreams []string
	for _, u := range s.config.Proxy.Upstreams {
		upstreams = append(upstreams, u.Name)
	}
	show := redact.NewCache(redactor).Redact
	s.plane.precedence = rest.NewPrecedence(s.handler.Stats().Exchanges.Load)
	return api.New(api.Config{Token: token}, api.Deps{
		Store: s.plane.precedence.Store(s.store), Pipeline: s.pipeline, Engine: s.engine, Recall: s.config.Recall, Identity: identity.New(s.config.Proxy.Identity, s.config.Proxy.Clients),
		Policy: policy.New(s.config.Proxy.Policy), Receipts: s.receipts, Redact: show, Placeholder: redactor.IsPlaceholder, Log: s.log,
		HidesSecret: func(text string) bool {
			redacted, _ := redactor.Redact(text)
			return redactor.HidesSecret(redacted)
		},
		Upstreams: upstreams, Health: s.health, Settle: s.settle, Now: storage.Clock, Prices: s.config.API.Prices,
		Settings: s.inForce, LoginLink: s.loginLink,
	})
}

// inForce returns the settings in force.
func (s *system) inForce() []api.Setting {
	if reloaded := s.settings.Load(); reloaded != nil {
		return *reloaded
	}
	all := s.config.InForce()
	s.settings.CompareAndSwap(nil, &all) // unless it was reloaded meanwhile
	return *s.settings.Load()
}

// settle waits until the turns whose answers clients have got are searchable.
func (s *system) settle(ctx context.Context) error {
	if s.store.Status().Reason != "" { // nothing arrives there
		return nil
	}
	if err := s.handler.Flush(ctx); err != nil {
		return err
	}
	return s.pipeline.Flush(ctx)
}

// health returns what the control plane reports of the program.
func (s *system) health() api.Health {
	status, h, index := s.store.Status(), s.handler.Stats(), s.engine.Stats()
	out := api.Health{
		Version: readBuild().version, StoreOpen: status.Open, StoreReason: status.Reason, StoreBytes: directorySize(s.config.Storage.Dir), StoreEphemeral: s.lifetime.Reason(),
		UptimeSecs: int64(time.Since(s.started).Seconds()), Requests: map[string]int64{},
		Tokens: map[string]int64{"input": h.InputTokens.Load(), "cacheRead": h.CacheRead.Load(), "cacheWrite": h.CacheWrite.Load()},
		Index:  map[string]int64{"users": int64(index.Scopes), "bytes": index.Bytes, "loads": index.Loads, "evicted": index.Evicted, "failures": index.Failures},
	}
	for status, n := range h.ByStatus() {
		out.Requests[string(status)] = n
	}
	return out
}

// directorySize returns the sizes of all files below a directory. Files of
// Badger are sparse: their blocks count, where the system tells them.
func directorySize(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			n += machine.DiskBytes(info)
		}
		return nil
	})
	return n
}

// plane is the control plane, made when it is first needed.
type plane struct {
	once    sync.Once
	handler http.Handler // for the listener
	local   http.Handler // for commands of this machine's user
	token   string       // of the admin
	links   loginLinks   // of the web page, nil = there is none
	page    *page.Handler

	precedence *rest.Precedence // of the traffic
}

// controlPlane returns the control plane, which is there even if no listener
// is.
func (s *system) controlPlane() *plane {
	s.plane.once.Do(func() {
		s.plane.handler = s.controlHandler()
		local := http.NewServeMux()
		local.Handle("/", s.plane.handler)
		local.Handle(client.FilesRoute, client.FilesHandler(s.service))
		s.plane.local = local
	})
	return &s.plane
}

// controlHandler returns all faces of the control plane.
func (s *system) controlHandler() http.Handler {
	faces := http.NewServeMux()
	faces.Handle("/", rest.New(s.service, s.log))
	s.mountFaces(faces)
	pages := page.New(s.service, page.Options{Version: readBuild().version, Log: s.log, Now: storage.Clock})
	for _, pattern := range pages.Patterns() {
		faces.Handle(pattern, pages)
	}
	s.plane.links, s.plane.page = pages, pages
	mux := http.NewServeMux()
	mux.Handle("/", s.plane.precedence.Handler(faces))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { listener.Live(w) })
	ready := func(w http.ResponseWriter, _ *http.Request) {
		if status := s.store.Status(); !status.Open {
			problem.New(http.StatusServiceUnavailable, "unavailable", "the store is not open; traffic passes without memory").Write(w)
			return
		}
		s.ready(w)
	}
	mux.HandleFunc("GET /readyz", ready)
	mux.Handle("GET /metrics", s.adminMetrics())
	mux.HandleFunc("GET /startupz", func(w http.ResponseWriter, _ *http.Request) { listener.Live(w) })
	return rest.Guard(mux, rest.GuardOptions{Loopback: s.config.API.Loopback(), Hosts: s.config.API.Hosts, Log: s.log})
}

// closePage ends what the web page does in the background, when ctx ends.
func (s *system) closePage(ctx context.Context) {
	<-ctx.Done()
	s.controlPlane()
	s.plane.page.Close()
}

// controlDrain is how long requests to the control plane may continue after its
// listener has closed: streams of receipts have no end of their own.
const controlDrain = time.Second

// newControl opens the listener of the control plane, on a socket unless it is
// nil. It returns nil if there is none. A default address that is taken is no
// error: another Remora may run.
func (s *system) newControl(socket net.Listener, log *slog.Logger) (*listener.Server, error) {
	c := s.config
	if c.API.Listen == config.APIOff {
		return nil, nil
	}
	own := c.Server
	own.Listen, own.Drain, own.Limit, own.MaxHeaderBytes = c.API.Listen, controlDrain, nil, 64<<10
	server := listener.New(s.controlPlane().handler, own, log)
	if socket != nil {
		server.Use(socket)
		return server, nil
	}
	err := server.Listen()
	switch {
	case err == nil:
		return server, nil
	case listener.IsInUse(err) && !c.API.Required():
		log.Warn("the control plane is off: its default address is taken; api.listen takes another", "address", c.API.Listen)
		return nil, nil
	}
	return nil, fmt.Errorf("control plane: %w; api.listen takes another address, or off", err)
}

// mountFaces mounts the faces besides REST.
func (s *system) mountFaces(mux *http.ServeMux) {
	mux.Handle("/mcp", mcp.Handler(s.service, mcp.Options{Compat: s.config.API.MCP, Version: readBuild().version, Log: s.log}))
	old := mem0.Handler(s.service, mem0.Options{Log: s.log})
	mux.Handle("/compat/mem0/", http.StripPrefix("/compat/mem0", old))
	mux.Handle("/api/v1/memories", old)
	mux.Handle("/api/v1/memories/", old)
	mux.Handle("/compat/gateway/", http.StripPrefix("/compat/gateway", gateway.Handler(s.service, gateway.Options{Log: s.log})))
}

// useBackend has the proxy work with another memory than Remora's own, if one
// is configured.
func (s *system) useBackend(deps *proxy.Deps, redactor *redact.Redactor) error {
	c := s.config.Backend
	own := backend.Deps{Redact: deps.Redact, OnlyPlaceholders: redactor.OnlyPlaceholders, Log: s.log}
	switch c.Mode {
	case backend.ModeGateway:
		var err error
		if s.gateway, err = backend.NewGateway(c.Gateway, own); err != nil {
			return err
		}
		deps.Recall, deps.Persist = s.gateway, s.gateway
	case backend.ModeCurated:
		var err error
		if s.curated, err = backend.NewCurated(c.Curated, s.curatedFile, own); err != nil {
			return err
		}
		deps.Recall, deps.Persist = s.curated, s.curated
	}
	return nil
}

// curatedFile reads a file that the memory tool has written for a user.
func (s *system) curatedFile(ctx context.Context, scope storage.Scope, name string) (string, error) {
	target := api.Target{Tenant: identity.Show(scope.Tenant), App: identity.Show(scope.App), Project: identity.Show(scope.Project), User: identity.Show(scope.User)}
	file, err := s.service.ReadFile(ctx, api.Principal{Admin: true}, target, "/memories/"+name)
	return file.Content, err
}
