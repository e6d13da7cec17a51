package mcp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/storage"
)

// Schemas that several of mem0's tools have.
var (
	entitySchema  = text(storage.MaxScopePart)
	filtersSchema = typed("object").about(`Conditions that must all hold, such as {"AND": [` +
		`{"user_id": "john"}, {"created_at": {"gte": "2024-01-01"}}]}: user_id, app_id, agent_id, ` +
		`run_id, categories, metadata, created_at.`)
	resultsSchema = object(must("results", anyList(typed("object"))))
	messageSchema = object(must("message", typed("string")))
)

// entityFields are the ids that mem0 keeps memories by.
func entityFields() []field {
	return []field{
		may("user_id", entitySchema.about("The user. Leave it out for the user of this connection.")),
		may("agent_id", entitySchema.about("The agent.")),
		may("app_id", entitySchema.about("The app.")),
		may("run_id", entitySchema.about("The run, or conversation.")),
	}
}

// mem0Tools returns the tools of mem0's hosted server.
func mem0Tools() []tool {
	id := must("memory_id", text(idLimit).about("The exact id of the memory."))
	graph := may("enable_graph", typed("boolean").about("Ignored: there is no graph."))
	message := object(must("role", typed("string")), must("content", typed("string")))
	return []tool{
		{
			name: "add_memory", title: "Add memory",
			hints: adds, run: asMem0(mem0Call.mem0Add), output: resultsSchema,
			description: "Store a new preference, fact, or conversation snippet.",
			input: object(append([]field{
				must("text", text(api.MaxText).about("A plain sentence that sums up what to store.")),
				may("messages", listOf(message, maxAdded).
					about("What was said, with role and content, in place of text.")),
				may("metadata", typed("object").about("Names and values to keep with the memory.")), graph,
			}, entityFields()...)...),
		},
		{
			name: "search_memories", title: "Search memories",
			hints: reads, run: asMem0(mem0Call.mem0Search), output: resultsSchema,
			description: "Search over existing memories, the best match first.",
			input: object(
				must("query", text(api.MaxQuery).about("What to find, in natural language.")),
				may("filters", filtersSchema),
				may("limit", whole(1, api.MaxTopK).about("How many results at most.")), graph,
			),
		},
		{
			name: "get_memories", title: "Get memories",
			hints: reads, run: asMem0(mem0Call.mem0List), output: resultsSchema,
			description: "Page through memories by filters, without searching.",
			input: object(
				may("filters", filtersSchema), may("page", whole(1, maxAll).about("The page, from 1.")),
				may("page_size", whole(1, api.MaxPage).about("How many in a page (10).")), graph,
			),
		},
		{
			name: "get_memory", title: "Get memory",
			hints: reads, run: asMem0(mem0Call.mem0Get), output: typed("object"),
			description: "Fetch a single memory once you know its memory_id.", input: object(id),
		},
		{
			name: "update_memory", title: "Update memory",
			hints: replaces, run: asMem0(mem0Call.mem0Update), output: typed("object"),
			description: "Overwrite an existing memory's text.",
			input:       object(id, must("text", text(api.MaxText).about("The text from now on."))),
		},
		{
			name: "delete_memory", title: "Delete memory",
			hints: removes, run: asMem0(mem0Call.mem0Delete), output: messageSchema,
			description: "Delete one memory after the user confirms its memory_id.", input: object(id),
		},
		{
			name: "delete_all_memories", title: "Delete all memories",
			hints: removes, run: asMem0(mem0Call.mem0DeleteAll),
			description: "Delete every memory of the given user, agent, app or run. " +
				"Only if the user asks for it.",
			input: object(entityFields()...), output: messageSchema,
		},
		mem0DeleteEntities(),
		{
			name: "list_entities", title: "List entities",
			hints: reads, run: asMem0(mem0Call.mem0Entities), output: resultsSchema,
			description: "List which users, agents and apps currently hold memories.", input: object(),
		},
	}
}

func mem0DeleteEntities() tool {
	return tool{
		name: "delete_entities", title: "Delete entities", hints: removes, run: asMem0(mem0Call.mem0DeleteEntity),
		description: "Remove a user, agent, app or run with its memories. Only if the user asks for it.",
		input:       object(entityFields()...), output: messageSchema,
	}
}

