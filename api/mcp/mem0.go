package mcp

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/remora-proxy/remora/api"
)

// mem0Memory is a memory as mem0 shows it.
type mem0Memory struct {
	ID         string   `json:"id"`
	Memory     string   `json:"memory"`
	Hash       string   `json:"hash"`
	UserID     string   `json:"user_id"`
	AppID      string   `json:"app_id,omitempty"`
	AgentID    string   `json:"agent_id,omitempty"`
	RunID      string   `json:"run_id,omitempty"`
	Score      *float64 `json:"score,omitempty"`
	Categories []string `json:"categories"`
	CreatedAt  string   `json:"created_at"`
	UpdatedAt  string   `json:"updated_at"`

	Metadata map[string]json.RawMessage `json:"metadata"`
}

// mem0Hash is the hash that mem0 shows of a text. It proves nothing.
func mem0Hash(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func mem0Of(m *api.Memory) mem0Memory {
	out := mem0Memory{
		ID: m.ID, Memory: m.Text, Hash: mem0Hash(m.Text), UserID: m.User, AppID: named(m.App),
		AgentID: named(m.Project), RunID: m.Conversation, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
	}
	out.Metadata, out.Categories = api.ReadMetadata(m.Tags)
	return out
}

// labels returns the tags for the metadata of a call, and its categories.
func (c mem0Call) labels() ([]string, error) {
	tags, err := c.args.list(true, "categories", "tags")
	if err != nil {
		return nil, err
	}
	var metadata map[string]json.RawMessage
	if err := c.args.decode(&metadata, "an object", "metadata"); err != nil {
		return nil, err
	}
	more, err := metadataTags(metadata)
	return append(tags, more...), err
}

func (c mem0Call) mem0Add() (reply, error) {
	e, err := c.entity()
	if err != nil {
		return reply{}, err
	}
	tags, err := c.labels()
	if err != nil {
		return reply{}, err
	}
	c.target = c.home(e)
	texts, err := c.args.list(false, "messages")
	if err == nil && len(texts) == 0 {
		texts, err = c.given()
	}
	if err != nil {
		return reply{}, err
	}
	return c.mem0Save(texts, api.Draft{Tags: tags, Conversation: e.run})
}

// mem0Save saves texts and answers as mem0 does.
func (c mem0Call) mem0Save(texts []string, d api.Draft) (reply, error) {
	all, err := c.save(texts, d)
	if err != nil {
		return reply{}, err
	}
	type result struct {
		ID     string `json:"id"`
		Memory string `json:"memory"`
		Event  string `json:"event"`
	}
	results := []result{}
	for i := range all {
		switch all[i].Event {
		case "known":
			results = append(results, result{all[i].ID, all[i].Text, "NONE"})
		case "added", "superseded":
			results = append(results, result{all[i].ID, all[i].Text, "ADD"})
		}
	}
	return inJSON(map[string]any{"results": results})
}

func (c mem0Call) mem0Search() (reply, error) {
	q, err := c.args.required(namesQuery...)
	if err != nil {
		return reply{}, err
	}
	limit, err := c.args.between(1, api.MaxTopK, defaultFound, namesLimit...)
	if err != nil {
		return reply{}, err
	}
	e, f, err := c.mem0Filter()
	if err != nil {
		return reply{}, err
	}
	search := api.Search{Query: q, TopK: limit, Tags: f.Tags}
	if f.Conversation != "" {
		search.Conversation, search.Scopes = f.Conversation, []string{"current_chat"}
	}
	if f.Since+f.Until != "" {
		search.TopK = api.MaxTopK // some are left out below
	}
	results := []mem0Memory{}
	err = c.eachSpace(e, func() error {
		res, err := c.verbs.Search(c, c.target, search)
		for i := range res.Results {
			m := &res.Results[i].Memory
			if f.Since != "" && m.EventTime < f.Since || f.Until != "" && m.EventTime >= f.Until {
				continue
			}
			out := mem0Of(m)
			out.Score = &res.Results[i].Score
			results = append(results, out)
		}
		return err
	})
	if err != nil {
		return reply{}, err
	}
	best := func(a, b mem0Memory) int { return cmp.Compare(*b.Score, *a.Score) }
	slices.SortStableFunc(results, best)
	return inJSON(map[string]any{"results": results[:min(len(results), limit)]})
}

func (c mem0Call) mem0Get() (reply, error) {
	id, err := c.args.required(namesID...)
	if err != nil {
		return reply{}, err
	}
	m, err := c.verbs.Get(c, c.target, id)
	if err != nil {
		return reply{}, err
	}
	return inJSON(mem0Of(&m))
}

func (c mem0Call) mem0Update() (reply, error) {
	m, err := c.update()
	if err != nil {
		return reply{}, err
	}
	return inJSON(mem0Of(&m))
}

func (c mem0Call) mem0Delete() (reply, error) {
	id, err := c.args.required(namesID...)
	if err != nil {
		return reply{}, err
	}
	if _, err := c.verbs.Delete(c, c.target, why, id); err != nil {
		return reply{}, err
	}
	return inJSON(map[string]any{"message": "Memory deleted successfully!"})
}
