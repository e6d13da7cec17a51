package dialect

import "strings"

// finishReasons are the words of servers for how an answer ended, in lower case
// and without separators.
var finishReasons = func() map[string]string {
	all := map[string]string{}
	for meaning, words := range map[string]string{
		"stop": "stop endturn stopsequence stopsequences stopword stoptoken complete completed completion end endofturn endofsequence endofstring" +
			" eos eostoken eosfound done finish finished final success succeeded normal natural stopped",
		"length": "length maxtokens maxlength maxoutputtokens maxnewtokens maxcompletiontokens modellength tokenlimit tokenslimit lengthlimit" +
			" contextlength contextwindow modelcontextwindowexceeded outputlimit limit truncated",
		"tool_calls":     "toolcalls toolcall tooluse functioncall functioncalls tools tool",
		"content_filter": "contentfilter contentfiltered safety refusal refused recitation prohibitedcontent blocklist spii sensitive guardrailintervened blocked",
	} {
		for word := range strings.FieldsSeq(words) {
			all[word] = meaning
		}
	}
	return all
}()

// failures are parts of words for answers that are not whole.
var failures = [...]string{
	"error", "fail", "abort", "cancel", "interrupt", "timeout", "timedout", "pause", "filter", "block", "safety", "refus", "malformed",
	"overload", "ratelimit", "resource", "unavailable", "disconnect", "network", "incomplete", "pending", "progress", "queued",
}

// finishReason returns what a server's finish reason means in the terms of Chat
// Completions. A reason that no table knows is that of a whole answer, unless
// its name speaks of a failure; then it is kept as it is.
func finishReason(reason string) string {
	word := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(strings.TrimSpace(reason)))
	if meaning, known := finishReasons[word]; known {
		return meaning
	}
	if word == "" || word == "null" || word == "none" {
		return ""
	}
	for _, f := range failures {
		if strings.Contains(word, f) {
			return reason
		}
	}
	return "stop"
}

// endWithout sets the finish reason of a reply that came whole but gave none.
func (r *Reply) endWithout() {
	if r.Finish == "" && r.Text != "" && !r.Calls {
		r.Finish = "stop"
	}
}
