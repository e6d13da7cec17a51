// Package policy decides which memories may go to which upstream or model.
//
// A [Policy] is a list of rules. The first rule that fits an upstream and a
// model decides, and its [Class] says what a memory must be to go there. Without
// a rule everything may go anywhere, except for memories with the tag private:
// these go only where a rule names both the upstream and that tag.
//
// The proxy asks twice: recall leaves out what a class forbids, and the splice
// checks again what recall found. What was inserted under one class is never
// replayed under another, because the class is part of the ledger's seed.
//
// Everything here is pure. A Policy may be replaced as a whole while it is
// asked; a Class never changes.
package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/remora-proxy/remora/storage"
)

// What a rule grants of memory.
const (
	MemoryOn   = "on"   // memories go there, and turns are stored
	MemoryRead = "read" // memories go there, and nothing of it is stored
	MemoryOff  = "off"  // neither
)

// AnyTag admits memories whatever their tags, unless they are private.
const AnyTag = "*"

// Rule is one row of the policy.
type Rule struct {
	// Upstream is the name of an upstream, or of an intercepted host; "" = any.
	Upstream string
	// Model is the name of a model, in which * stands for any characters; "" =
	// any.
	Model string
	Allow Allow
	// Memory is MemoryOn, MemoryRead or MemoryOff; "" = MemoryOn.
	Memory string
}

// Allow lists what may go to an upstream. An empty list allows everything.
type Allow struct {
	Kinds    []string `json:"kinds,omitempty"`    // kinds of memories
	Tags     []string `json:"tags,omitempty"`     // a memory must have one of these; AnyTag = any
	Projects []string `json:"projects,omitempty"` // a memory must be of one of these
}

// Kinds are the kinds that a rule may name.
func Kinds() []string {
	return []string{string(storage.KindEpisode), string(storage.KindFact), string(storage.KindResource), string(storage.KindCurated)}
}

// Validate returns all problems of the rules, each with its place in the list.
func Validate(rules []Rule) error {
	var errs []error
	for i := range rules {
		r := &rules[i]
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("policy[%d]%s", i, fmt.Sprintf(format, args...)))
		}
		switch r.Memory {
		case "", MemoryOn, MemoryRead, MemoryOff:
		default:
			bad(".memory: must be on, read or off")
		}
		if _, err := path.Match(r.Model, ""); err != nil || strings.ContainsAny(r.Model, "[]\\?") {
			bad(".model: only * stands for other characters")
		}
		for k, kind := range r.Allow.Kinds {
			if !slices.Contains(Kinds(), kind) {
				bad(".allow.kinds[%d]: must be one of %s", k, strings.Join(Kinds(), ", "))
			}
		}
		for k, tag := range r.Allow.Tags {
			if tag == "" || len(tag) > 128 {
				bad(".allow.tags[%d]: must have 1 to 128 bytes", k)
			}
		}
		if slices.Contains(r.Allow.Tags, storage.PrivateTag) && r.Upstream == "" {
			bad(".upstream: must be named where the tag %s is allowed", storage.PrivateTag)
		}
	}
	return errors.Join(errs...)
}

// Policy is a list of rules. The zero Policy has none. It is safe for concurrent
// use.
type Policy struct{ rules atomic.Pointer[[]class] }

type class struct {
	Rule
	Class
}

// New returns a Policy of valid rules.
func New(rules []Rule) *Policy {
	p := &Policy{}
	p.Replace(rules)
	return p
}

// Replace has other valid rules decide from now on.
func (p *Policy) Replace(rules []Rule) {
	all := make([]class, 0, len(rules))
	for _, r := range rules {
		c := Class{Memory: r.Memory, allow: r.Allow, private: slices.Contains(r.Allow.Tags, storage.PrivateTag)}
		if c.Memory == "" {
			c.Memory = MemoryOn
		}
		c.any = len(r.Allow.Tags) == 0 || slices.Contains(r.Allow.Tags, AnyTag)
		c.limits = len(r.Allow.Kinds) > 0 || len(r.Allow.Projects) > 0 || !c.any
		if c.limits || c.private {
			name, _ := json.Marshal(r.Allow) // three lists of strings always encode
			c.name = string(name)
		}
		all = append(all, class{r, c})
	}
	p.rules.Store(&all)
}

// For returns the class of requests to a model at an upstream.
func (p *Policy) For(upstream, model string) Class {
	if p == nil {
		return Class{Memory: MemoryOn, any: true}
	}
	if rules := p.rules.Load(); rules != nil {
		for i := range *rules {
			r := &(*rules)[i]
			if (r.Upstream == "" || strings.EqualFold(r.Upstream, upstream)) && (r.Model == "" || Fits(r.Model, model)) {
				return r.Class
			}
		}
	}
	return Class{Memory: MemoryOn, any: true}
}

// Fits reports whether a pattern fits the name of a model: a * stands for any
// characters, slashes too, and case does not count.
func Fits(pattern, name string) bool {
	pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	if !strings.HasPrefix(name, parts[0]) {
		return false
	}
	name = name[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return strings.HasSuffix(name, last)
}

// Class is what requests to some upstreams and models may be given.
type Class struct {
	Memory string // MemoryOn, MemoryRead or MemoryOff

	name    string // identifies what it allows; "" = everything that is not private
	allow   Allow
	private bool // private memories are allowed
	any     bool // whatever the tags
	limits  bool // not everything that is not private is allowed
}

// Name identifies what the class allows: classes of one name allow the same.
func (c Class) Name() string { return c.name }

// Private reports whether private memories are allowed.
func (c Class) Private() bool { return c.private }

// Limits reports whether the class forbids more than private memories.
func (c Class) Limits() bool { return c.limits }

// Allows reports whether a memory with this kind and these tags may be given.
// project is the project of its scope.
func (c Class) Allows(project string, kind storage.Kind, tags []string) bool {
	private := slices.Contains(tags, storage.PrivateTag)
	switch {
	case private && !c.private:
		return false
	case len(c.allow.Kinds) > 0 && !slices.Contains(c.allow.Kinds, string(kind)):
		return false
	case !c.any && !slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(c.allow.Tags, tag) }):
		return false
	case len(c.allow.Projects) == 0 || slices.Contains(c.allow.Projects, project):
		return true
	}
	return slices.ContainsFunc(tags, func(tag string) bool {
		name, ok := strings.CutPrefix(tag, storage.ProjectTag)
		return ok && slices.Contains(c.allow.Projects, name)
	})
}
