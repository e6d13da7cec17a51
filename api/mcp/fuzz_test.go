package mcp

import (
	"encoding/json"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remora-proxy/remora/api"
)

// FuzzCall calls tools with arguments that are anything. Each answer must be a
// result with one text, and nothing may panic.
func FuzzCall(f *testing.F) {
	s := newService(f)
	face := newFace(Options{Compat: Sets()})
	caller := session{verbs: Local(s, api.Principal{Admin: true, By: "fuzz"}), target: api.Target{User: "fuzz"}, base: "http://localhost"}
	var names []string
	for _, t := range toolsOf(Sets()) {
		names = append(names, t.name)
	}
	for i := range names {
		for _, arguments := range []string{
			``, `{}`, `null`, `[]`, `"{}"`, `"`, `{"query":"x","text":"I like x.","id":"x","ids":"[\"a\"]","memory_ids":["a"]}`,
			`{"limit":"5","top_k":1e99,"tags":"a,b","cursor":"x","since":"2024-01-01","kind":"all","facts":-1,"user_id":"\u0000"}`,
			`{"messages":[{"role":"user","content":[{"text":"a"},{}]},{"role":"assistant"}],"metadata":{"a":1,"tags":[1]},"agent_id":"a","run_id":"r"}`,
			`{"filters":{"AND":[{"OR":[{"user_id":{"in":["a"]}}]},{"created_at":{"gt":"2024-01-01"}}]},"page":"2","page_size":3}`,
			`{"entities":[{"name":"a","entityType":"b","observations":["c","a: b"]}],"relations":[{"from":"a","to":"a","relationType":"is"}]}`,
			`{"entityNames":["a"],"names":["a"],"observations":[{"entityName":"a","contents":["x"]}],"deletions":[{"entityName":"a","observations":["c"]}]}`,
			`{"command":"create","path":"/memories/a","file_text":"a\nb"}`, `{"command":"view","path":"/memories/a","view_range":[2,-1]}`,
			`{"command":"str_replace","path":"/memories/a","old_str":"a","new_str":"\u2060"}`, `{"command":"insert","path":"/memories/a","insert_line":9,"insert_text":""}`,
			`{"command":"rename","old_path":"/memories/a","new_path":"/memories/b/c"}`, `{"command":"delete","path":"/memories/b"}`,
		} {
			f.Add(uint8(i), arguments)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, arguments string) {
		name := names[int(which)%len(names)]
		face.log = nil // a panic that is recovered would be logged, and panics here
		tool := face.tools[name]
		began := time.Now()
		res := face.call(t.Context(), caller, tool, json.RawMessage(arguments))
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		said, ok := res.Content[0].(*sdk.TextContent)
		if !ok || len(res.Content) != 1 || said.Text == "" {
			t.Fatalf("%s: %+v", name, res)
		}
		if res.IsError && said.Text == api.Detail(errPanic) {
			t.Errorf("%s is an error of its own", name)
		}
		if !res.IsError && tool.output != nil && res.StructuredContent == nil {
			t.Errorf("%s has no structured content", name)
		}
		if _, err := json.Marshal(res); err != nil {
			t.Error(err)
		}
	})
}
