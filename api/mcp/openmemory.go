package mcp

import (
	"errors"
	"fmt"

	"github.com/remora-proxy/remora/api"
)

// openMemoryTools returns the tools of mem0's OpenMemory.
func openMemoryTools() []tool {
	said := object(must("result", typed("string")))
	return []tool{
		{
			name: "add_memories", title: "Add memories",
			hints: adds, run: asMem0(mem0Call.openAdd), output: resultsSchema,
			description: "Add a new memory. Call it every time the user says something about themselves, " +
				"their preferences, or anything that may be useful in a later conversation, and when they " +
				"ask you to remember something.",
			input: object(
				must("text", text(api.MaxText).about("What to remember.")),
				may("infer", typed("boolean").with("default", true).
					about("Ignored: the text is kept as it is.")),
			),
		},
		{
			name: "search_memory", title: "Search memory",
			hints: reads, run: asMem0(mem0Call.openSearch), output: resultsSchema,
			description: "Search through stored memories. Call it every time the user asks anything.",
			input:       object(must("query", text(api.MaxQuery).about("What to look for."))),
		},
		{
			name: "list_memories", title: "List memories",
			hints: reads, run: asMem0(mem0Call.openList), output: resultsSchema,
			description: "List all memories in the user's memory.", input: object(),
		},
		{
			name: "delete_memories", title: "Delete memories",
			hints: removes, run: asMem0(mem0Call.openDelete), output: said,
			description: "Delete specific memories by their ids.",
			input: object(must("memory_ids", listOf(text(idLimit), api.MaxIDs).
				about("The ids of the memories."))),
		},
		{
			name: "delete_all_memories", title: "Delete all memories",
			hints: removes, run: asMem0(mem0Call.openDeleteAll), output: said,
			description: "Delete all memories in the user's memory. Only if the user asks for it.",
			input:       object(),
		},
	}
}

// openMemory is a memory as OpenMemory shows it.
type openMemory struct {
	ID        string   `json:"id"`
	Memory    string   `json:"memory"`
	Hash      string   `json:"hash"`
	CreatedAt string   `json:"created_at"`
	UpdatedAt string   `json:"updated_at"`
	Score     *float64 `json:"score,omitempty"`
	UserID    string   `json:"user_id,omitempty"`
}

func openOf(m *api.Memory) openMemory {
	return openMemory{
		ID: m.ID, Memory: m.Text, Hash: mem0Hash(m.Text), CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
	}
}

func (c mem0Call) openAdd() (reply, error) {
	texts, err := c.given()
	if err != nil {
		return reply{}, err
	}
	return c.mem0Save(texts, api.Draft{})
}

func (c mem0Call) openSearch() (reply, error) {
	q, err := c.args.required(namesQuery...)
	if err != nil {
		return reply{}, err
	}
	limit, err := c.args.between(1, api.MaxTopK, defaultFound, namesLimit...)
	if err != nil {
		return reply{}, err
	}
	res, err := c.verbs.Search(c, c.target, api.Search{Query: q, TopK: limit})
	if err != nil {
		return reply{}, err
	}
	results := []openMemory{}
	for i := range res.Results {
		out := openOf(&res.Results[i].Memory)
		out.Score = &res.Results[i].Score
		results = append(results, out)
	}
	data := map[string]any{"results": results}
	return indented(data, data)
}

func (c mem0Call) openList() (reply, error) {
	all, err := c.all(api.Filter{Kinds: []string{kindFact}}, api.MaxPage)
	if err != nil {
		return reply{}, err
	}
	results := []openMemory{}
	for i := range all {
		out := openOf(&all[i])
		out.UserID = all[i].User
		results = append(results, out)
	}
	return indented(results, map[string]any{"results": results})
}

func (c mem0Call) openDelete() (reply, error) {
	ids, err := c.args.list(true, namesIDs...)
	if err != nil {
		return reply{}, err
	}
	if len(ids) == 0 {
		return reply{}, wrong("memory_ids", "is required")
	}
	gone, _, err := c.remove(ids)
	if errors.Is(err, api.ErrNotFound) {
		return reply{}, &saidError{"Error: No accessible memories found with provided IDs"}
	}
	if err != nil {
		return reply{}, err
	}
	return plainly(fmt.Sprintf("Successfully deleted %d memories", len(gone.Deleted)))
}

func (c mem0Call) openDeleteAll() (reply, error) {
	if _, err := c.verbs.DeleteAll(c, c.target, api.Filter{}, why); err != nil {
		return reply{}, err
	}
	return plainly("Successfully deleted all memories")
}
