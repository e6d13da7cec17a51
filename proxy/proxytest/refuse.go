package proxytest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// refuse answers conversations that the server does not take, with the words that the real ones use.
func (l *LLM) refuse(w http.ResponseWriter, r Recorded) bool {
	if n := chars(r); l.MaxContext > 0 && n > l.MaxContext {
		writeError(w, http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", fmt.Sprintf(
			"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. "+
				"Please reduce the length of the messages.", l.MaxContext, n))
		return true
	}
	if l.Strict == Lenient {
		return false
	}
	why := ""
	for i, m := range r.Messages {
		switch {
		case m.Role == "user" && i > 0 && r.Messages[i-1].Role == "user":
			why = "Conversation roles must alternate user/assistant/user/assistant/..."
		case (m.Role == "system" || m.Role == "developer") && i > 0:
			why = "System message must be at the beginning."
		}
	}
	switch {
	case why == "":
		return false
	case l.Strict == VLLM:
		writeJSON(w, http.StatusBadRequest, map[string]any{
			"object": "error", "message": why, "type": "BadRequestError", "param": nil, "code": http.StatusBadRequest,
		})
	default:
		writeJSON(w, http.StatusInternalServerError, map[string]any{"error": map[string]any{
			"code": http.StatusInternalServerError, "message": "Jinja Exception: " + why, "type": "server_error",
		}})
	}
	return true
}

// chars stands in for a count of tokens.
func chars(r Recorded) int {
	n := 0
	for _, m := range r.Messages {
		n += len(m.Text)
	}
	return n
}

func writeError(w http.ResponseWriter, status int, kind, code, message string) {
	e := map[string]any{"message": message, "type": kind, "param": nil, "code": nil}
	if code != "" {
		e["code"] = code
	}
	writeJSON(w, status, map[string]any{"error": e})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
