package dialect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMemoryCalls(t *testing.T) {
	for name, c := range map[string]struct {
		d    Dialect
		body string
		want []MemoryCall
	}{
		"messages": {Messages{}, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"ok"},
			{"type":"tool_use","id":"t1","name":"memory","input":{"command":"create","path":"/memories/a.md","file_text":"likes tea"}},
			{"type":"tool_use","id":"t2","name":"memory","input":{"command":"view","path":"/memories"}},
			{"type":"tool_use","id":"t3","name":"other","input":{"command":"create","file_text":"no"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"done"}]}]}`, []MemoryCall{{"t1", "/memories/a.md", "likes tea"}}},
		"failed": {Messages{}, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[
			{"type":"tool_use","id":"t1","name":"memory","input":{"command":"insert","path":"/memories/a","insert_line":0,"insert_text":"x"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"no"}]}]}`, nil},
		"chat": {Chat{}, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"memory","arguments":"{\"command\":\"str_replace\",\"path\":\"/memories/a\",\"old_str\":\"a\",\"new_str\":\"lives in Rome\"}"}},
			{"id":"c2","type":"function","function":{"name":"memory","arguments":"{broken"}}]},{"role":"tool","tool_call_id":"c1","content":"ok"}]}`,
			[]MemoryCall{{"c1", "/memories/a", "lives in Rome"}}},
		"none": {Chat{}, `{"messages":[{"role":"user","content":"hi"}]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := c.d.Parse([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, MemoryCalls(c.d, req)); diff != "" && !(len(c.want) == 0 && len(MemoryCalls(c.d, req)) == 0) {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
