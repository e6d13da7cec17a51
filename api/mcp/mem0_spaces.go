package mcp

import (
	"cmp"

	"github.com/remora-proxy/remora/api"
)

// mem0's names are parts of whose memory it is, as in the face for its REST
// API: user_id is the user, app_id the app, agent_id the project, and run_id
// the conversation. What is written without an app or an agent goes to the
// default one; what is read without them comes from all of the user's.

// maxSpaces bounds the apps and agents that one call reads.
const maxSpaces = 100

// mem0Entity is what a call of mem0's tools names.
type mem0Entity struct{ app, agent, run string }

// entity reads the ids of a call. The user is in its target already.
func (c mem0Call) entity() (e mem0Entity, err error) {
	if e.app, err = c.args.text("app_id", "appId"); err != nil {
		return e, err
	}
	if e.agent, err = c.args.text("agent_id", "agentId"); err != nil {
		return e, err
	}
	e.run, err = c.args.text("run_id", "runId")
	return e, err
}

// target returns where something new is kept.
func (c mem0Call) home(e mem0Entity) api.Target {
	return overlay(c.target, api.Target{App: e.app, Project: e.agent})
}

// spaces returns where memories are read, and deleted.
func (c mem0Call) spaces(e mem0Entity) (out []api.Target, err error) {
	t := c.home(e)
	if t.User == "" || t.App != "" && t.Project != "" {
		return []api.Target{t}, nil
	}
	for after := ""; len(out) < maxSpaces; {
		page, err := c.verbs.Users(c, t, after, api.MaxPage)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Users {
			out = append(out, api.Target{Tenant: t.Tenant, App: u.App, Project: u.Project, User: t.User})
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(out) == 0 {
		out = []api.Target{t}
	}
	return out[:min(len(out), maxSpaces)], nil
}

// eachSpace calls do for each of the spaces, with the call's target set to it.
func (c mem0Call) eachSpace(e mem0Entity, do func() error) error {
	all, err := c.spaces(e)
	if err != nil {
		return err
	}
	was := c.target
	defer func() { c.target = was }()
	for _, c.target = range all {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// named returns a part of whose memory it is, "" for the default.
func named(part string) string {
	if part == defaultPart {
		return ""
	}
	return part
}

// defaultPart is the app and the project of memories that name none.
const defaultPart = "default"

// newer orders memories by when they were said, the newest first.
func newer(a, b api.Memory) int { return -cmp.Compare(a.EventTime, b.EventTime) }
