package mcp

import "slices"

func (c graphCall) addObservations() (reply, error) {
	var given []struct {
		EntityName string
		Contents   []string
	}
	if err := c.args.decode(&given, "a list of observations", "observations"); err != nil {
		return reply{}, err
	}
	if err := many("observations", len(given)); err != nil {
		return reply{}, err
	}
	g, err := c.readGraph()
	if err != nil {
		return reply{}, err
	}
	for _, o := range given {
		if _, known := g.at[o.EntityName]; !known {
			return reply{}, &saidError{"Entity with name " + o.EntityName + " not found"}
		}
	}
	type result struct {
		EntityName        string   `json:"entityName"`
		AddedObservations []string `json:"addedObservations"`
	}
	results := []result{}
	for _, o := range given {
		e := &g.Entities[g.at[o.EntityName]]
		fresh, err := c.observe(o.EntityName, e.Observations, o.Contents)
		if err != nil {
			return reply{}, err
		}
		e.Observations = append(e.Observations, fresh...)
		results = append(results, result{o.EntityName, fresh})
	}
	return indented(results, map[string]any{"results": results})
}

// finished answers as the reference server does after a deletion.
func finished(message string) (reply, error) {
	return reply{message, map[string]any{"success": true, "message": message}}, nil
}

func (c graphCall) deleteEntities() (reply, error) {
	names, err := c.args.list(false, "entityNames", "names")
	if err != nil {
		return reply{}, err
	}
	if err := many("entityNames", len(names)); err != nil {
		return reply{}, err
	}
	g, err := c.readGraph()
	if err != nil {
		return reply{}, err
	}
	var ids []string
	for _, name := range names {
		ids = append(ids, g.ids[name]...)
	}
	for i, r := range g.Relations {
		if slices.Contains(names, r.From) || slices.Contains(names, r.To) {
			ids = append(ids, g.rels[i])
		}
	}
	if err := c.discard(ids); err != nil {
		return reply{}, err
	}
	return finished("Entities deleted successfully")
}

func (c graphCall) deleteObservations() (reply, error) {
	var given []struct {
		EntityName   string
		Observations []string
	}
	if err := c.args.decode(&given, "a list of deletions", "deletions"); err != nil {
		return reply{}, err
	}
	if err := many("deletions", len(given)); err != nil {
		return reply{}, err
	}
	g, err := c.readGraph()
	if err != nil {
		return reply{}, err
	}
	var ids []string
	for _, d := range given {
		for _, o := range g.said {
			if o.entity == d.EntityName && slices.Contains(d.Observations, o.text) {
				ids = append(ids, o.id)
			}
		}
	}
	if err := c.discard(ids); err != nil {
		return reply{}, err
	}
	return finished("Observations deleted successfully")
}

func (c graphCall) deleteRelations() (reply, error) {
	given, err := c.givenRelations()
	if err != nil {
		return reply{}, err
	}
	g, err := c.readGraph()
	if err != nil {
		return reply{}, err
	}
	var ids []string
	for i, r := range g.Relations {
		if slices.Contains(given, r) {
			ids = append(ids, g.rels[i])
		}
	}
	if err := c.discard(ids); err != nil {
		return reply{}, err
	}
	return finished("Relations deleted successfully")
}
