package proxy

import (
	"net/http"
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// route names the dialect of a path: the request's path ends in suffix, which begins at a segment border.
type route struct {
	suffix string
	d      dialect.Dialect
	counts bool // the answer is a count of tokens, and the request is no part of a conversation
}

// routes are all paths that get a memory. Any other passes through as it came.
func routes() []route {
	return []route{
		{"/chat/completions", dialect.Chat{}, false},
		{"/v1/messages", dialect.Messages{}, false}, // whole: OpenAI has a /messages of its own, under /v1/threads
		{"/v1/messages/count_tokens", dialect.Messages{}, true},
		{"/responses", dialect.Responses{}, false},
		{"/responses/input_tokens", dialect.Responses{}, true},
		{"/api/chat", dialect.Ollama{}, false},
	}
}

// route returns the route of a request; its dialect is nil where there is none.
func (h *Handler) route(r *http.Request) route {
	if r.Method != http.MethodPost {
		return route{}
	}
	for _, to := range h.routes {
		if strings.HasSuffix(r.URL.Path, to.suffix) {
			if to.counts && !h.cfg.Injection.CountTokens {
				return route{}
			}
			return to
		}
	}
	return route{}
}
