package mem0

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/proxy/identity"
)

// ids are whose memory a request is about, in mem0's words.
type ids struct {
	UserID  string `json:"user_id"`
	AgentID string `json:"agent_id"`
	AppID   string `json:"app_id"`
	RunID   string `json:"run_id"`
}

// anyName stands for every name in a filter.
const anyName = "*"

// home returns where something new of id is kept.
func (c *call) home(id ids) (api.Target, error) {
	t := c.base
	for _, part := range [...]struct {
		field, name string
		to          *string
	}{
		{"user_id", id.UserID, &t.User}, {"app_id", id.AppID, &t.App}, {"agent_id", id.AgentID, &t.Project}, {"run_id", id.RunID, new(string)},
	} {
		if part.name == anyName {
			return t, invalid(part.field, "must be a name: * is for filters")
		}
		*part.to = cmp.Or(part.name, *part.to)
	}
	return c.service.Owner(c.p, t)
}

// names is what a filter says of one kind of id.
type names struct {
	given bool
	list  []string // as identity.Show shows them; nil = any
}

// narrow makes n what both n and other allow.
func (n *names) narrow(other names) {
	switch {
	case !n.given || n.list == nil:
		if other.given {
			*n = other
		}
	case other.given && other.list != nil:
		n.list = slices.DeleteFunc(slices.Clone(n.list), func(name string) bool { return !slices.Contains(other.list, name) })
	}
}

func (n *names) has(shown string) bool { return n.list == nil || slices.Contains(n.list, shown) }

// nameOf returns a filter for one name, or for any.
func nameOf(field, name string) (names, error) {
	switch name {
	case "":
		return names{}, nil
	case anyName:
		return names{given: true}, nil
	}
	part, err := identity.Parse(name)
	if err != nil {
		return names{}, invalid(field, err.Error())
	}
	return names{true, []string{identity.Show(part)}}, nil
}

// maxSpaces bounds the users, apps and agents that one request reads.
const maxSpaces = 200

// spaces returns whose memories a selection is about: one target for each
// user, app and agent.
func (c *call) spaces(s *selection) ([]api.Target, error) {
	users, apps, agents := s.users, s.apps, s.agents
	for _, part := range [...]struct {
		n     *names
		field string
		name  string
	}{{&users, "user_id", c.base.User}, {&apps, "app_id", c.base.App}, {&agents, "agent_id", c.base.Project}} {
		n, err := nameOf(part.field, part.name)
		if err != nil {
			return nil, err
		}
		part.n.narrow(n)
	}
	tenant, err := c.tenant()
	if err != nil {
		return nil, err
	}
	if !users.given || c.p.User != "" && users.list == nil {
		owner, err := c.service.Owner(c.p, api.Target{Tenant: tenant})
		if err != nil {
			return nil, err
		}
		users = names{true, []string{owner.User}}
	}
	if users.list != nil && apps.list != nil && agents.list != nil {
		return named(tenant, users.list, apps.list, agents.list)
	}
	return c.existing(tenant, users, apps, agents)
}

// tenant returns the tenant of everybody whom the caller may reach.
func (c *call) tenant() (string, error) {
	t := api.Target{Tenant: c.base.Tenant}
	if c.p.User == "" {
		t.User = anyName // any user: only the tenant is of interest
	}
	owner, err := c.service.Owner(c.p, t)
	return owner.Tenant, err
}

// named returns a target for each combination of names.
func named(tenant string, users, apps, agents []string) (out []api.Target, err error) {
	if len(users)*len(apps)*len(agents) > maxSpaces {
		return nil, tooManySpaces()
	}
	for _, user := range users {
		for _, app := range apps {
			for _, agent := range agents {
				out = append(out, api.Target{Tenant: tenant, User: user, App: app, Project: agent})
			}
		}
	}
	return out, nil
}

func tooManySpaces() error {
	return invalid("filters", "mean more than 200 users, apps and agents: name some of them")
}

// existing returns the targets in which something is remembered, the default
// app and agent of a user first.
func (c *call) existing(tenant string, users, apps, agents names) (out []api.Target, err error) {
	t := api.Target{Tenant: tenant}
	if len(users.list) == 1 {
		t.User = users.list[0]
	}
	err = c.eachUser(t, func(u *api.User) error {
		t := targetOf(u)
		if !users.has(t.User) || !apps.has(t.App) || !agents.has(t.Project) {
			return nil
		}
		if out = append(out, t); len(out) > maxSpaces {
			return tooManySpaces()
		}
		return nil
	})
	rank := func(part string) string {
		if part == identity.DefaultPart {
			return ""
		}
		return part
	}
	slices.SortFunc(out, func(a, b api.Target) int {
		return cmp.Or(strings.Compare(a.User, b.User), strings.Compare(rank(a.App), rank(b.App)), strings.Compare(rank(a.Project), rank(b.Project)))
	})
	return out, err
}

// eachUser calls found for everybody of whom something is remembered.
func (c *call) eachUser(t api.Target, found func(*api.User) error) error {
	for after := ""; ; {
		page, err := c.service.Users(c.r.Context(), c.p, t, after, api.MaxPage)
		if err != nil {
			return err
		}
		for i := range page.Users {
			if err := found(&page.Users[i]); err != nil {
				return err
			}
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

func targetOf(u *api.User) api.Target {
	return api.Target{Tenant: u.Tenant, User: u.User, App: identity.Show(u.App), Project: identity.Show(u.Project)}
}

// plainName returns a name as a client has given it: Remora quotes some when it
// shows them.
func plainName(shown string) string {
	part, err := identity.Parse(shown)
	if err != nil || strings.ContainsFunc(part, unicode.IsControl) {
		return shown
	}
	return part
}

// userName returns the user as a client knows it; "" for the one of requests
// that name none.
func userName(shown string) string {
	if shown == identity.Show(identity.KeyHolderUser) {
		return ""
	}
	return plainName(shown)
}

// partName returns an app or an agent as a client knows it.
func partName(part string) string {
	if part == identity.DefaultPart {
		return ""
	}
	return part
}

// runName returns a conversation as a client knows it.
func runName(conversation string) string {
	if api.Unnamed(conversation) {
		return ""
	}
	return conversation
}
