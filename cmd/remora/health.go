package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/api/rest"
	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/proxy/problem"
)

// What the health listener serves at the same time, on twice as many connections
// ([listener.Limit]), how many of these requests may be scrapes, so that slow
// ones leave room for probes, and how long a request that is in progress may
// take at the end. Heads and idle connections have the limits of the reverse
// listener (config.Server), but for the size of a head.
const (
	maxHealthRequests = 16
	maxScrapes        = 4
	healthDrain       = time.Second
)

// newHealth opens the health listener, on a socket unless it is nil. It returns
// nil if there is none.
func (s *system) newHealth(socket net.Listener, log *slog.Logger) (*listener.Server, error) {
	if s.config.Health == "" {
		return nil, nil
	}
	own := s.config.Server
	own.Listen, own.Drain, own.Limit, own.MaxHeaderBytes = s.config.Health, healthDrain, listener.NewLimit(maxHealthRequests), 16<<10
	server := listener.New(s.healthHandler(), own, log)
	if socket != nil {
		server.Use(socket)
		return server, nil
	}
	if err := server.Listen(); err != nil {
		return nil, fmt.Errorf("health listener: %w; health.listen takes another address", err)
	}
	return server, nil
}

// healthHandler answers probes and Prometheus, and nothing else. It needs no
// credential: what it tells names nobody. On loopback, where any page in a browser
// can reach it, it answers only to the names that the control plane answers to.
//
// A pod is ready once traffic passes. The store's state does not count: without
// it traffic passes without memory, and a sidecar that is not ready would take
// its agent out of service as well.
func (s *system) healthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { listener.Live(w) })
	passes := func(w http.ResponseWriter, _ *http.Request) {
		if !s.accepting.Load() {
			problem.New(http.StatusServiceUnavailable, "unavailable", "no traffic passes: Remora starts, or stops").Write(w)
			return
		}
		s.ready(w)
	}
	mux.HandleFunc("GET /readyz", passes)
	mux.HandleFunc("GET /startupz", passes)
	mux.Handle("GET /metrics", atMost(maxScrapes, s.telemetry.Scrape()))
	return rest.Guard(mux, rest.GuardOptions{Loopback: s.config.HealthLoopback(), Hosts: s.config.API.Hosts, Name: "health listener", Log: s.log})
}

// ready answers a probe that is met. It also tells if memories will be lost.
func (s *system) ready(w http.ResponseWriter) {
	listener.Live(w)
	if s.lifetime != machine.Lasting {
		fmt.Fprintf(w, "warning: memories will be lost: their directory does not last: %s\n", s.lifetime.Reason())
	}
}

// atMost serves n requests at the same time with h, and refuses others.
func atMost(n int, h http.Handler) http.Handler {
	places := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			h.ServeHTTP(w, r)
		default:
			problem.New(http.StatusServiceUnavailable, "unavailable", "too many requests for metrics are in progress").Write(w)
		}
	})
}

// whileAccepting notes that the listeners accept, from when they run until they
// begin to close.
func (s *system) whileAccepting(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		s.accepting.Store(true)
		defer s.accepting.Store(false) // also where a listener has failed
		defer context.AfterFunc(ctx, func() { s.accepting.Store(false) })()
		return run(ctx)
	}
}

// healthStage serves the health listener, if there is one.
func (s *system) healthStage() stage {
	return stage{"health", func(ctx context.Context) error {
		if s.probes == nil {
			<-ctx.Done()
			return nil
		}
		return s.probes.Serve(ctx)
	}, closePatience}
}

// adminMetrics answers Prometheus on the control plane, for the admin.
func (s *system) adminMetrics() http.Handler {
	scrape := s.telemetry.Scrape()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := s.service.Authenticate(r.Context(), request.Credential(r), "")
		if err == nil && !who.Everything() {
			err = api.ErrForbidden
		}
		if err != nil {
			request.Fail(w, s.log, err)
			return
		}
		scrape.ServeHTTP(w, r)
	})
}

// meter returns what histograms of exchanges are made with, nil where nobody
// has asked for metrics: each exchange is recorded in them, which costs time
// (docs/benchmarks.md). Counters and gauges cost nothing until somebody asks.
func (s *system) meter() metric.MeterProvider {
	if s.config.Health == "" && !s.telemetry.Sends {
		return nil
	}
	return s.telemetry.Meters
}