// maxAll bounds the memories that a tool reads for a list with a count.
const maxAll = 10_000

// all reads the memories that a filter selects, at most limit.
func (c mem0Call) all(f api.Filter, limit int) (out []api.Memory, err error) {
	for cursor := ""; len(out) < limit; {
		page, err := c.verbs.List(c, c.target, f, cursor, api.MaxPage)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Memories...)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	return out[:min(len(out), limit)], nil
}

func (c mem0Call) mem0List() (reply, error) {
	e, f, err := c.mem0Filter()
	if err != nil {
		return reply{}, err
	}
	f.Kinds = []string{kindFact}
	page, err := c.args.between(1, maxAll, 1, "page")
	if err != nil {
		return reply{}, err
	}
	size, err := c.args.between(1, api.MaxPage, 10, namesLimit...)
	if err != nil {
		return reply{}, err
	}
	var all []api.Memory
	err = c.eachSpace(e, func() error {
		more, err := c.all(f, maxAll)
		all = append(all, more...)
		return err
	})
	if err != nil {
		return reply{}, err
	}
	slices.SortStableFunc(all, newer)
	from := min((page-1)*size, len(all))
	to := min(from+size, len(all))
	results := []mem0Memory{}
	for i := from; i < to; i++ {
		results = append(results, mem0Of(&all[i]))
	}
	out := map[string]any{"count": len(all), "next": nil, "previous": nil, "results": results}
	if to < len(all) {
		out["next"] = fmt.Sprintf("?page=%d&page_size=%d", page+1, size)
	}
	if page > 1 {
		out["previous"] = fmt.Sprintf("?page=%d&page_size=%d", page-1, size)
	}
	return inJSON(out)
}

// deleteSpaces deletes what a call of mem0's tools names.
func (c mem0Call) deleteSpaces() error {
	e, err := c.entity()
	if err != nil {
		return err
	}
	return c.eachSpace(e, func() error {
		_, err := c.verbs.DeleteAll(c, c.target, api.Filter{Conversation: e.run}, why)
		return err
	})
}

func (c mem0Call) mem0DeleteAll() (reply, error) {
	if err := c.deleteSpaces(); err != nil {
		return reply{}, err
	}
	return inJSON(map[string]any{"message": "Memories deleted successfully!"})
}

const scopeMissing = `{"error": "scope_missing", "detail": ` +
	`"Provide user_id, agent_id, app_id, or run_id before calling delete_entities."}`

// namesEntity are the names of what delete_entities needs one of.
var namesEntity = []string{
	"user_id", "userId", "user", "agent_id", "agentId", "app_id", "appId", "run_id", "runId",
}

func (c mem0Call) mem0DeleteEntity() (reply, error) {
	if !c.args.has(namesEntity...) {
		return reply{}, &saidError{scopeMissing}
	}
	if err := c.deleteSpaces(); err != nil {
		return reply{}, err
	}
	return inJSON(map[string]any{"message": "Entity deleted successfully!"})
}

// mem0Named is a user, an app or an agent that has memories.
type mem0Named struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	Type          string `json:"type"`
	TotalMemories int    `json:"total_memories"`
}

func (c mem0Call) mem0Entities() (reply, error) {
	byKey := map[mem0Named]int{}
	for after, n := "", 0; n < maxAll; {
		page, err := c.verbs.Users(c, c.target, after, api.MaxPage)
		if err != nil {
			return reply{}, err
		}
		for _, u := range page.Users {
			byKey[mem0Named{u.User, u.User, "user", 0}] += u.Memories
			if app := named(u.App); app != "" {
				byKey[mem0Named{app, app, "app", 0}] += u.Memories
			}
			if agent := named(u.Project); agent != "" {
				byKey[mem0Named{agent, agent, "agent", 0}] += u.Memories
			}
		}
		n += len(page.Users)
		if after = page.Next; after == "" {
			break
		}
	}
	results := slices.SortedFunc(maps.Keys(byKey), func(a, b mem0Named) int {
		return cmp.Or(-cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	})
	for i := range results {
		results[i].TotalMemories = byKey[results[i]]
	}
	if results == nil {
		results = []mem0Named{}
	}
	out := map[string]any{"count": len(results), "next": nil, "previous": nil, "results": results}
	return inJSON(out)
}
