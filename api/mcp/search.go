package mcp

import (
	"net/url"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// maxTitle bounds the title of a memory, in characters.
const maxTitle = 80

// searchTools returns search and fetch as ChatGPT's connectors and its deep
// research call them: one string each.
func searchTools() []tool {
	result := object(
		must("id", typed("string")), must("title", typed("string")), must("url", typed("string")),
	)
	return []tool{
		{
			name: "search", title: "Search", hints: reads, run: (*call).searchDocuments,
			description: "Search what is remembered about the user. Returns ids, titles and links; " +
				"fetch returns the text.",
			input:  object(must("query", text(api.MaxQuery).about("What to look for."))),
			output: object(must("results", anyList(result))),
		},
		{
			name: "fetch", title: "Fetch", hints: reads, run: (*call).fetchDocument,
			description: "Get the full text of what a search has found, by its id.",
			input:       object(must("id", text(idLimit).about("The id of a result of search."))),
			output: object(
				must("id", typed("string")), must("title", typed("string")), must("text", typed("string")),
				must("url", typed("string")), may("metadata", typed("object")),
			),
		},
	}
}

// found is a result of search.
type found struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

// document is what fetch returns.
type document struct {
	ID       string            `json:"id"`
	Title    string            `json:"title"`
	Text     string            `json:"text"`
	URL      string            `json:"url"`
	Metadata map[string]string `json:"metadata"`
}

func (c *call) searchDocuments() (reply, error) {
	q, err := c.args.required(namesQuery...)
	if err != nil {
		return reply{}, err
	}
	res, err := c.verbs.Search(c, c.target, api.Search{Query: q, TopK: defaultFound})
	if err != nil {
		return reply{}, err
	}
	out := []found{}
	for i := range res.Results {
		m := &res.Results[i].Memory
		out = append(out, found{m.ID, titleOf(m.Text), c.link(m.ID)})
	}
	return inJSON(map[string]any{"results": out})
}

func (c *call) fetchDocument() (reply, error) {
	id, err := c.args.required(namesID...)
	if err != nil {
		return reply{}, err
	}
	m, err := c.verbs.Get(c, c.target, id)
	if err != nil {
		return reply{}, err
	}
	out := document{m.ID, titleOf(m.Text), m.Text, c.link(m.ID), map[string]string{}}
	for name, v := range map[string]string{
		"kind": m.Kind, "time": m.EventTime, "state": m.State, "source": m.Source,
		"conversation": m.Conversation, "speaker": m.Speaker, "resource_uri": m.ResourceURI,
		"tags": strings.Join(m.Tags, ", "),
	} {
		if v != "" {
			out.Metadata[name] = v
		}
	}
	return inJSON(out)
}

// titleOf returns the beginning of a text in one line.
func titleOf(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= maxTitle {
		return string(runes)
	}
	return string(runes[:maxTitle-1]) + "…"
}

// link returns the address of a memory.
func (c *call) link(id string) string {
	if c.base == "" {
		return "remora:memory/" + url.PathEscape(id)
	}
	return strings.TrimSuffix(c.base, "/") + "/v1/memories/" + url.PathEscape(id)
}
