package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/remora-proxy/remora/recall"
)

// Events are log lines with these messages. They name a session by a hash, and
// hold no credential, no text and no part of a body.
const (
	eventRecall       = "memory_gateway_recall_succeeded"
	eventRecallFailed = "memory_gateway_recall_failed"
	eventAdd          = "memory_gateway_add_succeeded"
	eventAddFailed    = "memory_gateway_add_failed"
	eventFlush        = "memory_gateway_flush_succeeded"
	eventFlushFailed  = "memory_gateway_flush_failed"
)

func (g *Gateway) noteRecall(scopes []recall.SearchScope, count int) {
	g.recalls.Add(1)
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	g.deps.Log.Info(eventRecall, "scope", strings.Join(names, ","), "count", count)
}

func (g *Gateway) noteRecallFailed(f *failure) {
	g.count(f)
	g.deps.Log.Warn(eventRecallFailed, "operation", string(f.op), "category", string(f.category), "status", f.status)
}

func (g *Gateway) noteAdd(session string, count int) {
	g.added.Add(1)
	g.deps.Log.Info(eventAdd, "session", g.hashed(session), "count", count)
}

func (g *Gateway) noteAddFailed(session string, f *failure) {
	g.count(f)
	g.deps.Log.Warn(eventAddFailed, "session", g.hashed(session), "operation", string(f.op), "category", string(f.category), "status", f.status)
}

func (g *Gateway) noteFlush(session string) {
	g.flushed.Add(1)
	g.deps.Log.Info(eventFlush, "session", g.hashed(session))
}

func (g *Gateway) noteFlushFailed(session string, f *failure) {
	g.count(f)
	g.deps.Log.Warn(eventFlushFailed, "session", g.hashed(session), "operation", string(f.op), "category", string(f.category), "status", f.status,
		"add_succeeded", true)
}

func (g *Gateway) count(f *failure) { g.failed[f.op][f.category].Add(1) }

// hashed returns the name of a session in events: the same session of the same
// user has the same name.
func (g *Gateway) hashed(session string) string {
	sum := sha256.Sum256([]byte("remora gateway session\x00" + g.base + "\x00" + g.cfg.UserID + "\x00" + session))
	return hex.EncodeToString(sum[:8])
}
