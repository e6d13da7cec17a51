package mcp

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// What mem0 calls entities is mapped as follows: user_id is the user, app_id
// the app, run_id the conversation, and agent_id a tag. Its categories are
// tags, and so are simple values of its metadata, as name=value.

const agentTag = "agent:"

// mem0Memory is a memory as mem0 shows it.
type mem0Memory struct {
	ID         string         `json:"id"`
	Memory     string         `json:"memory"`
	Hash       string         `json:"hash"`
	UserID     string         `json:"user_id"`
	AppID      string         `json:"app_id,omitempty"`
	AgentID    string         `json:"agent_id,omitempty"`
	RunID      string         `json:"run_id,omitempty"`
	Metadata   map[string]any `json:"metadata"`
	Categories []string       `json:"categories"`
	CreatedAt  string         `json:"created_at"`
	UpdatedAt  string         `json:"updated_at"`
	Score      *float64       `json:"score,omitempty"`
}

// mem0Hash is the hash that mem0 shows of a text. It proves nothing.
func mem0Hash(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func mem0Of(m *api.Memory) mem0Memory {
	out := mem0Memory{
		ID: m.ID, Memory: m.Text, Hash: mem0Hash(m.Text), UserID: m.User, RunID: m.Conversation, Metadata: map[string]any{},
		Categories: []string{}, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
	}
	if m.App != defaultApp {
		out.AppID = m.App
	}
	for _, tag := range m.Tags {
		name, v, paired := strings.Cut(tag, "=")
		if agent, ok := strings.CutPrefix(tag, agentTag); ok {
			out.AgentID = agent
		} else if paired && name != "" {
			out.Metadata[name] = v
		} else {
			out.Categories = append(out.Categories, tag)
		}
	}
	return out
}

// defaultApp is the app of memories that name none.
const defaultApp = "default"

// mem0Entity is what a call of mem0's tools names: whose memory, and which part
// of it.
type mem0Entity struct{ agent, run string }

// entity reads the ids of a call and sets its target.
func (c *call) entity() (e mem0Entity, err error) {
	app, err := c.args.text("app_id", "appId")
	if err != nil {
		return e, err
	}
	if app != "" {
		c.target.App = app
	}
	if e.agent, err = c.args.text("agent_id", "agentId"); err != nil {
		return e, err
	}
	e.run, err = c.args.text("run_id", "runId")
	return e, err
}

func (e *mem0Entity) tags() []string {
	if e.agent == "" {
		return nil
	}
	return []string{agentTag + e.agent}
}

func (e *mem0Entity) filter() api.Filter {
	return api.Filter{Conversation: e.run, Tags: e.tags()}
}

// metadataTags returns the tags for the metadata of a memory.
func (c *call) metadataTags() ([]string, error) {
	tags, err := c.args.list(true, "categories", "tags")
	if err != nil {
		return nil, err
	}
	var metadata map[string]json.RawMessage
	if err := c.args.decode(&metadata, "an object", "metadata"); err != nil {
		return nil, err
	}
	for name, raw := range metadata {
		switch name {
		case "category", "categories", "tags":
			more, err := args(metadata).list(true, name)
			if err != nil {
				return nil, wrong("metadata."+name, "must be a list of strings")
			}
			tags = append(tags, more...)
		default:
			if v, ok := scalar(raw); ok && len(name)+1+len(v) <= api.MaxTag && name != "" {
				tags = append(tags, name+"="+v)
			}
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags), nil
}

func (c *call) mem0Add() (reply, error) {
	e, err := c.entity()
	if err != nil {
		return reply{}, err
	}
	tags, err := c.metadataTags()
	if err != nil {
		return reply{}, err
	}
	texts, err := c.args.list(false, "messages")
	if err == nil && len(texts) == 0 {
		texts, err = c.given()
	}
	if err != nil {
		return reply{}, err
	}
	return c.mem0Save(texts, api.Draft{Tags: append(tags, e.tags()...), Conversation: e.run})
}

// mem0Save saves texts and answers as mem0 does.
func (c *call) mem0Save(texts []string, d api.Draft) (reply, error) {
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

func (c *call) mem0Search() (reply, error) {
	q, err := c.args.required(namesQuery...)
	if err != nil {
		return reply{}, err
	}
	limit, err := c.args.between(1, api.MaxTopK, defaultFound, namesLimit...)
	if err != nil {
		return reply{}, err
	}
	f, err := c.mem0Filter()
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
	res, err := c.verbs.Search(c, c.target, search)
	if err != nil {
		return reply{}, err
	}
	results := []mem0Memory{}
	for i := range res.Results {
		m := &res.Results[i].Memory
		if f.Since != "" && m.EventTime < f.Since || f.Until != "" && m.EventTime >= f.Until || len(results) == limit {
			continue
		}
		out := mem0Of(m)
		out.Score = &res.Results[i].Score
		results = append(results, out)
	}
	return inJSON(map[string]any{"results": results})
}

func (c *call) mem0Get() (reply, error) {
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

func (c *call) mem0Update() (reply, error) {
	m, err := c.update()
	if err != nil {
		return reply{}, err
	}
	return inJSON(mem0Of(&m))
}

func (c *call) mem0Delete() (reply, error) {
	id, err := c.args.required(namesID...)
	if err != nil {
		return reply{}, err
	}
	if _, err := c.verbs.Delete(c, c.target, why, id); err != nil {
		return reply{}, err
	}
	return inJSON(map[string]any{"message": "Memory deleted successfully!"})
}
