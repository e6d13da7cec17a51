package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
)

const maxGraph = 100 // entities, relations or observations in one call

// graphTools returns the tools of the protocol's reference server for memory.
func graphTools() []tool {
	name := text(api.MaxTag - len(entityTag))
	observations := listOf(text(api.MaxText), maxGraph)
	entities := listOf(object(
		must("name", name.about("The name of the entity.")),
		must("entityType", text(api.MaxTag-len(typeTag)).about("Its type.")),
		must("observations", observations.about("What is known of it, one fact each.")),
	), maxGraph)
	relations := listOf(object(
		must("from", name.about("The entity where the relation starts.")),
		must("to", name.about("The entity where it ends.")),
		must("relationType", text(api.MaxTag-len(isATag)).about("Its type, in active voice.")),
	), maxGraph)
	things := anyList(typed("object"))
	graph := object(must("entities", things), must("relations", things))
	done := object(must("success", typed("boolean")), must("message", typed("string")))
	return []tool{
		{
			name: "create_entities", title: "Create Entities", hints: adds, run: onGraph(graphCall.createEntities),
			description: "Create multiple new entities in the knowledge graph",
			input:       object(must("entities", entities)), output: object(must("entities", things)),
		},
		{
			name: "create_relations", title: "Create Relations", hints: adds, run: onGraph(graphCall.createRelations),
			description: "Create multiple new relations between entities in the knowledge graph. " +
				"Relations should be in active voice",
			input: object(must("relations", relations)), output: object(must("relations", things)),
		},
		{
			name: "add_observations", title: "Add Observations", hints: adds, run: onGraph(graphCall.addObservations),
			description: "Add new observations to existing entities in the knowledge graph",
			input: object(must("observations", listOf(object(
				must("entityName", name.about("The entity to add them to.")),
				must("contents", observations.about("What to add.")),
			), maxGraph))),
			output: object(must("results", things)),
		},
		graphDeleteEntities(),
		{
			name: "delete_observations", title: "Delete Observations",
			hints: removes, run: onGraph(graphCall.deleteObservations),
			description: "Delete specific observations from entities in the knowledge graph",
			input: object(must("deletions", listOf(object(
				must("entityName", name.about("The entity that has them.")),
				must("observations", observations.about("What to delete.")),
			), maxGraph))),
			output: done,
		},
		{
			name: "delete_relations", title: "Delete Relations",
			hints: removes, run: onGraph(graphCall.deleteRelations),
			description: "Delete multiple relations from the knowledge graph",
			input:       object(must("relations", relations)), output: done,
		},
		{
			name: "read_graph", title: "Read Graph", hints: reads, run: onGraph(graphCall.wholeGraph), output: graph,
			description: "Read the entire knowledge graph", input: object(),
		},
		{
			name: "search_nodes", title: "Search Nodes",
			hints: reads, run: onGraph(graphCall.searchNodes), output: graph,
			description: "Search for nodes in the knowledge graph based on a query",
			input: object(must("query", text(api.MaxQuery).
				about("What to look for in names, types and observations."))),
		},
		{
			name: "open_nodes", title: "Open Nodes", hints: reads, run: onGraph(graphCall.openNodes), output: graph,
			description: "Open specific nodes in the knowledge graph by their names",
			input:       object(must("names", listOf(name, maxGraph).about("The names of the entities."))),
		},
	}
}

func graphDeleteEntities() tool {
	return tool{
		name: "delete_entities", title: "Delete Entities", hints: removes, run: onGraph(graphCall.deleteEntities),
		description: "Delete multiple entities and their associated relations from the knowledge graph",
		input: object(must("entityNames", listOf(text(api.MaxTag), maxGraph).
			about("The names of the entities."))),
		output: object(must("success", typed("boolean")), must("message", typed("string"))),
	}
}

