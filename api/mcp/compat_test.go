package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// sameJSON reports whether a tool's text is its structured content.
func sameJSON(t *testing.T, c *client, name, arguments string) {
	t.Helper()
	var structured, written any
	if err := json.Unmarshal([]byte(c.ok(&structured, name, arguments)), &written); err != nil {
		t.Errorf("%s: the text is no JSON: %v", name, err)
	}
	a, _ := json.Marshal(structured)
	b, _ := json.Marshal(written)
	if string(a) != string(b) {
		t.Errorf("%s: %s, but as text %s", name, a, b)
	}
}

// TestNamesOfSets checks the names and the arguments of the sets against those
// of the servers that they stand in for.
func TestNamesOfSets(t *testing.T) {
	for set, tools := range map[string]map[string][]string{
		SetMem0: {
			"add_memory":          {"text", "messages", "user_id", "agent_id", "app_id", "run_id", "metadata", "enable_graph"},
			"search_memories":     {"query", "filters", "limit", "enable_graph"},
			"get_memories":        {"filters", "page", "page_size", "enable_graph"},
			"get_memory":          {"memory_id"},
			"update_memory":       {"memory_id", "text"},
			"delete_memory":       {"memory_id"},
			"delete_all_memories": {"user_id", "agent_id", "app_id", "run_id"},
			"delete_entities":     {"user_id", "agent_id", "app_id", "run_id"},
			"list_entities":       {},
		},
		SetOpenMemory: {
			"add_memories": {"text", "infer"}, "search_memory": {"query"}, "list_memories": {}, "delete_memories": {"memory_ids"},
			"delete_all_memories": {},
		},
		SetReference: {
			"create_entities": {"entities"}, "create_relations": {"relations"}, "add_observations": {"observations"},
			"delete_entities": {"entityNames"}, "delete_observations": {"deletions"}, "delete_relations": {"relations"},
			"read_graph": {}, "search_nodes": {"query"}, "open_nodes": {"names"},
		},
		SetMemory: {"memory": {
			"command", "path", "view_range", "file_text", "old_str", "new_str", "insert_line", "insert_text", "old_path", "new_path",
		}},
		SetSearch: {"search": {"query"}, "fetch": {"id"}},
	} {
		byName := map[string]*tool{}
		for _, tool := range toolsOf([]string{set}) {
			byName[tool.name] = tool
		}
		for name, want := range tools {
			tool := byName[name]
			if tool == nil {
				t.Errorf("%s has no %s", set, name)
				continue
			}
			properties := tool.input["properties"].(map[string]any)
			if len(properties) != len(want) {
				t.Errorf("%s: %s has %d arguments, not %v", set, name, len(properties), want)
			}
			for _, argument := range want {
				if properties[argument] == nil {
					t.Errorf("%s: %s has no %s", set, name, argument)
				}
			}
		}
	}
}

