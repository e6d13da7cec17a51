package mcp

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/api"
)

// The knowledge graph of the protocol's reference server is kept in facts, so
// that what it says is also recalled. All have the tag graph. An entity is the
// fact "NAME is a TYPE", an observation "NAME: TEXT", a relation "A TYPE B".
// Which is which, and of what, their other tags say.
const (
	graphTag       = "graph"
	entityTag      = "entity:"
	typeTag        = "type:"
	observationTag = "observation"
	relationTag    = "relation"
	fromTag        = "from:"
	toTag          = "to:"
	isATag         = "relation:"
)

// entity is a node of the graph.
type entity struct {
	Name         string   `json:"name"`
	EntityType   string   `json:"entityType"`
	Observations []string `json:"observations"`
}

// relation is an edge of the graph.
type relation struct {
	From         string `json:"from"`
	To           string `json:"to"`
	RelationType string `json:"relationType"`
}

// graph is what read_graph returns, and which facts it is made of.
type graph struct {
	Entities  []entity   `json:"entities"`
	Relations []relation `json:"relations"`

	at   map[string]int      // of Entities, by name
	ids  map[string][]string // of an entity and of its observations, by name
	said []observation
	rels []string // ids, one for each of Relations
}

// observation is where an observation is kept.
type observation struct{ id, entity, text string }

// readGraph reads the whole graph. What an engine takes for superseded counts:
// here, only a deletion removes something.
func (c graphCall) readGraph() (*graph, error) {
	all, err := mem0Call(c).all(api.Filter{
		Kinds: []string{kindFact}, Tags: []string{graphTag}, Oldest: true,
		States: []string{api.StateCurrent, api.StateSuperseded},
	}, maxAll)
	if err != nil {
		return nil, err
	}
	g := &graph{
		Entities: []entity{}, Relations: []relation{}, at: map[string]int{}, ids: map[string][]string{},
	}
	for i := range all { // entities first: a fact may be older than that which names its entity
		m := &all[i]
		if name := tagged(m, entityTag); name != "" && !slices.Contains(m.Tags, observationTag) {
			g.ids[name] = append(g.ids[name], m.ID)
			if _, twice := g.at[name]; !twice {
				g.at[name] = len(g.Entities)
				g.Entities = append(g.Entities, entity{name, tagged(m, typeTag), []string{}})
			}
		}
	}
	for i := range all {
		g.take(&all[i])
	}
	return g, nil
}

// take takes in an observation or a relation.
func (g *graph) take(m *api.Memory) {
	if slices.Contains(m.Tags, relationTag) {
		r := relation{tagged(m, fromTag), tagged(m, toTag), tagged(m, isATag)}
		if r.From != "" && r.To != "" {
			g.Relations, g.rels = append(g.Relations, r), append(g.rels, m.ID)
		}
	}
	name := tagged(m, entityTag)
	if name == "" || !slices.Contains(m.Tags, observationTag) {
		return
	}
	g.ids[name] = append(g.ids[name], m.ID)
	whole := unmarked(m.Text)
	said, ok := strings.CutPrefix(whole, name+": ")
	if !ok {
		_, said, _ = strings.Cut(whole, ": ")
	}
	g.said = append(g.said, observation{m.ID, name, said})
	if at, ok := g.at[name]; ok {
		g.Entities[at].Observations = append(g.Entities[at].Observations, said)
	}
}

// part returns the entities that keep selects, and the relations at them.
func (g *graph) part(keep func(*entity) bool) *graph {
	out := &graph{Entities: []entity{}, Relations: []relation{}}
	kept := map[string]bool{}
	for i := range g.Entities {
		if keep(&g.Entities[i]) {
			out.Entities = append(out.Entities, g.Entities[i])
			kept[g.Entities[i].Name] = true
		}
	}
	for _, r := range g.Relations {
		if kept[r.From] || kept[r.To] {
			out.Relations = append(out.Relations, r)
		}
	}
	return out
}

