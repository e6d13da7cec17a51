package mcp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/storage"
)

// Bounds and defaults of the tools.
const (
	defaultFound  = 10
	defaultListed = 50
	defaultFacts  = 50
	maxFacts      = 200
	maxAdded      = 50 // facts in one call
	maxCursor     = 4096
	maxTime       = 64

	kindFact     = string(storage.KindFact)
	kindEpisode  = string(storage.KindEpisode)
	kindResource = string(storage.KindResource)
	kindAll      = "all"
)

// why is the reason that changes have in a memory's history.
const why = "a tool of MCP"

// item is a memory as tools show it.
type item struct {
	ID    string   `json:"id"`
	Text  string   `json:"text"`
	Kind  string   `json:"kind"`
	Time  string   `json:"time,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	Score float64  `json:"score,omitempty"`
	State string   `json:"state,omitempty"` // "" = current
}

func itemOf(m *api.Memory) item {
	out := item{ID: m.ID, Text: m.Text, Kind: m.Kind, Time: m.EventTime, Tags: m.Tags, State: m.State}
	if out.State == api.StateCurrent {
		out.State = ""
	}
	return out
}

// line returns a memory in one line.
func (i *item) line() string {
	state := ""
	if i.State != "" {
		state = ", " + i.State
	}
	said := strings.Join(strings.Fields(i.Text), " ")
	return fmt.Sprintf("%s (%s, %.10s%s, id %s)", said, i.Kind, i.Time, state, i.ID)
}

// lines returns memories in numbered lines.
func lines(items []item) string {
	var b strings.Builder
	for n := range items {
		fmt.Fprintf(&b, "%d. %s\n", n+1, items[n].line())
	}
	return b.String()
}

func (c *call) search() (reply, error) {
	q, err := c.args.required(namesQuery...)
	if err != nil {
		return reply{}, err
	}
	limit, err := c.args.between(1, api.MaxTopK, defaultFound, namesLimit...)
	if err != nil {
		return reply{}, err
	}
	tags, err := c.args.list(true, namesTags...)
	if err != nil {
		return reply{}, err
	}
	res, err := c.verbs.Search(c, c.target, api.Search{Query: q, TopK: limit, Tags: tags})
	if err != nil {
		return reply{}, err
	}
	items := []item{}
	for i := range res.Results {
		it := itemOf(&res.Results[i].Memory)
		it.Score = res.Results[i].Score
		items = append(items, it)
	}
	if len(items) == 0 {
		return reply{"Nothing is remembered that matches.", map[string]any{"results": items}}, nil
	}
	return reply{lines(items), map[string]any{"results": items}}, nil
}

// added is what became of one text.
type added struct {
	ID    string `json:"id,omitempty"`
	Text  string `json:"text,omitempty"`
	Event string `json:"event"` // added, known, superseded or refused
	Error string `json:"error,omitempty"`

	memory api.Memory
}

// given returns the texts to save.
func (c *call) given() ([]string, error) {
	var out []string
	for _, names := range [...][]string{namesText, {"memories", "facts", "texts"}} {
		more, err := c.args.list(false, names...)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	out = slices.DeleteFunc(out, func(s string) bool { return strings.TrimSpace(s) == "" })
	switch {
	case len(out) == 0:
		return nil, wrong("text", "is required")
	case len(out) > maxAdded:
		return nil, wrong("memories", fmt.Sprintf("has more than %d facts", maxAdded))
	}
	return out, nil
}

// save saves texts. It fails if it can't save any.
func (c *call) save(texts []string, d api.Draft) (out []added, err error) {
	saved := false
	for _, d.Text = range texts {
		a, refusal := c.verbs.Add(c, c.target, d)
		if refusal != nil {
			if kind, status := api.Kind(refusal); status >= 500 || kind == "too-many" {
				return out, refusal
			}
			err = refusal
			out = append(out, added{Event: "refused", Error: api.Detail(refusal)})
			continue
		}
		saved = true
		out = append(out, added{ID: a.Memory.ID, Text: a.Memory.Text, Event: a.Event, memory: a.Memory})
	}
	if !saved {
		return out, err
	}
	return out, nil
}

func (c *call) addMemories() (reply, error) {
	texts, err := c.given()
	if err != nil {
		return reply{}, err
	}
	tags, err := c.args.list(true, namesTags...)
	if err != nil {
		return reply{}, err
	}
	all, err := c.save(texts, api.Draft{Tags: tags})
	if err != nil {
		return reply{}, err
	}
	var b strings.Builder
	for n := range all {
		switch a := &all[n]; a.Event {
		case "refused":
			fmt.Fprintf(&b, "Fact %d was not saved: %s.\n", n+1, a.Error)
		case "known":
			fmt.Fprintf(&b, "Known already: %s (id %s)\n", a.Text, a.ID)
		case "superseded":
			fmt.Fprintf(&b, "Saved, in place of an older statement: %s (id %s)\n", a.Text, a.ID)
		default:
			fmt.Fprintf(&b, "Saved: %s (id %s)\n", a.Text, a.ID)
		}
	}
	return reply{b.String(), map[string]any{"results": all}}, nil
}

func (c *call) listMemories() (reply, error) {
	f, err := c.listFilter()
	if err != nil {
		return reply{}, err
	}
	limit, err := c.args.between(1, api.MaxPage, defaultListed, namesLimit...)
	if err != nil {
		return reply{}, err
	}
	cursor, err := c.args.text("cursor", "next")
	if err != nil {
		return reply{}, err
	}
	page, err := c.verbs.List(c, c.target, f, cursor, limit)
	if err != nil {
		return reply{}, err
	}
	items := []item{}
	for i := range page.Memories {
		items = append(items, itemOf(&page.Memories[i]))
	}
	data, said := map[string]any{"memories": items}, lines(items)
	if len(items) == 0 {
		said = "Nothing is saved."
	}
	if page.Next != "" {
		data["cursor"] = page.Next
		said += "There is more: continue with cursor " + page.Next + "\n"
	}
	return reply{said, data}, nil
}

func (c *call) listFilter() (f api.Filter, err error) {
	if f.Tags, err = c.args.list(true, namesTags...); err != nil {
		return f, err
	}
	if f.Since, err = c.args.text("since", "from"); err != nil {
		return f, err
	}
	if f.Until, err = c.args.text("until", "to"); err != nil {
		return f, err
	}
	kind, err := c.args.text("kind", "type")
	switch kind {
	case "":
		f.Kinds = []string{kindFact}
	case kindAll:
		f.Kinds = []string{kindFact, kindEpisode, kindResource}
	default:
		f.Kinds = []string{kind}
	}
	return f, err
}

func (c *call) getMemory() (reply, error) {
	id, err := c.args.required(namesID...)
	if err != nil {
		return reply{}, err
	}
	m, err := c.verbs.Get(c, c.target, id)
	if err != nil {
		return reply{}, err
	}
	it := itemOf(&m)
	return reply{it.line(), map[string]any{"memory": m}}, nil
}

func (c *call) updateMemory() (reply, error) {
	m, err := c.update()
	if err != nil {
		return reply{}, err
	}
	it := itemOf(&m)
	return reply{"Corrected: " + it.line(), map[string]any{"memory": it}}, nil
}

// update corrects a memory.
func (c *call) update() (m api.Memory, err error) {
	id, err := c.args.required(namesID...)
	if err != nil {
		return m, err
	}
	d := api.Patch{Why: why}
	if c.args.has(namesText...) {
		said, err := c.args.required(namesText...)
		if err != nil {
			return m, err
		}
		d.Text = &said
	}
	if c.args.has(namesTags...) {
		tags, err := c.args.list(true, namesTags...)
		if err != nil {
			return m, err
		}
		d.Tags = &tags
	}
	if d.Text == nil && d.Tags == nil {
		return m, wrong("text", "is required")
	}
	return c.verbs.Update(c, c.target, id, d)
}
