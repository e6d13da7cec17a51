package mcp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
)

func TestListOfTools(t *testing.T) {
	c := newClient(t)
	res, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	readOnly := map[string]bool{"search_memory": true, "list_memories": true, "get_memory": true, "context": true}
	destructive := map[string]bool{"update_memory": true, "delete_memories": true, "delete_all_memories": true}
	var names []string
	for _, tool := range res.Tools {
		names = append(names, tool.Name)
		a := tool.Annotations
		if tool.Title == "" || len(tool.Description) < 40 || a == nil {
			t.Fatalf("%s: title %q, description %q, annotations %v", tool.Name, tool.Title, tool.Description, a)
		}
		if a.ReadOnlyHint != readOnly[tool.Name] || *a.DestructiveHint != destructive[tool.Name] || *a.OpenWorldHint {
			t.Errorf("%s: %+v", tool.Name, a)
		}
		if idempotent := tool.Name != "add_memories" && tool.Name != "update_memory"; a.IdempotentHint != idempotent {
			t.Errorf("%s: idempotent %t", tool.Name, a.IdempotentHint)
		}
		in := tool.InputSchema.(map[string]any)
		properties := in["properties"].(map[string]any)
		for name, p := range properties {
			p := p.(map[string]any)
			limited := p["enum"] != nil || p["maxLength"] != nil || p["maximum"] != nil || p["maxItems"] != nil
			if !limited || p["description"] == nil {
				t.Errorf("%s: %s has no limit or no description: %v", tool.Name, name, p)
			}
		}
		required, _ := in["required"].([]any)
		for _, name := range required {
			if properties[name.(string)] == nil {
				t.Errorf("%s: requires %v, which it does not have", tool.Name, name)
			}
		}
		if tool.OutputSchema == nil {
			t.Errorf("%s has no output schema", tool.Name)
		}
	}
	want := []string{
		"add_memories", "context", "delete_all_memories", "delete_memories", "get_memory", "list_memories", "search_memory", "update_memory",
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("tools %v", names)
	}
}

// TestEveryTool saves, finds, corrects and deletes by the names of the schemas.
func TestEveryTool(t *testing.T) {
	c := newClient(t)
	contains(t, c.ok(nil, "context", ""), "Nothing is remembered")
	contains(t, c.ok(nil, "list_memories", `{}`), "Nothing is saved")
	contains(t, c.ok(nil, "search_memory", `{"query":"boat"}`), "Nothing is remembered")
	var saved results
	said := c.ok(&saved, "add_memories", `{"text":"My sister Ada sails the boat Nautilus.","memories":["I work as a baker in Porto."],"tags":["family"]}`)
	contains(t, said, "Saved: My sister Ada sails the boat Nautilus. (id ", "Saved: I work as a baker in Porto.")
	if len(saved.Results) != 2 || saved.Results[0].Event != "added" {
		t.Fatalf("%+v", saved)
	}
	id := saved.Results[0].ID
	c.ok(&saved, "add_memories", `{"text":"My sister Ada sails the boat Nautilus."}`)
	if saved.Results[0].Event != "known" || saved.Results[0].ID != id {
		t.Errorf("again: %+v", saved)
	}
	c.ok(&saved, "add_memories", `{"text":"I moved to Lisbon, and work as a baker in Lisbon now."}`)

	var found results
	said = c.ok(&found, "search_memory", `{"query":"Which boat does my sister sail?","limit":1}`)
	if contains(t, said, "1. My sister Ada sails the boat Nautilus. (fact, 2", "id "+id); len(found.Results) != 1 || found.Results[0].ID != id {
		t.Errorf("found %+v", found)
	}
	if found.Results[0].Score <= 0 {
		t.Error("no score")
	}
	c.ok(&found, "search_memory", `{"query":"boat","tags":["work"]}`)
	if len(found.Results) > 0 {
		t.Errorf("with another tag: %+v", found)
	}
	contains(t, c.ok(nil, "context", `{"facts":5}`), "Known facts", "Nautilus")

	var list struct {
		Memories []item
		Cursor   string
	}
	c.ok(&list, "list_memories", `{"limit":1}`)
	if len(list.Memories) != 1 || list.Cursor == "" {
		t.Fatalf("first page %+v", list)
	}
	first := list.Memories[0].ID
	c.ok(&list, "list_memories", fmt.Sprintf(`{"limit":500,"cursor":%q}`, list.Cursor))
	if len(list.Memories) == 0 || list.Memories[0].ID == first {
		t.Errorf("second page %+v", list)
	}
	for arguments, n := range map[string]int{
		`{"tags":["family"]}`: 1, `{"since":"2001-01-01","until":"2002-01-01"}`: 0, `{"kind":"episode"}`: 0, `{"kind":"all","tags":["family"]}`: 1, // the work in Porto has ended
	} {
		list.Memories = nil
		if c.ok(&list, "list_memories", arguments); len(list.Memories) != n {
			t.Errorf("%s: %d memories", arguments, len(list.Memories))
		}
	}

	contains(t, c.ok(nil, "update_memory", fmt.Sprintf(`{"id":%q,"text":"My sister Ada sails the boat Argo.","tags":["boats"]}`, id)), "Corrected: My sister Ada sails the boat Argo.")
	var got struct{ Memory api.Memory }
	c.ok(&got, "get_memory", fmt.Sprintf(`{"id":%q}`, id))
	if got.Memory.Text != "My sister Ada sails the boat Argo." || !slices.Equal(got.Memory.Tags, []string{"boats"}) || got.Memory.Source != "mcp" {
		t.Errorf("%+v", got.Memory)
	}
	var gone struct {
		Deleted, Missing []string
		UndoUntil        string
	}
	said = c.ok(&gone, "delete_memories", fmt.Sprintf(`{"ids":["nothing",%q]}`, id))
	if !slices.Equal(gone.Deleted, []string{id}) || !slices.Equal(gone.Missing, []string{"nothing"}) || gone.UndoUntil == "" {
		t.Errorf("%+v", gone)
	}
	contains(t, said, "Deleted 1 memory.", "There is no nothing.")
	contains(t, c.fails("get_memory", fmt.Sprintf(`{"id":%q}`, id)), noSuch)
	contains(t, c.fails("delete_memories", fmt.Sprintf(`{"ids":[%q]}`, id)), noSuch)
	contains(t, c.fails("delete_memories", fmt.Sprintf(`{"ids":[%q,"x"]}`, id)), noSuch)
	contains(t, c.ok(nil, "delete_all_memories", ""), "Deleted 2 memories. They can be brought back until 2")
	contains(t, c.ok(nil, "delete_all_memories", ""), "nothing to delete")
	contains(t, c.ok(nil, "list_memories", `{}`), "Nothing is saved")
}

