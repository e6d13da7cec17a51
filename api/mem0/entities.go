package mem0

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// Types of entities.
const (
	typeUser  = "user"
	typeAgent = "agent"
	typeApp   = "app"
	typeRun   = "run"
)

func isNotFound(err error) bool { return errors.Is(err, api.ErrNotFound) }

// entity is whom or what memories are about, as mem0 shows it. Since when it is
// known is not kept, and runs are not listed.
type entity struct {
	ID            string  `json:"id"`
	Name          string  `json:"name"`
	Type          string  `json:"type"`
	TotalMemories int     `json:"total_memories"` // of all kinds, answers included
	Owner         string  `json:"owner"`
	Metadata      *string `json:"metadata"`
	CreatedAt     *string `json:"created_at"`
	UpdatedAt     *string `json:"updated_at"`
}

// maxEntities bounds the entities that are listed.
const maxEntities = 10_000

// list returns the users, agents and apps that the caller may reach.
func (c adminCall) list() ([]*entity, error) {
	tenant, err := c.tenant()
	if err != nil {
		return nil, err
	}
	var out []*entity
	byName := map[[2]string]*entity{}
	count := func(kind, name string, n int) {
		e := byName[[2]string{kind, name}]
		if e == nil {
			if len(out) == maxEntities {
				return
			}
			e = &entity{ID: name, Name: name, Type: kind, Owner: c.p.By}
			byName[[2]string{kind, name}] = e
			out = append(out, e)
		}
		e.TotalMemories += n
	}
	err = c.eachUser(api.Target{Tenant: tenant}, func(u *api.User) error {
		count(typeUser, cmp.Or(userName(u.User), u.User), u.Memories)
		if name := partName(u.Project); name != "" {
			count(typeAgent, name, u.Memories)
		}
		if name := partName(u.App); name != "" {
			count(typeApp, name, u.Memories)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b *entity) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return out, err
}

func (c adminCall) entities() error {
	var q listRequest
	if _, err := q.parameters(c.r); err != nil {
		return err
	}
	all, err := c.list()
	if err != nil {
		return err
	}
	p := page{Count: len(all), Results: []any{}}
	totals := map[string]int{}
	from := min((q.Page-1)*q.PageSize, len(all))
	for i, e := range all {
		totals[e.Type]++
		if i >= from && i < from+q.PageSize {
			p.Results = append(p.Results, e)
		}
	}
	p.link(c.r, q.Page, q.PageSize)
	return c.write(http.StatusOK, struct {
		page
		Users  int `json:"total_users"`
		Agents int `json:"total_agents"`
		Apps   int `json:"total_apps"`
		Runs   int `json:"total_runs"`
	}{p, totals[typeUser], totals[typeAgent], totals[typeApp], 0})
}

func (c adminCall) plainEntities() error {
	all, err := c.list()
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, append([]*entity{}, all...))
}

func (c adminCall) entity() error {
	all, err := c.list()
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.Type == c.r.PathValue("type") && e.Name == c.r.PathValue("name") {
			return c.write(http.StatusOK, []*entity{e})
		}
	}
	return api.ErrNotFound
}

// deleteEntity erases a user, or what all users told an agent or an app, or
// said in a run. It can't be undone.
func (c adminCall) deleteEntity() error {
	kind, name := c.r.PathValue("type"), c.r.PathValue("name")
	n, err := nameOf("name", name)
	switch {
	case err != nil:
		return err
	case n.list == nil:
		return invalid("name", "must be the name of one")
	}
	tenant, err := c.tenant()
	if err != nil {
		return err
	}
	switch shown := n.list[0]; kind {
	case typeUser:
		_, err = c.service.Erase(c.r.Context(), c.p, api.Target{Tenant: tenant, User: shown})
	case typeAgent:
		err = c.eraseAll(api.Target{Tenant: tenant, Project: shown}, c.erase)
	case typeApp:
		err = c.eraseAll(api.Target{Tenant: tenant, App: shown}, c.erase)
	case typeRun:
		err = c.eraseAll(api.Target{Tenant: tenant}, func(t api.Target) error { return c.eraseRun(t, name) })
	default:
		err = invalid("type", "must be user, agent, app or run")
	}
	if err != nil {
		return err
	}
	return c.say("Entity deleted successfully!")
}

// eraseAll erases something in all targets that the caller may reach. It fails
// with api.ErrNotFound if there is nothing in any of them.
func (c adminCall) eraseAll(of api.Target, erase func(api.Target) error) error {
	var all []api.Target
	if err := c.eachUser(of, func(u *api.User) error { all = append(all, targetOf(u)); return nil }); err != nil {
		return err
	}
	found := api.ErrNotFound
	for _, t := range all {
		switch err := erase(t); {
		case err == nil:
			found = nil
		case !isNotFound(err):
			return err
		}
	}
	return found
}

func (c adminCall) erase(t api.Target) error {
	_, err := c.service.Erase(c.r.Context(), c.p, t)
	return err
}

// eraseRun erases a conversation where something of it is remembered.
func (c adminCall) eraseRun(t api.Target, run string) error {
	some, err := c.service.List(c.r.Context(), c.p, t, api.Filter{Conversation: run, States: api.States()}, "", 1)
	if err != nil {
		return err
	}
	if len(some.Memories) == 0 {
		return api.ErrNotFound
	}
	_, err = c.service.EraseConversation(c.r.Context(), c.p, t, run)
	return err
}

// reset erases one user, for the admin: the one that the request names, or the
// one of requests that name none.
func (c adminCall) reset() error {
	if !c.p.Admin {
		return api.ErrForbidden
	}
	t, err := c.home(queryIDs(c.r.URL.Query()))
	if err != nil {
		return err
	}
	_, err = c.service.Erase(c.r.Context(), c.p, api.Target{Tenant: t.Tenant, User: t.User})
	if err != nil && !isNotFound(err) {
		return err
	}
	return c.say("All memories of the user reset")
}
