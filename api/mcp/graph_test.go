package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// nodes reads a graph out of an answer's text.
func nodes(t *testing.T, said string) (g struct {
	Entities  []entity
	Relations []relation
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(said), &g); err != nil {
		t.Fatal(err, said)
	}
	return g
}

func TestGraph(t *testing.T) {
	c := newClient(t, SetReference)
	if said := c.ok(nil, "read_graph", ""); said != "{\n  \"entities\": [],\n  \"relations\": []\n}" {
		t.Errorf("empty graph: %s", said)
	}
	const people = `[{"name":"John_Smith","entityType":"person","observations":["Speaks fluent Spanish","Graduated in 2019"]},
		{"name":"Anthropic","entityType":"organization","observations":[]}]`
	want := `[
  {
    "name": "John_Smith",
    "entityType": "person",
    "observations": [
      "Speaks fluent Spanish",
      "Graduated in 2019"
    ]
  },
  {
    "name": "Anthropic",
    "entityType": "organization",
    "observations": []
  }
]`
	if said := c.ok(nil, "create_entities", `{"entities":`+people+`}`); said != want {
		t.Errorf("created %s", said)
	}
	for _, arguments := range []string{`{"entities":` + people + `}`, `{"entities":` + quote(people) + `}`} {
		if said := c.ok(nil, "create_entities", arguments); said != "[]" {
			t.Errorf("created again %s", said)
		}
	}
	const relations = `{"relations":[{"from":"John_Smith","to":"Anthropic","relationType":"works_at"}]}`
	contains(t, c.ok(nil, "create_relations", relations), `"relationType": "works_at"`)
	if said := c.ok(nil, "create_relations", relations); said != "[]" {
		t.Errorf("related again %s", said)
	}
	var added struct {
		Results []struct {
			EntityName        string
			AddedObservations []string
		}
	}
	c.ok(&added, "add_observations", `{"observations":[{"entityName":"John_Smith","contents":["Graduated in 2019","Prefers morning meetings"]}]}`)
	if len(added.Results) != 1 || !slices.Equal(added.Results[0].AddedObservations, []string{"Prefers morning meetings"}) {
		t.Errorf("added %+v", added)
	}
	if said := c.fails("add_observations", `{"observations":[{"entityName":"John_Smith","contents":["x"]},{"entityName":"Nobody","contents":["x"]}]}`); said != "Entity with name Nobody not found" {
		t.Errorf("to nobody: %s", said)
	}
	g := nodes(t, c.ok(nil, "read_graph", `{}`))
	if len(g.Entities) != 2 || len(g.Relations) != 1 || len(g.Entities[0].Observations) != 3 {
		t.Fatalf("%+v", g)
	}
	for query, n := range map[string]int{"spanish": 1, "ORGANIZ": 1, "nothing": 0, "o": 2, "John": 1, "": 2} {
		if got := nodes(t, c.ok(nil, "search_nodes", fmt.Sprintf(`{"query":%q}`, query))); len(got.Entities) != n || n > 0 && len(got.Relations) != 1 {
			t.Errorf("search %q: %+v", query, got)
		}
	}
	g = nodes(t, c.ok(nil, "open_nodes", `{"names":["Anthropic","Nobody"]}`))
	if len(g.Entities) != 1 || len(g.Relations) != 1 {
		t.Errorf("opened %+v", g)
	}

	said := c.ok(nil, "delete_observations", `{"deletions":[{"entityName":"John_Smith","observations":["Speaks fluent Spanish","x"]},{"entityName":"Nobody","observations":["x"]}]}`)
	if said != "Observations deleted successfully" {
		t.Error(said)
	}
	if g = nodes(t, c.ok(nil, "read_graph", ``)); len(g.Entities[0].Observations) != 2 {
		t.Errorf("%+v", g)
	}
	if said := c.ok(nil, "delete_relations", relations); said != "Relations deleted successfully" {
		t.Error(said)
	}
	c.ok(nil, "create_relations", relations)
	if said := c.ok(nil, "delete_entities", `{"entityNames":["John_Smith","Nobody"]}`); said != "Entities deleted successfully" {
		t.Error(said)
	}
	if g = nodes(t, c.ok(nil, "read_graph", ``)); len(g.Entities) != 1 || len(g.Relations) != 0 {
		t.Errorf("%+v", g)
	}
	c.ok(nil, "create_entities", `{"entities":`+people+`}`)
	if g = nodes(t, c.ok(nil, "read_graph", ``)); len(g.Entities) != 2 || len(g.Entities[1].Observations) != 2 {
		t.Errorf("made again: %+v", g)
	}
}

