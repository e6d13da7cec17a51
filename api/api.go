// Package api is the control plane: one [Service] with the verbs by which
// people and programs see, search, correct, share and erase what is remembered.
// The faces, REST, MCP and those compatible with other products, are packages
// below it, which turn their requests into calls of the Service and nothing
// else.
//
// It promises:
//
//   - Authorization happens here, once. Every verb takes a [Principal] and a
//     [Target]; outside the principal's rights everything is [ErrNotFound],
//     exactly like what never existed.
//   - Errors never quote a value, a text or a key. They name the field.
//   - What is changed by hand can be taken back for 24 hours, and each change
//     keeps the version before it. Erasing a user can't be taken back.
//   - Every field has a limit (limits.go), every list comes in pages, and an
//     export streams.
//
// The Service is safe for concurrent use. Nothing here is on the path of a
// proxied request.
package api

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// Store is what the Service reads of memories and records.
type Store interface {
	storage.Store
	storage.Local
	storage.Digester
	storage.ScopeLister
	storage.Prober
	storage.RecordReader
	storage.PrefixReader
}

// Deps are what a Service works with.
type Deps struct {
	Store    Store
	Pipeline *persist.Pipeline
	Engine   *recall.Engine
	// Recall configures the engines that answer questions about another day.
	Recall   recall.Config
	Identity *identity.Resolver
	Policy   *policy.Policy
	// Receipts are nil if none are kept.
	Receipts *receipt.Recorder
	// Redact is applied to what leaves: rules may have been added since it was
	// stored.
	Redact func(text string) string
	// HidesSecret reports whether a text holds a secret, which is then refused.
	HidesSecret func(text string) bool
	// Placeholder reports whether a text is what redaction writes.
	Placeholder func(text string) bool
	// Settle waits until what clients have got answers to is stored, so that an
	// erasure finds it; nil = nothing is to be waited for.
	Settle func(ctx context.Context) error
	// Prices are what models cost, for the money of exchanges; none = unknown.
	Prices []Price
	// Settings returns the settings in force; nil = none are known.
	Settings func() []Setting
	// LoginLink makes a link that opens the web page once; nil or "" = there is
	// no page to open.
	LoginLink func() (url string, expires time.Time)
	// Upstreams names the upstreams of the configuration, and Health returns
	// what the program knows of itself.
	Upstreams []string
	Health    func() Health
	Log       *slog.Logger // nil = none
	Now       func() time.Time
}

// Config of a Service.
type Config struct {
	// Token is the admin token. It opens everything.
	Token string
}

// Service has the verbs of the control plane. They are grouped by what they
// are about, and all of them are its methods.
type Service struct {
	*access
	memories
	questions
	intake
	files
	entries
	setup
}

// access decides what a caller may reach, and finds it. All verbs go through
// it.
type access struct {
	Deps
	token   string
	tenants tenants
	places  places
	prices  atomic.Pointer[[]Price] // in place of Deps.Prices; nil = these

	secretMu sync.Mutex
	secret   []byte
}

// Groups of verbs.
type (
	// memories lists, changes and erases memories.
	memories struct{ *access }
	// questions searches, aggregates and reports.
	questions struct {
		*access
		entries entries
		totals  totals
	}
	// intake takes in what is said, documents and exports.
	intake struct {
		*access
		extracting chan struct{} // held while a document is read
	}
	// files keeps the files of a memory tool.
	files struct{ *access }
	// entries keeps keyed values of tools.
	entries struct{ *access }
)

// New returns a Service. It does no I/O.
func New(cfg Config, deps Deps) *Service {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Redact == nil {
		deps.Redact = func(text string) string { return text }
	}
	if deps.HidesSecret == nil {
		deps.HidesSecret = func(string) bool { return false }
	}
	a := &access{Deps: deps, token: cfg.Token}
	return &Service{
		access: a, memories: memories{a}, questions: questions{access: a, entries: entries{a}}, intake: intake{access: a, extracting: make(chan struct{}, 1)},
		files: files{a}, entries: entries{a}, setup: setup{a},
	}
}

// purgeInterval is how often what was discarded is looked at.
const purgeInterval = time.Minute

// Run erases what was discarded once its time is over, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(purgeInterval)
	defer tick.Stop()
	for {
		n, err := s.Pipeline.Purge(ctx, s.Now())
		if err != nil && ctx.Err() == nil && !errors.Is(err, storage.ErrUnavailable) {
			s.Log.Warn("what was discarded is not erased yet", "error", err)
		}
		if n > 0 {
			s.Log.Info("erased what had been discarded", "memories", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// installSecret returns the secret that tenants derive from.
func (s *access) installSecret(ctx context.Context) ([]byte, error) {
	s.secretMu.Lock()
	defer s.secretMu.Unlock()
	if s.secret == nil {
		secret, err := s.Store.InstallSecret(ctx)
		if err != nil {
			return nil, err
		}
		s.secret = secret
	}
	return s.secret, nil
}