// eitherEntities returns a tool that two sets have under one name. Its
// arguments tell which is meant.
func eitherEntities(byID, byName tool) *tool {
	out := byName
	properties := map[string]any{}
	for _, t := range [...]tool{byID, byName} {
		for name, s := range t.input["properties"].(map[string]any) {
			properties[name] = s
		}
	}
	out.input = schema{"type": "object", "properties": properties}
	out.output = messageSchema
	out.description += ", or, with one of the ids, remove a user, agent, app or run with its memories"
	out.run = func(c *call) (reply, error) {
		if c.args.has("entityNames") {
			return byName.run(c)
		}
		return byID.run(c)
	}
	return &out
}

func isNotFound(err error) bool { return errors.Is(err, api.ErrNotFound) }

// many checks how many things a call is about.
func many(field string, n int) error {
	if n == 0 || n > maxGraph {
		return wrong(field, fmt.Sprintf("must have 1 to %d entries", maxGraph))
	}
	return nil
}

func (c graphCall) createEntities() (reply, error) {
	var given []entity
	if err := c.args.decode(&given, "a list of entities", "entities"); err != nil {
		return reply{}, err
	}
	if err := many("entities", len(given)); err != nil {
		return reply{}, err
	}
	for i := range given {
		if err := checkName("entities.name", given[i].Name, entityTag); err != nil {
			return reply{}, err
		}
		if err := checkName("entities.entityType", given[i].EntityType, typeTag); err != nil {
			return reply{}, err
		}
	}
	g, err := c.readGraph()
	if err != nil {
		return reply{}, err
	}
	created := []entity{}
	for _, e := range given {
		if _, known := g.at[e.Name]; known {
			continue
		}
		g.at[e.Name] = -1
		said := e.Name + " is a " + e.EntityType
		if _, err := c.keep(said, entityTag+e.Name, typeTag+e.EntityType); err != nil {
			return reply{}, err
		}
		if e.Observations, err = c.observe(e.Name, nil, e.Observations); err != nil {
			return reply{}, err
		}
		created = append(created, e)
	}
	return indented(created, map[string]any{"entities": created})
}

func (c graphCall) givenRelations() (given []relation, err error) {
	if err := c.args.decode(&given, "a list of relations", "relations"); err != nil {
		return nil, err
	}
	for i := range given {
		r := &given[i]
		for _, part := range [...]struct{ field, v, prefix string }{
			{"relations.from", r.From, fromTag}, {"relations.to", r.To, toTag},
			{"relations.relationType", r.RelationType, isATag},
		} {
			if err := checkName(part.field, part.v, part.prefix); err != nil {
				return nil, err
			}
		}
	}
	return given, many("relations", len(given))
}

func (c graphCall) createRelations() (reply, error) {
	given, err := c.givenRelations()
	if err != nil {
		return reply{}, err
	}
	g, err := c.readGraph()
	if err != nil {
		return reply{}, err
	}
	created := []relation{}
	for _, r := range given {
		if slices.Contains(g.Relations, r) || slices.Contains(created, r) {
			continue
		}
		said := r.From + " " + r.RelationType + " " + r.To
		tags := []string{relationTag, fromTag + r.From, toTag + r.To, isATag + r.RelationType}
		if _, err := c.keep(said, tags...); err != nil {
			return reply{}, err
		}
		created = append(created, r)
	}
	return indented(created, map[string]any{"relations": created})
}

func (c graphCall) wholeGraph() (reply, error) {
	g, err := c.readGraph()
	if err != nil {
		return reply{}, err
	}
	return indented(g, g)
}

func (c graphCall) searchNodes() (reply, error) {
	q, err := c.args.text(namesQuery...)
	if err != nil {
		return reply{}, err
	}
	g, err := c.readGraph()
	if err != nil {
		return reply{}, err
	}
	q = strings.ToLower(q)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), q) }
	g = g.part(func(e *entity) bool {
		return has(e.Name) || has(e.EntityType) || slices.ContainsFunc(e.Observations, has)
	})
	return indented(g, g)
}

func (c graphCall) openNodes() (reply, error) {
	names, err := c.args.list(false, "names", "name", "entityNames")
	if err != nil {
		return reply{}, err
	}
	g, err := c.readGraph()
	if err != nil {
		return reply{}, err
	}
	g = g.part(func(e *entity) bool { return slices.Contains(names, e.Name) })
	return indented(g, g)
}