// tagged returns what follows a prefix in a memory's tags.
func tagged(m *api.Memory, prefix string) string {
	for _, tag := range m.Tags {
		if v, ok := strings.CutPrefix(tag, prefix); ok {
			return v
		}
	}
	return ""
}

// keep saves a fact of the graph with its tags. A fact that was known without
// them gets them. Facts whose words are the same are one to the engine, so a
// second one that is something else in the graph gets a mark. It reports whether
// the fact is new to the graph.
func (c graphCall) keep(text string, tags ...string) (fresh bool, err error) {
	tags = append([]string{graphTag}, tags...)
	a, err := c.addAfter(text, tags)
	if err != nil || a.Event != "known" {
		return true, err
	}
	known := &a.Memory
	if !slices.Contains(known.Tags, graphTag) {
		with := append(slices.Clone(known.Tags), tags...)
		_, err := c.verbs.Update(c, c.target, known.ID, api.Patch{Tags: &with, Why: why})
		return true, err
	}
	lacks := func(tag string) bool { return !slices.Contains(known.Tags, tag) }
	redacted := strings.Contains(known.Text, "[") // perhaps: that looks like a placeholder
	if !slices.ContainsFunc(tags, lacks) && (redacted || alike(unmarked(known.Text), text)) {
		return false, nil
	}
	sum := sha256.Sum256([]byte(text))
	a, err = c.addAfter(fmt.Sprintf("%s (#%x)", text, sum[:4]), tags)
	return a.Event != "known", err
}

// addAfter saves a fact as said after those that the call has saved before:
// lists are in the order of their milliseconds. A time of its own would not do,
// since what was forgotten before is saved again only if it is said now.
func (c graphCall) addAfter(text string, tags []string) (api.Added, error) {
	for time.Now().UnixMilli() == c.last {
		time.Sleep(100 * time.Microsecond)
	}
	a, err := c.verbs.Add(c, c.target, api.Draft{Text: text, Tags: tags})
	c.last = time.Now().UnixMilli()
	return a, err
}

// unmarked returns the text of a fact without the mark that keep gave it.
func unmarked(text string) string {
	const mark = " (#01234567)"
	at := len(text) - len(mark)
	if at <= 0 || !strings.HasPrefix(text[at:], " (#") || text[len(text)-1] != ')' {
		return text
	}
	if strings.Trim(text[at+3:len(text)-1], "0123456789abcdef") != "" {
		return text
	}
	return text[:at]
}

// alike reports whether two texts differ in case, space and their end alone.
func alike(a, b string) bool {
	plain := func(s string) string {
		return strings.TrimRight(strings.Join(strings.Fields(strings.ToLower(s)), " "), ".!?")
	}
	return plain(a) == plain(b)
}

// checkName checks what becomes part of a tag.
func checkName(field, name, prefix string) error {
	if strings.TrimSpace(name) == "" || len(prefix)+len(name) > api.MaxTag {
		return wrong(field, fmt.Sprintf("must have 1 to %d bytes", api.MaxTag-len(prefix)))
	}
	return nil
}

// observe saves observations of an entity and returns those that are new. known
// are those that it has.
func (c graphCall) observe(name string, known, contents []string) ([]string, error) {
	fresh := []string{}
	for _, text := range contents {
		if slices.Contains(known, text) || slices.Contains(fresh, text) {
			continue
		}
		if strings.TrimSpace(text) == "" {
			return fresh, wrong("contents", "has an empty one")
		}
		isNew, err := c.keep(name+": "+text, observationTag, entityTag+name)
		if err != nil {
			return fresh, err
		}
		if isNew {
			fresh = append(fresh, text)
		}
	}
	return fresh, nil
}

// discard deletes memories in calls that are small enough. Those that are gone
// already are no error.
func (c graphCall) discard(ids []string) error {
	for batch := range slices.Chunk(ids, api.MaxIDs) {
		if _, _, err := c.remove(batch); err != nil && !isNotFound(err) {
			return err
		}
	}
	return nil
}