// TestArguments gives arguments by other names and in other forms.
func TestArguments(t *testing.T) {
	c := newClient(t)
	for _, arguments := range []string{
		`{"content":"The kiln runs at 900 degrees."}`, `{"memory":"The wheel is in the shed."}`, `{"text":["The clay is red."]}`,
		`{"messages":[{"role":"user","content":"The glaze is blue."},{"role":"assistant","content":"Noted, blue."}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"The studio is on the second floor."}]}]}`,
		`{"messages":"[{\"role\":\"user\",\"content\":\"The lease ends in March.\"}]"}`,
		`{"text":"[\"The rent is low.\",\"The landlord is deaf.\"]"}`,
		`"{\"text\":\"The cat sleeps in the kiln room.\"}"`, `{"memories":["The tap leaks."],"unknown":{"a":[1,{}]}}`,
		`{"text":"The dog guards the shed.","tags":"pets, home"}`, `{"text":"The parrot swears.","categories":"[\"pets\"]"}`,
	} {
		contains(t, c.ok(nil, "add_memories", arguments), "Saved: The ")
	}
	var list struct{ Memories []item }
	if c.ok(&list, "list_memories", `{"limit":"500"}`); len(list.Memories) != 12 {
		t.Errorf("%d memories: %+v", len(list.Memories), list.Memories)
	}
	for i := range list.Memories {
		if strings.Contains(list.Memories[i].Text, "Noted") {
			t.Error("what the assistant said was saved")
		}
	}
	id := list.Memories[0].ID
	for _, arguments := range []string{`{"tags":["pets"]}`, `{"categories":"pets"}`, `"{\"tags\":\"[\\\"pets\\\"]\"}"`} {
		if c.ok(&list, "list_memories", arguments); len(list.Memories) != 2 {
			t.Errorf("%s: %+v", arguments, list.Memories)
		}
	}
	for _, arguments := range []string{
		`{"query":"kiln","limit":1}`, `{"q":"kiln","top_k":"1"}`, `{"question":"kiln","topK":1.0}`, `{"text":"kiln","k":" 1 "}`,
		`{"search":"kiln","page_size":"1.0"}`, `{"query":["kiln"],"limit":-3}`, `"{\"query\":\"kiln\",\"limit\":\"1\"}"`, `{"query":null,"q":"kiln","limit":1}`,
	} {
		var found results
		if c.ok(&found, "search_memory", arguments); len(found.Results) != 1 || !strings.Contains(found.Results[0].Text, "kiln") {
			t.Errorf("%s: %+v", arguments, found)
		}
	}
	for _, name := range []string{"id", "memory_id", "memoryId"} {
		c.ok(nil, "get_memory", fmt.Sprintf(`{%q:%q}`, name, id))
	}
	var all struct{ Memories []item }
	c.ok(&all, "list_memories", `{"limit":100}`)
	for i, form := range []string{
		`{"ids":[%q]}`, `{"memory_ids":[%q]}`, `{"memory_ids":"[\"%s\"]"}`, `{"ids":%q}`, `{"id":%q}`, `{"memoryId":%q}`, `"{\"ids\":[\"%s\"]}"`, `{"ids":" %s, "}`,
	} {
		c.ok(nil, "delete_memories", fmt.Sprintf(form, all.Memories[i].ID))
	}
	if c.ok(&all, "list_memories", `{"limit":100}`); len(all.Memories) != 4 {
		t.Errorf("%d are left", len(all.Memories))
	}
}

