package proxytest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// refuse answers conversations that the server does not take, with the words
// that the real ones use.
func (l *LLM) refuse(w http.ResponseWriter, r Recorded) bool {
	if n := chars(r); l.MaxContext > 0 && n > l.MaxContext {
		if l.Strict == LMStudio && r.Stream {
			streamError(w, fmt.Sprintf("Trying to keep the first %d tokens when context the overflows. "+
				"However, the model is loaded with context length of only %d tokens, which is not enough.", n, l.MaxContext))
			return true
		}
		writeError(w, http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", fmt.Sprintf(
			"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. "+
				"Please reduce the length of the messages.", l.MaxContext, n))
		return true
	}
	if l.Strict == Lenient {
		return false
	}
	why := complaint(l.Strict, r.Messages)
	if why == "" {
		return false
	}
	switch l.Strict {
	case LlamaCPP:
		writeJSON(w, http.StatusInternalServerError, map[string]any{"error": map[string]any{
			"code": http.StatusInternalServerError, "type": "server_error",
			"message": "\n------------\nWhile executing CallExpression at line 47, column 32 in source:\n...== 0) %}↵" +
				"            {{- raise_exception('" + why[:min(len(why), 40)] + "...\n" +
				"                                           ^\nError: Jinja Exception: " + why,
		}})
	case LMStudio:
		message := fmt.Sprintf("Error rendering prompt with jinja template: %q. This is usually an issue with the model's prompt template.", why)
		if r.Stream {
			streamError(w, message)
			return true
		}
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": message})
	default:
		writeJSON(w, http.StatusBadRequest, map[string]any{
			"object": "error", "message": why, "type": "BadRequestError", "param": nil, "code": http.StatusBadRequest,
		})
	}
	return true
}

// complaint is what a chat template raises about the messages, "" where it
// takes them.
func complaint(s Strictness, messages []Message) string {
	for i, m := range messages {
		switch m.Role {
		case "user":
			if i > 0 && messages[i-1].Role == "user" {
				if s == Mistral {
					return "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
				}
				return "Conversation roles must alternate user/assistant/user/assistant/..."
			}
		case "system", "developer":
			switch {
			case i > 0:
				return "System message must be at the beginning."
			case m.Role == "developer" && s != VLLM: // which makes a system message of it
				return unknownRole(s, m.Role)
			}
		case "assistant", "tool":
		default:
			return unknownRole(s, m.Role)
		}
	}
	return ""
}

func unknownRole(s Strictness, role string) string {
	if s == Mistral {
		return "Only user, assistant and tool roles are supported, got " + role + "."
	}
	return "Unexpected message role."
}

// chars returns a substitute for a count of tokens.
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

// streamError is an error in a stream whose head has left.
func streamError(w http.ResponseWriter, message string) {
	event, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message}})
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	_, _ = fmt.Fprintf(w, "event: error\ndata: %s\n\n", event)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