func TestMem0(t *testing.T) {
	c := newClient(t, SetMem0)
	var saved results
	said := c.ok(&saved, "add_memory", `{"text":"ignored","messages":[{"role":"user","content":"I am allergic to peanuts."},{"role":"assistant","content":"Noted."}],
		"agent_id":"cook","run_id":"r1","metadata":{"category":"health","type":"allergy","n":3,"deep":{"x":1}}}`)
	if len(saved.Results) != 1 || saved.Results[0].Memory != "I am allergic to peanuts." || saved.Results[0].Event != "ADD" {
		t.Fatalf("%s", said)
	}
	id := saved.Results[0].ID
	c.ok(&saved, "add_memory", `{"text":"I am allergic to peanuts.","agent_id":"cook"}`)
	if saved.Results[0].Event != "NONE" || saved.Results[0].ID != id {
		t.Errorf("again: %+v", saved)
	}
	c.ok(nil, "add_memory", `{"text":"I love the opera Carmen.","app_id":"music"}`)
	c.ok(nil, "add_memory", `{"text":"My tent is green."}`)

	var m mem0Memory
	c.ok(&m, "get_memory", fmt.Sprintf(`{"memory_id":%q}`, id))
	if m.Memory != "I am allergic to peanuts." || m.UserID != "alice" || m.AgentID != "cook" || m.RunID != "r1" || string(m.Metadata["type"]) != `"allergy"` ||
		string(m.Metadata["n"]) != "3" || string(m.Metadata["deep"]) != `{"x":1}` || !slices.Equal(m.Categories, []string{"health"}) || m.CreatedAt == "" || m.Hash == "" {
		t.Errorf("%+v", m)
	}
	sameJSON(t, c, "get_memory", fmt.Sprintf(`{"memory_id":%q}`, id))

	for filters, n := range map[string]int{
		`{}`: 1, `{"AND":[{"agent_id":"cook"}]}`: 1, `{"AND":[{"agent_id":"pilot"}]}`: 0, `{"run_id":"r1"}`: 1, `{"run_id":"r2"}`: 0,
		`{"OR":[{"user_id":"*"}]}`: 1, `{"AND":[{"user_id":{"in":["alice"]}}]}`: 1, `{"categories":{"contains":"health"}}`: 1,
		`{"metadata":{"type":"allergy","n":3}}`: 1, `{"metadata":{"type":"hobby"}}`: 0, `{"created_at":{"gte":"2020-01-01","lt":"2999-01-01T00:00:00Z"}}`: 1,
		`{"created_at":{"lte":"2020-01-01"}}`: 0, `{"app_id":"music"}`: 0,
	} {
		var found results
		c.ok(&found, "search_memories", fmt.Sprintf(`{"query":"peanuts allergy","filters":%s,"limit":1}`, filters))
		if len(found.Results) != n {
			t.Errorf("search with %s: %+v", filters, found.Results)
		}
		if c.ok(&found, "search_memories", fmt.Sprintf(`{"query":"peanuts allergy","filters":%s,"limit":"1"}`, quote(filters))); len(found.Results) != n {
			t.Errorf("search with %s in a string: %+v", filters, found.Results)
		}
	}
	for _, tt := range [][2]string{
		{`{"OR":[{"user_id":"alice"},{"user_id":"bob"}]}`, "filters.OR: can hold one condition only"}, {`{"NOT":[{"user_id":"alice"}]}`, "filters: has a condition"},
		{`{"user_id":{"in":["alice","bob"]}}`, "filters.user_id: must name one value"}, {`{"user_id":"bob"}`, noSuch},
		{`{"created_at":{"gte":"kiln"}}`, "filters.created_at: must be a time"}, {`{"AND":7}`, "filters.AND: must be a list"}, {`[]`, "filters: must be an object"},
		{`{"AND":[{"AND":[{"AND":[{"AND":[{"AND":[{"user_id":"alice"}]}]}]}]}]}`, "filters: is nested too deep"},
	} {
		if said := c.fails("get_memories", `{"filters":`+tt[0]+`}`); !strings.HasPrefix(said, tt[1]) {
			t.Errorf("%s: %s", tt[0], said)
		}
	}

	type listing struct {
		Count          int
		Next, Previous *string
		Results        []mem0Memory
	}
	list := func(arguments string) (page listing) {
		t.Helper()
		c.ok(&page, "get_memories", arguments)
		return page
	}
	page := list(`{"page":2,"page_size":"1"}`)
	if page.Count != 3 || len(page.Results) != 1 || page.Next == nil || page.Previous == nil {
		t.Errorf("%+v", page)
	}
	page = list(`{"filters":{"app_id":"music"}}`)
	if page.Count != 1 || page.Results[0].AppID != "music" {
		t.Errorf("%+v", page)
	}
	contains(t, c.ok(nil, "update_memory", fmt.Sprintf(`{"memory_id":%q,"text":"I am allergic to cashews."}`, id)), `"memory":"I am allergic to cashews."`)
	said = c.ok(nil, "list_entities", ``)
	contains(t, said, `"id":"alice","name":"alice","type":"user","total_memories":3`, `"id":"music","name":"music","type":"app"`, `"id":"cook","name":"cook","type":"agent"`)
	contains(t, c.fails("delete_entities", `{}`), `"error": "scope_missing"`)
	if said := c.ok(nil, "delete_memory", fmt.Sprintf(`{"memory_id":%q}`, id)); said != `{"message":"Memory deleted successfully!"}` {
		t.Error(said)
	}
	c.fails("delete_memory", fmt.Sprintf(`{"memory_id":%q}`, id))
	c.ok(nil, "add_memory", `{"text":"The stove is hot.","agent_id":"cook"}`)
	if said := c.ok(nil, "delete_all_memories", `{"agent_id":"cook"}`); said != `{"message":"Memories deleted successfully!"}` {
		t.Error(said)
	}
	if page = list(`{}`); page.Count != 2 || page.Results[0].Memory != "My tent is green." {
		t.Errorf("after the agent's were deleted: %+v", page)
	}
	if said := c.ok(nil, "delete_entities", `{"app_id":"music"}`); said != `{"message":"Entity deleted successfully!"}` {
		t.Error(said)
	}
	if page = list(`{"filters":{"app_id":"music"}}`); page.Count != 0 {
		t.Errorf("%+v", page)
	}
}

