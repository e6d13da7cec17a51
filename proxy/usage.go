package proxy

import (
	"log/slog"
	"sync"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/storage"
)

// usages are the tokens that upstreams have reported for each conversation
// since it was first seen here. Of conversations that are not used, the totals
// are dropped once maxUsages others were.
type usages struct {
	mu            sync.Mutex
	recent, older map[conversationKey]dialect.Usage
}

type conversationKey struct {
	scope        storage.Scope
	conversation string
}

const maxUsages = 4096

// add returns the totals of the conversation with u.
func (t *usages) add(key conversationKey, u dialect.Usage) dialect.Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	total, ok := t.recent[key]
	if !ok {
		total = t.older[key]
		if t.recent == nil || len(t.recent) >= maxUsages {
			t.recent, t.older = map[conversationKey]dialect.Usage{}, t.recent
		}
	}
	total.Input += u.Input
	total.Output += u.Output
	total.Cached += u.Cached
	total.Written += u.Written
	t.recent[key] = total
	return total
}

// countUsage counts and logs what the upstream has reported for an answer. The
// provider itself says so whether the prompt cache was spared.
func (h *Handler) countUsage(j *answer, u dialect.Usage) {
	if u == (dialect.Usage{}) {
		return
	}
	h.stats.InputTokens.Add(u.Input)
	h.stats.CacheRead.Add(u.Cached)
	h.stats.CacheWrite.Add(u.Written)
	attrs := []any{"input", u.Input, "cached", u.Cached, "written", u.Written, "output", u.Output}
	if j.turn.Conversation != "" {
		total := h.usages.add(conversationKey{j.turn.Scope, j.turn.Conversation}, u)
		attrs = append(attrs, slog.Group("conversation", "input", total.Input, "cached", total.Cached, "written", total.Written, "output", total.Output))
	}
	h.log.Info("tokens", attrs...)
}
