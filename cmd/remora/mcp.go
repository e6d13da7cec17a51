package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/api/mcp"
	"github.com/remora-proxy/remora/cmd/remora/client"
	"github.com/remora-proxy/remora/cmd/remora/config"
)

// mcpCommand serves MCP over the standard input and output.
func mcpCommand() command {
	return command{
		name:    "mcp",
		summary: "serve MCP to an agent over standard input and output",
		usage: `remora mcp [--compat SET]
       with [--user USER] [--tenant TENANT] [--app APP] [--project PROJECT]
       and [--data DIRECTORY] [--config FILE], or [--server URL] [--token-file FILE]`,
		define: func(f *pflag.FlagSet) runner {
			r := reachFlags(f)
			var sets []string
			repeated(f, &sets, "compat", "also offer this `set` of tools: "+strings.Join(mcp.Sets(), ", ")+" (default: api.mcp)")
			return func(ctx context.Context, s streams, _ []string) error { return serveMCP(ctx, s, r, sets) }
		},
	}
}

// serveMCP runs until its input or ctx ends. Each call reaches the Remora that
// runs then: the store is not held in between.
func serveMCP(ctx context.Context, s streams, r *reach, sets []string) error {
	o := mcp.Options{
		Compat: sets, Version: readBuild().version, Log: slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	server, err := r.remote(s)
	if err != nil {
		return err
	}
	var c *client.Client
	if server != "" {
		base, token, err := r.credentials(s, server)
		if err != nil {
			return err
		}
		if slices.Contains(sets, mcp.SetMemory) {
			return wrongCall("--compat memory works with the store of this machine only; a server offers it at /mcp")
		}
		o.BaseURL = base
		c = client.New(client.Remote(), base, token, r.of.target())
	} else {
		own, err := sealedConfig(r.flags, s)
		if err != nil {
			return err
		}
		if sets == nil {
			o.Compat = own.API.MCP
		}
		c = client.New(lasting{r, s, own, make(chan struct{}, 1)}, client.Local, "", r.of.target())
	}
	if err := o.Validate(); err != nil {
		return wrongCall("--compat: " + err.Error())
	}
	return mcp.Serve(ctx, client.Tools{Client: c}, o, s.in, s.out)
}

// lasting is a transport for a process that lasts longer than what it reaches:
// each request finds the Remora that runs then, or assembles one, which has to
// be alone. Answers are held.
type lasting struct {
	reach *reach
	s     streams
	c     config.Config
	turn  chan struct{} // holds one element while a request is made
}

// RoundTrip implements [http.RoundTripper].
func (l lasting) RoundTrip(r *http.Request) (res *http.Response, err error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	n := needAll
	if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/search") || strings.HasSuffix(r.URL.Path, "/context") {
		n = needIndex
	}
	err = l.reach.local(r.Context(), l.s, l.c, n, func(t http.RoundTripper) error {
		if res, err = t.RoundTrip(r); err != nil {
			return err
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		res.Body = io.NopCloser(bytes.NewReader(body))
		return err
	})
	return res, err
}
