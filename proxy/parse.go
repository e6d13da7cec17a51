package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/ledger"
	"github.com/remora-proxy/remora/storage"
)

// messageBytes is what a message of a request takes in memory besides its text,
// with its hashes. Thousands of short ones take more than their bodies.
const messageBytes = 128

// parse is the second stage: it decodes the body and finds the request and the
// client in it. A Status other than "" says why the request gets no memory.
func (x *exchange) parse(p *payload) Status {
	var err error
	p.plain = p.raw
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(x.r.Header["Content-Encoding"], ",")))
	if encoding != "" && encoding != "identity" {
		if p.plain, err = decodeRequest(encoding, p.raw.bytes, x.h.cfg.Limits.BodyBytes, &x.h.bodies); err != nil {
			if errors.Is(err, errTooLarge) {
				return StatusTooLarge
			}
			return StatusUnsupported
		}
	}
	if x.read.req, err = x.api.d.Parse(p.plain.bytes); err != nil {
		return StatusUnsupported
	}
	if !p.plain.charge(int64(len(x.read.req.Messages)) * messageBytes) {
		return StatusTooLarge
	}
	if x.read.req.Model == "" && x.api.within != "" {
		x.read.req.Model = pathModel(x.r.URL.Path)
	}
	x.read.client = x.h.identity.Profile(x.r.Header, x.read.req)
	x.trace.model(x.read.req.Model)
	return ""
}

// caller is whose memory a request is about.
type caller struct {
	secret []byte // the install secret
	scope  storage.Scope
}

// resolve is the third stage: it finds the caller by the head and the ids in
// the body alone, so that no text is read for a request without memory. A
// Status other than "" says why there is no caller.
func (x *exchange) resolve() (who caller, status Status) {
	if who.secret = x.h.installSecret(x.ctx); who.secret == nil {
		if x.rights.persist {
			x.h.stats.TooEarly.Add(1)
		}
		return who, StatusUnavailable
	}
	var ok bool
	var bad identity.Unusable
	if who.scope, ok, bad = x.h.identity.Scope(who.secret, x.r.Header, x.read.req, x.read.client); !ok {
		x.h.reportUnusable(bad)
		return who, StatusNoUser
	}
	return who, ""
}

// reportUnusable logs once what can't be a name, and where it was.
func (h *Handler) reportUnusable(bad identity.Unusable) {
	if bad != (identity.Unusable{}) {
		h.warnOnce("in", bad.Source, "because", "a name there identifies nobody: it "+bad.Why)
	}
}

// warnOnce warns that a request gets no memory, with attributes that are texts
// of Remora's own or names of configured headers, so that there are few; each
// once.
func (h *Handler) warnOnce(attrs ...any) {
	if _, warned := h.warned.LoadOrStore(fmt.Sprint(attrs...), struct{}{}); !warned {
		h.log.Warn("a request gets no memory", attrs...)
	}
}

// secretPause is how long awaitSecret waits between two tries.
const secretPause = 50 * time.Millisecond

// awaitSecret asks the store for the install secret until it has it. A request
// asks, too, but has little time, and nothing of it is remembered if the store
// is busy then.
func (h *Handler) awaitSecret(ctx context.Context) {
	for h.deps.Local != nil && ctx.Err() == nil && h.installSecret(ctx) == nil {
		pause(ctx, secretPause)
	}
}

// KnowsUsers reports whether the store has said what users are identified by.
// Before that nothing is remembered, and counted as Stats.TooEarly.
func (h *Handler) KnowsUsers() bool { return h.secret.Load() != nil }

// installSecret returns the secret that tenants and turn ids derive from, nil
// while the store can't provide it.
func (h *Handler) installSecret(ctx context.Context) []byte {
	if p := h.secret.Load(); p != nil {
		return *p
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.FirstDeadline)
	defer cancel()
	s, err := h.deps.Local.InstallSecret(ctx)
	if err != nil || len(s) == 0 {
		return nil
	}
	if h.deps.Journal != "" {
		if err := h.ledger.OpenJournal(h.deps.Journal, s); err != nil {
			h.log.Error("a kill may lose what was inserted last: the ledger's journal can't be used", "error", err)
		}
	}
	h.turns.Store(ledger.NewTurnIDs(s))
	h.secret.Store(&s)
	return s
}
