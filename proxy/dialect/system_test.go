package dialect

import (
	"slices"
	"strings"
	"testing"
)

// What SystemMayStartWith denies is not so, whatever a system prompt looks
// like, and of most it denies it.
func TestSystemMayStartWith(t *testing.T) {
	const prefix = "You are a title"
	for content, want := range map[string]bool{
		`"You are a title generator"`:      true,
		`"You are a title"`:                true,
		`"You are a titl"`:                 false,
		`"You are a Title"`:                false,
		`""`:                               false,
		`null`:                             false,
		`"  You are a title"`:              true,
		`"\n You are a title"`:             true,
		`"You are\u0020a title generator"`: true,
		`"You \"are\" not a title"`:        true, // unknown
		`"Yes, \"you\" are a title"`:       false,
		`"\u0059ou are a title"`:           true,
		`"é"`:                              true, // unknown
		`[{"type":"text","text":"x"}]`:     true, // unknown
		`[{"type":"text","text":"You are a title, really"}]`: true,
	} {
		for _, body := range []string{
			`{"messages":[{"role":"system","content":` + content + `},{"role":"user","content":"u"}]}`,
			`{"messages":[{"role":"system","content":"Be brief."},{"role":"developer","content":` + content + `},{"role":"user","content":"u"}]}`,
			`{"messages":[{"role":"tool","content":"Be brief."},{"role":"system","content":` + content + `},{"role":"user","content":"u"},{"role":"system","content":"` + prefix + `"}]}`,
		} {
			req, err := Chat{}.Parse([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if got := req.SystemMayStartWith(prefix); got != want {
				t.Errorf("%s: got %v, want %v", body, got, want)
			}
			does := slices.ContainsFunc(req.SystemPrefixes(512), func(s string) bool { return strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), prefix) })
			if does && !req.SystemMayStartWith(prefix) {
				t.Errorf("%s: starts with it, and is denied", body)
			}
		}
	}
	req, err := Messages{}.Parse([]byte(`{"system":"You are a title generator","messages":[{"role":"user","content":"u"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if !req.SystemMayStartWith(prefix) || req.SystemMayStartWith("Analyze") {
		t.Error("a system prompt outside the messages is ignored")
	}
}
