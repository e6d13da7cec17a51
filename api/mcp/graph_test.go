package mcp

import "testing"

func TestTry(t *testing.T) {
	c := newClient(t, SetReference)
	t.Log(c.ok(nil, "create_entities", `{"entities":[{"name":"C","entityType":"language","observations":["likes C","likes C++","Likes C.","has 2 cats","has two cats","lives in Berlin","lives in Hamburg","likes tea","does not like tea","Works at Siemens","Works at Google"]},{"name":"C++","entityType":"language","observations":["has 2 cats"]},{"name":"C#","entityType":"language","observations":[]}]}`))
	t.Log(c.ok(nil, "create_relations", `{"relations":[{"from":"C","to":"C++","relationType":"precedes"},{"from":"C++","to":"C","relationType":"precedes"},{"from":"C","to":"C#","relationType":"precedes"},{"from":"C","to":"C++","relationType":"preceded"}]}`))
	t.Log(c.ok(nil, "read_graph", `{}`))
}
