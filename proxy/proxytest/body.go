package proxytest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// ChatBody returns the body of a Chat Completions request with one message for
// each line, "role: text". The roles call and result stand for a tool call with
// that id and for its result.
func ChatBody(lines ...string) string {
	var out []string
	for _, l := range lines {
		role, text, _ := strings.Cut(l, ": ")
		switch role {
		case "call":
			out = append(out, fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}]}`, text))
		case "result":
			out = append(out, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"ok"}`, text))
		default:
			out = append(out, fmt.Sprintf(`{"role":%q,"content":%s}`, role, quoted(text)))
		}
	}
	return `{"model":"m","messages":[` + strings.Join(out, ",") + `]}`
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}
