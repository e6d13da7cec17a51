package telemetry

import (
	"errors"
	"regexp"
	"sync"
)

var errNoSuchMetric = errors.New("telemetry: the table has no such histogram")

// Limits on the names of models, which clients send.
const (
	maxModels    = 64 // distinct names; further ones are otherModel
	maxModelName = 80 // bytes
)

// otherModel is the name of all models beyond the limits.
const otherModel = "other"

// modelName is what the names of models look like.
var modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)

// idLike is in what looks like a key, a number of somebody or an identifier
// rather than like the name of a model: long words, long numbers, UUIDs.
var idLike = regexp.MustCompile(`[A-Za-z0-9]{17}|[0-9]{9}|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-`)

// Models bounds the names of models that become attributes: at most maxModels
// of them, as they come, which look like names and in which Redact finds
// nothing. The zero value is ready to use.
type Models struct {
	// Redact, if not nil, returns a text without what must not be shown.
	Redact func(text string) string

	mu    sync.RWMutex
	known map[string]string
}

// Name returns model, or "other". A name that is not known yet becomes so only
// if admit is set: a name that an upstream refuses takes no place.
func (m *Models) Name(model string, admit bool) string {
	m.mu.RLock()
	known, ok := m.known[model]
	m.mu.RUnlock()
	switch {
	case ok || model == "":
		return known
	case !admit || len(model) > maxModelName || !modelName.MatchString(model) || idLike.MatchString(model) || m.Redact != nil && m.Redact(model) != model:
		return otherModel
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.known[model]; !ok && len(m.known) >= maxModels {
		return otherModel
	}
	if m.known == nil {
		m.known = map[string]string{}
	}
	model = string([]byte(model)) // it may be part of a body
	m.known[model] = model
	return model
}
