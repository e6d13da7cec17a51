package config

import (
	"fmt"
	"slices"
	"strings"
)

// report collects problems while a configuration is read, and where each value
// was given.
type report struct {
	problems Problems
	origins  map[string]string // by key path: "config.json:12", "REMORA_LISTEN", "--listen"
	fitted   map[string]bool   // by key: defaults that were lowered to the memory limit
}

// Problems are all that is wrong with a configuration.
type Problems []problem

type problem struct {
	key    string // path, e.g. "recall.deadline"; "" = the whole file
	origin string // where the value was given, "" = it is a default
	what   string
}

func (p problem) Error() string {
	text := p.what
	if p.key != "" {
		text = p.key + ": " + text
	}
	if p.origin != "" {
		text += " (" + p.origin + ")"
	}
	return text
}

func (p Problems) Error() string {
	if len(p) == 1 {
		return "configuration: " + p[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "configuration: %d problems:", len(p))
	for _, e := range p {
		b.WriteString("\n  " + e.Error())
	}
	return b.String()
}

// err returns the problems, or nil if there are none.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return r.problems
}

func (r *report) add(key, what string) { r.addFrom(key, r.origin(key), what) }

func (r *report) addFrom(key, origin, what string) {
	r.problems = append(r.problems, problem{key, origin, what})
}

// addAll adds the joined errors of a package's Validate, each "field: what is
// wrong", under section. A key that already has a problem gets no second one.
func (r *report) addAll(section string, err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			r.addAll(section, e)
		}
		return
	}
	field, what, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		field, what = "", err.Error()
	}
	key := strings.TrimSuffix(join(section, field), ".")
	if !slices.ContainsFunc(r.problems, func(p problem) bool { return p.key == key }) {
		r.add(key, what)
	}
}

// origin returns where the value at key was given, or the list or object that
// holds it.
func (r *report) origin(key string) string {
	for key != "" {
		if origin, ok := r.origins[key]; ok {
			return origin
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return ""
}

// Nearest returns the candidate closest to name, or "" if none is close enough
// to be a typing error.
func Nearest(name string, candidates []string) string {
	best, distance := "", 1+len(name)/3
	for _, c := range candidates {
		if d := editDistance(strings.ToLower(name), strings.ToLower(c)); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// editDistance is the Levenshtein distance in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