func TestOpenMemory(t *testing.T) {
	c := newClient(t, SetOpenMemory)
	var saved results
	c.ok(&saved, "add_memories", `{"text":"I collect stamps of Iceland.","infer":false}`)
	id := saved.Results[0].ID
	if saved.Results[0].Event != "ADD" || saved.Results[0].Memory != "I collect stamps of Iceland." {
		t.Errorf("%+v", saved)
	}
	said := c.ok(nil, "search_memory", `{"query":"stamps"}`)
	contains(t, said, "{\n  \"results\": [\n    {\n      \"id\": \""+id, `"memory": "I collect stamps of Iceland."`, `"hash": "`, `"score": `)
	var list []openMemory
	if err := json.Unmarshal([]byte(c.ok(nil, "list_memories", ``)), &list); err != nil || len(list) != 1 || list[0].ID != id || list[0].UserID != "alice" {
		t.Errorf("%v, %v", list, err)
	}
	if said := c.fails("delete_memories", `{"memory_ids":["x","y"]}`); said != "Error: No accessible memories found with provided IDs" {
		t.Error(said)
	}
	if said := c.ok(nil, "delete_memories", fmt.Sprintf(`{"memory_ids":[%q,"x"]}`, id)); said != "Successfully deleted 1 memories" {
		t.Error(said)
	}
	if said := c.ok(nil, "list_memories", ``); said != "[]" {
		t.Error(said)
	}
	if said := c.ok(nil, "delete_all_memories", ``); said != "Successfully deleted all memories" {
		t.Error(said)
	}
}

// TestSearchAndFetch checks what ChatGPT expects: one text of JSON, and the same
// as structured content.
func TestSearchAndFetch(t *testing.T) {
	c := newClient(t, SetSearch)
	long := "The observatory on the hill has a telescope <b>of 40 & more years</b>, which the town bought from a school that closed."
	var saved results
	c.ok(&saved, "add_memories", `{"text":`+quote(long)+`,"tags":["town"]}`)
	var out struct{ Results []found }
	said := c.ok(&out, "search", `{"query":"telescope of the observatory"}`)
	if len(out.Results) != 1 || !strings.HasPrefix(said, `{"results":[{"id":"`) || !strings.Contains(said, "<b>") {
		t.Fatal(said)
	}
	r := out.Results[0]
	if r.ID != saved.Results[0].ID || len([]rune(r.Title)) != maxTitle || !strings.HasSuffix(r.Title, "…") || !strings.HasPrefix(r.URL, "http://127.0.0.1:") || !strings.HasSuffix(r.URL, "/v1/memories/"+r.ID) {
		t.Errorf("%+v", r)
	}
	sameJSON(t, c, "search", `{"query":"telescope"}`)
	sameJSON(t, c, "fetch", `{"id":"`+r.ID+`"}`)
	var d document
	c.ok(&d, "fetch", `{"id":"`+r.ID+`"}`)
	if d.ID != r.ID || d.Text != long || d.Title != r.Title || d.URL != r.URL || d.Metadata["kind"] != "fact" || d.Metadata["tags"] != "town" {
		t.Errorf("%+v", d)
	}
	if said := c.ok(nil, "search", `{"query":"submarine"}`); said != `{"results":[]}` {
		t.Error(said)
	}
	contains(t, c.fails("fetch", `{"id":"x"}`), noSuch)
}

// TestSetsTogether checks that sets can be combined, in any order.
func TestSetsTogether(t *testing.T) {
	backwards := Sets()
	slices.Reverse(backwards)
	for _, sets := range [][]string{Sets(), backwards} {
		c := newClient(t, sets...)
		res, err := c.ListTools(t.Context(), nil)
		if err != nil || len(res.Tools) != 8+6+8+1+2 {
			t.Errorf("%d tools, %v", len(res.Tools), err)
		}
		c.ok(nil, "create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["sails"]}]}`)
		c.ok(nil, "add_memory", `{"text":"My boat is blue."}`)
		if said := c.ok(nil, "delete_entities", `{"entityNames":["Ada"]}`); said != "Entities deleted successfully" {
			t.Error(said)
		}
		contains(t, c.ok(nil, "search_memory", `{"query":"boat"}`), "blue")
		contains(t, c.ok(nil, "delete_entities", `{"user_id":"alice"}`), "Entity deleted")
		contains(t, c.ok(nil, "read_graph", ``), `"entities": []`)
		if said := c.ok(nil, "get_memories", ``); !strings.Contains(said, `"count":0`) {
			t.Error(said)
		}
	}
}