// TestGraphOfLikes has entities and observations that say nearly the same, or
// the opposite. All are kept: the graph is the model's.
func TestGraphOfLikes(t *testing.T) {
	c := newClient(t, SetReference)
	said := []string{
		"likes C", "likes C++", "has 2 cats", "has two cats", "lives in Berlin", "lives in Hamburg", "likes tea", "does not like tea",
		"Works at Siemens", "Works at Google", "name: with: colons", "ends in (#0123abcd)", "a\nb",
	}
	observations, _ := json.Marshal(said)
	c.ok(nil, "add_memories", `{"text":"C precedes C#"}`) // a fact that the graph states, too
	c.ok(nil, "create_entities", `{"entities":[{"name":"C","entityType":"language","observations":`+string(observations)+`},
		{"name":"C++","entityType":"language","observations":["has 2 cats"]},{"name":"C#","entityType":"language","observations":[]}]}`)
	want := []relation{{"C", "C++", "precedes"}, {"C++", "C", "precedes"}, {"C", "C#", "precedes"}, {"C", "C++", "preceded"}}
	relations, _ := json.Marshal(want)
	c.ok(nil, "create_relations", `{"relations":`+string(relations)+`}`)
	g := nodes(t, c.ok(nil, "read_graph", ``))
	if len(g.Entities) != 3 {
		t.Fatalf("%+v", g)
	}
	for _, name := range []string{"C", "C++", "C#"} {
		if !slices.ContainsFunc(g.Entities, func(e entity) bool { return e.Name == name && e.EntityType == "language" }) {
			t.Errorf("there is no %s", name)
		}
	}
	for _, text := range said {
		if text != "ends in (#0123abcd)" && !slices.Contains(g.Entities[0].Observations, text) {
			t.Errorf("%q is not among %q", text, g.Entities[0].Observations)
		}
	}
	for _, r := range want {
		if !slices.Contains(g.Relations, r) {
			t.Errorf("%v is not among %v", r, g.Relations)
		}
	}
	contains(t, c.ok(nil, "search_memory", `{"query":"Who works at Siemens?"}`), "C: Works at Siemens")
}

func TestGraphErrors(t *testing.T) {
	c := newClient(t, SetReference)
	long := strings.Repeat("n", 200)
	for _, tt := range []struct{ tool, arguments, want string }{
		{"create_entities", `{}`, "entities: must have 1 to 100 entries"},
		{"create_entities", `{"entities":"kiln"}`, "entities: must be a list of entities"},
		{"create_entities", `{"entities":[{"name":"","entityType":"x"}]}`, "entities.name: must have 1 to 121 bytes"},
		{"create_entities", `{"entities":[{"name":"` + long + `","entityType":"x"}]}`, "entities.name: must have"},
		{"create_entities", `{"entities":[{"name":"x","entityType":""}]}`, "entities.entityType: must have"},
		{"create_entities", `{"entities":[{"name":"x","entityType":"y","observations":[" "]}]}`, "contents: has an empty one"},
		{"create_relations", `{"relations":[{"from":"a","to":"b"}]}`, "relations.relationType: must have"},
		{"add_observations", `{"observations":[]}`, "observations: must have 1 to 100 entries"},
		{"delete_entities", `{}`, "entityNames: must have"},
		{"delete_observations", `{"deletions":7}`, "deletions: must be a list"},
		{"delete_relations", `{"relations":[]}`, "relations: must have"},
		{"open_nodes", `{"names":{"a":1}}`, "names: must be a list of strings"},
	} {
		if said := c.fails(tt.tool, tt.arguments); !strings.HasPrefix(said, tt.want) {
			t.Errorf("%s %.60s: %q", tt.tool, tt.arguments, said)
		}
	}
}