// TestErrors checks that errors name the field and never a value.
func TestErrors(t *testing.T) {
	c := newClient(t)
	const secret = "ghp_" + "x7Kq9ZpL2mVb8RtYw3NcD5sFgH1jQe4uAo6I"
	long := strings.Repeat("kiln ", 400)
	for _, tt := range []struct{ tool, arguments, want string }{
		{"search_memory", ``, "query: is required"},
		{"search_memory", `{"query":" "}`, "query: is required"},
		{"search_memory", `{"query":{"a":"kiln"}}`, "query: must be a string"},
		{"search_memory", `{"query":"kiln","limit":"many"}`, "limit: must be a whole number"},
		{"search_memory", `{"query":"kiln","limit":1.5}`, "limit: must be a whole number"},
		{"search_memory", `{"query":"kiln","tags":{"a":1}}`, "tags: must be a list of strings"},
		{"search_memory", `{"query":` + quote(strings.Repeat("kiln", 2000)) + `}`, "query: must have at most 4096 bytes"},
		{"search_memory", `{"query":"kiln","user_id":"a\u0000b"}`, "user: "},
		{"search_memory", `"kiln"`, "arguments: is no JSON"},
		{"search_memory", `["kiln"]`, "arguments: must be an object"},
		{"search_memory", `7`, "arguments: must be"},
		{"search_memory", `{"query":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "arguments: is nested deeper"},
		{"add_memories", `{}`, "text: is required"},
		{"add_memories", `{"text":[]}`, "text: is required"},
		{"add_memories", `{"text":[{"kiln":1}]}`, "text: must be a list of strings"},
		{"add_memories", `{"text":` + quote(long) + `}`, "text: is longer than 1024 characters"},
		{"add_memories", `{"text":"The kiln.","tags":["` + strings.Repeat("kiln", 64) + `"]}`, "tags[0]: must have 1 to 128 bytes"},
		{"add_memories", `{"text":"The kiln.","tags":["said:kiln"]}`, "tags: one of them begins like a tag of the engine"},
		{"add_memories", `{"text":"My key is ` + secret + `"}`, ""},
		{"list_memories", `{"cursor":"kiln"}`, "cursor: is not one of this list"},
		{"list_memories", `{"since":"kiln"}`, "since: must be a time"},
		{"list_memories", `{"kind":"kiln"}`, "kind: must be one of"},
		{"get_memory", `{}`, "id: is required"},
		{"get_memory", `{"id":"kiln"}`, noSuch},
		{"update_memory", `{"id":"kiln"}`, "text: is required"},
		{"update_memory", `{"id":"kiln","text":"x"}`, noSuch},
		{"update_memory", `{"id":"kiln","text":` + quote(long) + `}`, "text: is longer"},
		{"delete_memories", `{}`, "ids: is required"},
		{"delete_memories", `{"ids":["kiln"]}`, noSuch},
		{"context", `{"facts":"kiln"}`, "facts: must be a whole number"},
	} {
		if tt.want == "" { // it is saved without what is secret
			if said, _ := c.call(tt.tool, tt.arguments); strings.Contains(said, secret) {
				t.Errorf("%s %s: %q", tt.tool, tt.arguments, said)
			}
			continue
		}
		said := c.fails(tt.tool, tt.arguments)
		if contains(t, said, tt.want); strings.Contains(said, "kiln") {
			t.Errorf("%s %.40s: %q quotes a value", tt.tool, tt.arguments, said)
		}
	}
	if _, err := c.CallTool(t.Context(), nil); err == nil {
		t.Error("a call without a name")
	}
	var part results
	said := c.ok(&part, "add_memories", `{"memories":[`+quote(long)+`,"The wheel is new."]}`)
	if contains(t, said, "Fact 1 was not saved: text: is longer", "Saved: The wheel is new."); len(part.Results) != 2 || part.Results[0].Event != "refused" {
		t.Errorf("%+v", part)
	}
}
