package page

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/api"
)

// memoriesView is the list of memories, with one of them next to it.
type memoriesView struct {
	base
	Filter   filter
	Items    []item
	Next     string // the cursor of the following page; "" = this is the last
	Searched bool   // by what recall would find, best first
	Damaged  int
	Problem  string
	Selected *memoryView
	Sources  []string
}

// item is a memory in a list.
type item struct {
	api.Memory
	Score float64
}

// filter is what a list of memories is limited to, as the URL says it.
type filter struct {
	Query  string
	Kinds  []string
	States []string
	Source string
	Tag    string
	Age    string // one of ages
	Unused bool
	Oldest bool
}

// ages are the choices for when something was said, in days; those that begin
// with a minus sign are older than that.
var ages = []struct {
	Value, Name string
	since, till int
}{
	{"1", "last day", 1, 0}, {"7", "last week", 7, 0}, {"30", "last month", 30, 0}, {"365", "last year", 365, 0},
	{"-30", "older than a month", 0, 30}, {"-365", "older than a year", 0, 365},
}

func filterOf(q url.Values) filter {
	return filter{
		Query: strings.TrimSpace(q.Get("q")), Kinds: clean(q["kind"]), States: clean(q["state"]), Source: q.Get("source"), Tag: strings.TrimSpace(q.Get("tag")),
		Age: q.Get("age"), Unused: q.Get("used") == "never", Oldest: q.Get("order") == "oldest",
	}
}

func clean(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
}

// Narrow reports whether more than a query limits the list.
func (f filter) Narrow() bool {
	return len(f.Kinds)+len(f.States) > 0 || f.Source != "" || f.Tag != "" || f.Age != "" || f.Unused || f.Oldest
}

// searches reports whether recall answers the query: it knows of current
// memories only, and of no order but its own.
func (f filter) searches() bool {
	return f.Query != "" && !f.Oldest && (len(f.States) == 0 || slices.Equal(f.States, []string{api.StateCurrent}))
}

// Ages returns the choices for the form.
func (filter) Ages() any { return ages }

func (f filter) list(now time.Time) api.Filter {
	out := api.Filter{Query: f.Query, Kinds: f.Kinds, States: f.States, Oldest: f.Oldest, Source: f.Source}
	if f.Tag != "" {
		out.Tags = []string{f.Tag}
	}
	if f.Unused {
		used := false
		out.Used = &used
	}
	for _, a := range ages {
		switch {
		case a.Value != f.Age:
		case a.since > 0:
			out.Since = now.AddDate(0, 0, -a.since).UTC().Format(time.RFC3339)
		default:
			out.Until = now.AddDate(0, 0, -a.till).UTC().Format(time.RFC3339)
		}
	}
	return out
}

const (
	pageSize = 60
	// maxFound is how many memories a search shows. Filters that recall does
	// not know are applied to these.
	maxFound = 100
)

// showMemories lists memories: those that match a query as recall ranks them,
// or the newest first.
func showMemories(c *call) error {
	b, err := c.begin("Memories", "memories")
	if err != nil {
		return err
	}
	q := c.r.URL.Query()
	v := memoriesView{base: b, Filter: filterOf(q)}
	if c.partial() && q.Get("part") == "sources" {
		return showSources(c, v)
	}
	if err := v.fill(c, q.Get("cursor")); err != nil {
		if !isOf(err, "invalid") || c.nobody(err) {
			return err
		}
		v.Problem = sentence(api.Detail(err))
	}
	switch {
	case c.partial() && q.Get("cursor") != "":
		c.renderPart("memories", "rows", v)
		return nil
	case c.wants("results"):
		c.renderPart("memories", "results", v)
		return nil
	}
	if id := q.Get("id"); id != "" {
		if m, err := c.service.Get(c.ctx, c.p, c.whose, id, true); err == nil {
			v.Selected = &memoryView{base: b, Memory: m}
			if err := v.Selected.fillHistory(c); err != nil {
				return err
			}
		}
	}
	c.render(http.StatusOK, "memories", v)
	return nil
}

