package mcp

import (
	"encoding/json"
	"time"

	"github.com/remora-proxy/remora/api"
)

// maxFilterDepth bounds the nesting of mem0's filters.
const maxFilterDepth = 4

// stampLayout is how memories show times.
const stampLayout = "2006-01-02T15:04:05.000Z07:00"

// mem0Filter reads mem0's filters. A user that they name becomes that of the
// call. What has no counterpart is an error: a filter that is left out would
// find, or delete, too much.
func (c mem0Call) mem0Filter() (e mem0Entity, f api.Filter, err error) {
	r := filterReader{call: c.call}
	if r.entity, err = c.entity(); err != nil {
		return e, f, err
	}
	var filters map[string]json.RawMessage
	if err := c.args.decode(&filters, "an object", "filters"); err != nil {
		return e, f, err
	}
	err = r.clause(filters, 0)
	f = api.Filter{Conversation: r.entity.run, Tags: r.tags, Since: r.since, Until: r.until}
	return r.entity, f, err
}

// filterReader reads the clauses of a filter, all of which must hold.
type filterReader struct {
	call         *call
	entity       mem0Entity
	tags         []string
	since, until string
}

func (r *filterReader) clause(given map[string]json.RawMessage, depth int) error {
	if depth > maxFilterDepth {
		return wrong("filters", "is nested too deep")
	}
	for name, raw := range given {
		if err := r.condition(name, raw, depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *filterReader) condition(name string, raw json.RawMessage, depth int) error {
	switch name {
	case "AND", "OR":
		var all []map[string]json.RawMessage
		if json.Unmarshal(raw, &all) != nil {
			return wrong("filters."+name, "must be a list of objects")
		}
		if name == "OR" && len(all) > 1 {
			return wrong("filters.OR", "can hold one condition only: there is no search for any of several")
		}
		for _, one := range all {
			if err := r.clause(one, depth+1); err != nil {
				return err
			}
		}
		return nil
	case "user_id", "app_id", "agent_id", "run_id", "categories":
		v, err := oneValue("filters."+name, raw)
		if err != nil || v == "*" || v == "" {
			return err
		}
		switch name {
		case "user_id":
			r.call.target.User = v
		case "app_id":
			r.entity.app = v
		case "agent_id":
			r.entity.agent = v
		case "run_id":
			r.entity.run = v
		default:
			r.tags = append(r.tags, v)
		}
		return nil
	case "metadata":
		var pairs map[string]json.RawMessage
		if json.Unmarshal(raw, &pairs) != nil {
			return wrong("filters.metadata", "must be an object")
		}
		tags, err := metadataTags(pairs)
		r.tags = append(r.tags, tags...)
		return err
	case "created_at", "timestamp":
		return r.times("filters."+name, raw)
	}
	return wrong("filters", "has a condition that is not supported: there are user_id, app_id, "+
		"agent_id, run_id, categories, metadata, created_at and AND")
}

// oneValue returns the value that a condition names: itself, or the only one of
// in or contains.
func oneValue(field string, raw json.RawMessage) (string, error) {
	if v, ok := scalar(raw); ok {
		return v, nil
	}
	var of struct {
		In                      []string
		Eq, Contains, Icontains string
	}
	if json.Unmarshal(raw, &of) == nil {
		of.In = append(of.In, of.Eq, of.Contains, of.Icontains)
		var given []string
		for _, v := range of.In {
			if v != "" {
				given = append(given, v)
			}
		}
		if len(given) == 1 {
			return given[0], nil
		}
	}
	return "", wrong(field, "must name one value")
}

// times reads the bounds of a time.
func (r *filterReader) times(field string, raw json.RawMessage) error {
	var of struct{ Gte, Gt, Lte, Lt string }
	if json.Unmarshal(raw, &of) != nil {
		return wrong(field, "must be an object with gte, gt, lte or lt")
	}
	for _, bound := range [...]struct {
		v    string
		into *string
		more time.Duration // the bounds are read as at or after, and before
	}{
		{of.Gte, &r.since, 0}, {of.Gt, &r.since, time.Millisecond},
		{of.Lte, &r.until, time.Millisecond}, {of.Lt, &r.until, 0},
	} {
		if bound.v == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, bound.v)
		if err != nil {
			t, err = time.Parse(time.DateOnly, bound.v)
		}
		if err != nil {
			return wrong(field, "must be a time as RFC 3339, or a day as YYYY-MM-DD")
		}
		*bound.into = t.UTC().Add(bound.more).Format(stampLayout)
	}
	return nil
}
