package mem0

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// selection is what a request's filters select.
type selection struct {
	users, apps, agents, runs names
	tests                     []func(*api.Memory) bool // all of them
}

// run returns the only conversation that is selected, "" if there is none.
func (s *selection) run() string {
	if len(s.runs.list) == 1 {
		return s.runs.list[0]
	}
	return ""
}

// takes reports whether a memory of the selected spaces is selected.
func (s *selection) takes(m *api.Memory) bool {
	if s.runs.list != nil && !slices.Contains(s.runs.list, m.Conversation) {
		return false
	}
	return !slices.ContainsFunc(s.tests, func(test func(*api.Memory) bool) bool { return !test(m) })
}

// byIDs narrows a selection to the ids of a request.
func (s *selection) byIDs(id ids) error {
	for _, part := range [...]struct {
		field, name string
		n           *names
	}{{"user_id", id.UserID, &s.users}, {"app_id", id.AppID, &s.apps}, {"agent_id", id.AgentID, &s.agents}} {
		n, err := nameOf(part.field, part.name)
		if err != nil {
			return err
		}
		part.n.narrow(n)
	}
	if id.RunID != "" {
		s.runs.narrow(runOf(id.RunID))
	}
	return nil
}

// named reports whether a selection names a user, an app, an agent or a run, or
// says that it means all of them.
func (s *selection) named() bool {
	return s.users.given || s.apps.given || s.agents.given || s.runs.given
}

func runOf(name string) names {
	if name == anyName {
		return names{given: true}
	}
	return names{true, []string{name}}
}

// maxNames bounds the names in a list of a filter.
const maxNames = 100

// filters narrows a selection to a request's filters: an object of conditions,
// all of which must hold, or of AND with a list of such objects.
func (s *selection) filters(path string, raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var conditions map[string]json.RawMessage
	if json.Unmarshal(raw, &conditions) != nil {
		return invalid(path, "must be an object")
	}
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		value := conditions[name]
		if string(value) == "null" {
			continue
		}
		if err := s.condition(path, name, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *selection) condition(path, name string, value json.RawMessage) error {
	field := path + "." + name
	switch name {
	case "AND", "OR":
		var all []json.RawMessage
		if json.Unmarshal(value, &all) != nil {
			return invalid(field, "must be a list of objects")
		}
		if name == "OR" && len(all) > 1 {
			return invalid(field, "is not supported: ask for each alternative on its own")
		}
		for i := range all {
			if err := s.filters(fmt.Sprintf("%s[%d]", field, i), all[i]); err != nil {
				return err
			}
		}
		return nil
	case "user_id", "app_id", "agent_id", "run_id":
		return s.idCondition(field, name, value)
	case "created_at", "timestamp", "updated_at":
		return s.timeCondition(field, name, value)
	case "categories":
		return s.categoryCondition(field, value)
	case "metadata":
		return s.metadataCondition(field, value)
	case "keywords":
		return s.keywordCondition(field, value)
	case "memory_ids":
		list, err := words(field, value)
		if err != nil {
			return err
		}
		s.tests = append(s.tests, func(m *api.Memory) bool { return slices.Contains(list, m.ID) })
		return nil
	}
	if len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return r != '_' && (r < 'A' || r > 'z') }) {
		return invalid(path, "has a condition that is not supported")
	}
	return invalid(field, "is not supported")
}

func (s *selection) idCondition(field, name string, value json.RawMessage) error {
	list, err := words(field, value)
	if err != nil {
		return err
	}
	to := map[string]*names{"user_id": &s.users, "app_id": &s.apps, "agent_id": &s.agents, "run_id": &s.runs}[name]
	if slices.Contains(list, anyName) {
		to.narrow(names{given: true})
		return nil
	}
	either := names{true, []string{}}
	for _, v := range list {
		n := runOf(v)
		if name != "run_id" {
			if n, err = nameOf(field, v); err != nil {
				return err
			}
		}
		either.list = append(either.list, n.list...)
	}
	to.narrow(either)
	return nil
}

// words reads a word, a list of them, or an object with in or eq.
func words(field string, value json.RawMessage) ([]string, error) {
	var one string
	if json.Unmarshal(value, &one) == nil {
		return []string{one}, nil
	}
	var list []string
	if json.Unmarshal(value, &list) == nil {
		if len(list) > maxNames {
			return nil, invalid(field, fmt.Sprintf("has more than %d values", maxNames))
		}
		return list, nil
	}
	var operator map[string]json.RawMessage
	if json.Unmarshal(value, &operator) == nil && len(operator) == 1 {
		for name, operand := range operator {
			if name == "in" || name == "eq" {
				return words(field+"."+name, operand)
			}
		}
	}
	return nil, invalid(field, "must be a string, a list of strings, or an object with in")
}

// textOperator reads an object with contains or icontains, and returns whether
// case counts.
func textOperator(value json.RawMessage) (operand string, exact, ok bool) {
	var operator map[string]json.RawMessage
	if json.Unmarshal(value, &operator) != nil || len(operator) != 1 {
		return "", false, false
	}
	for name, v := range operator {
		ok = (name == "contains" || name == "icontains") && json.Unmarshal(v, &operand) == nil
		exact = name == "contains"
	}
	return operand, exact, ok
}

func (s *selection) categoryCondition(field string, value json.RawMessage) error {
	if part, _, ok := textOperator(value); ok {
		part = strings.ToLower(part)
		s.tests = append(s.tests, func(m *api.Memory) bool {
			return slices.ContainsFunc(readLabels(m.Tags).categories, func(c string) bool { return strings.Contains(strings.ToLower(c), part) })
		})
		return nil
	}
	list, err := words(field, value)
	if err != nil {
		return err
	}
	s.inCategories(list)
	return nil
}

// inCategories selects memories in any of the categories.
func (s *selection) inCategories(list []string) {
	s.tests = append(s.tests, func(m *api.Memory) bool {
		return slices.ContainsFunc(readLabels(m.Tags).categories, func(c string) bool { return slices.Contains(list, c) })
	})
}

func (s *selection) keywordCondition(field string, value json.RawMessage) error {
	part, exact, ok := textOperator(value)
	if !ok {
		return invalid(field, "must be an object with contains or icontains")
	}
	if !exact {
		part = strings.ToLower(part)
	}
	s.tests = append(s.tests, func(m *api.Memory) bool {
		text := m.Text
		if !exact {
			text = strings.ToLower(text)
		}
		return strings.Contains(text, part)
	})
	return nil
}

// metadataCondition selects memories whose metadata has the same values.
func (s *selection) metadataCondition(field string, value json.RawMessage) error {
	var want map[string]json.RawMessage
	if json.Unmarshal(value, &want) != nil {
		return invalid(field, "must be an object")
	}
	for key, v := range want {
		v = canonical(v)
		if bytes.HasPrefix(v, []byte("{")) {
			return invalid(field, "takes values to compare with, not objects")
		}
		s.tests = append(s.tests, func(m *api.Memory) bool {
			is, ok := readLabels(m.Tags).metadata[key]
			return ok && bytes.Equal(canonical(is), v)
		})
	}
	return nil
}

// canonical returns JSON in the one form that Go gives it.
func canonical(value json.RawMessage) []byte {
	var v any
	if json.Unmarshal(value, &v) != nil {
		return value
	}
	b, err := json.Marshal(v)
	if err != nil {
		return value
	}
	return b
}