// showSources answers with the choices for the filter by source. Finding them
// reads all memories, so that it waits until somebody opens the filters.
func showSources(c *call, v memoriesView) error {
	found, err := c.service.Sources(c.ctx, c.p, c.whose)
	if err != nil {
		return err
	}
	for _, s := range found.Sources {
		v.Sources = append(v.Sources, s.Source)
	}
	c.renderPart("memories", "sources", v)
	return nil
}

func (v *memoriesView) fill(c *call, cursor string) error {
	f := v.Filter.list(c.now())
	if !v.Filter.searches() {
		page, err := c.service.List(c.ctx, c.p, c.whose, f, cursor, pageSize)
		for _, m := range page.Memories {
			v.Items = append(v.Items, item{Memory: m})
		}
		v.Next, v.Damaged = page.Next, page.Damaged
		return err
	}
	v.Searched = true
	found, err := c.service.Search(c.ctx, c.p, c.whose, api.Search{Query: v.Filter.Query, TopK: maxFound, Kinds: f.Kinds, Tags: f.Tags})
	if err != nil {
		return err
	}
	for _, r := range found.Results {
		if f.Source != "" && r.Memory.Source != f.Source || f.Since != "" && r.Memory.EventTime < f.Since || f.Until != "" && r.Memory.EventTime >= f.Until {
			continue
		}
		v.Items = append(v.Items, item{r.Memory, r.Score})
	}
	if v.Filter.Unused {
		return v.dropUsed(c)
	}
	return nil
}

// dropUsed leaves only the memories that were never inserted.
func (v *memoriesView) dropUsed(c *call) error {
	for i := range v.Items {
		m, err := c.service.Get(c.ctx, c.p, c.whose, v.Items[i].ID, false)
		if err != nil {
			return err
		}
		v.Items[i].Uses = m.Uses
	}
	v.Items = slices.DeleteFunc(v.Items, func(i item) bool { return i.Uses != nil && i.Uses.Count > 0 })
	return nil
}

// MoreLink returns the path of the following page.
func (v memoriesView) MoreLink() string {
	q := v.query()
	q.Set("cursor", v.Next)
	return "/memories?" + q.Encode()
}

// ItemLink returns the path of a memory's own view.
func (v memoriesView) ItemLink(m api.Memory) string {
	return v.Link(memoryPath(m.ID))
}

// Selects reports whether a memory is the one next to the list.
func (v memoriesView) Selects(m api.Memory) bool {
	return v.Selected != nil && v.Selected.Memory.ID == m.ID
}

func (v memoriesView) query() url.Values {
	q := targetQuery(v.Whose)
	f := v.Filter
	setKnown(q, map[string]string{"q": f.Query, "source": f.Source, "tag": f.Tag, "age": f.Age})
	q["kind"], q["state"] = f.Kinds, f.States
	if f.Unused {
		q.Set("used", "never")
	}
	if f.Oldest {
		q.Set("order", "oldest")
	}
	return q
}

// addMemory saves a fact that somebody types.
func addMemory(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	added, err := c.service.Add(c.ctx, c.p, c.whose, api.Draft{Text: typed(form.Get("text")), Tags: tagsOf(form.Get("tags"))}, "page")
	if err != nil {
		return c.report(flash{}, err, form.Get("return"))
	}
	done := flash{Text: cmp.Or(addedNames[added.Event], "Saved.")}
	return c.report(done, nil, base{Whose: c.whose}.Link("/memories", "id", added.Memory.ID))
}

// addedNames say what became of a fact that was added, if it is not a new one.
var addedNames = map[string]string{
	"known": "That is known already.", "superseded": "Saved, in place of an older statement.", "forgotten": "That was forgotten later, and was not saved.",
}

// tagsOf reads tags with commas between them.
func tagsOf(text string) []string {
	out := []string{}
	for tag := range strings.SplitSeq(text, ",") {
		if tag = strings.TrimSpace(tag); tag != "" && !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}
