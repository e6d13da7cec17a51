package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// problem is one thing wrong with the configuration.
type problem struct {
	key    string // path, e.g. "recall.deadline"; "" where it is the whole file
	origin string // where the value came from: "config.json:12", "REMORA_LISTEN", "--listen"; "" for a default
	what   string
}

func (p problem) Error() string {
	var b strings.Builder
	if p.key != "" {
		b.WriteString(p.key + ": ")
	}
	b.WriteString(p.what)
	if p.origin != "" {
		b.WriteString(" (" + p.origin + ")")
	}
	return b.String()
}

// problems collects them all, so that a configuration is mended in one go.
type problems []problem

func (p *problems) add(key, origin, what string) { *p = append(*p, problem{key, origin, what}) }

// err is nil when nothing was found. A mistake that is seen twice, by the reader and by a package's Validate, is told once.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return slices.CompactFunc(slices.Clone(p), func(a, b problem) bool { return a.Error() == b.Error() })
}

// addAll takes the joined errors of a package's Validate, each "fieldPath: what is wrong", and puts them under section. Where another
// setting sets the bound it is named as a person knows it, with its value and where that comes from.
func (p *problems) addAll(section string, err error, origins map[string]string, table []setting) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			p.addAll(section, e, origins, table)
		}
		return
	}
	field, what, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		field, what = "", err.Error()
	}
	path := strings.TrimSuffix(join(section, field), ".")
	key := known(path)
	origin := originOf(key, origins)
	what = boundBy.ReplaceAllStringFunc(what, func(match string) string {
		parts := boundBy.FindStringSubmatch(match)
		other, ok := settingNamed(table, parts[2], path[:max(strings.LastIndexByte(path, '.'), 0)], section)
		if !ok {
			return match
		}
		if from := originOf(other.key, origins); origin == "" {
			origin = from
		} else if from != "" && from != origin {
			origin += ", " + from
		}
		return fmt.Sprintf("%s%s (%v)", parts[1], other.key, other.at.encode())
	})
	p.add(key, origin, what)
}

// boundBy finds the setting that bounds another one, as the packages tell it: "must be at least limits.bodyBytes".
var boundBy = regexp.MustCompile(`(at least |>= |between |and |\.\.)([a-z][A-Za-z]*(?:\.[A-Za-z]+)*)`)

// settingNamed is the setting that a package calls by name, in the first of the sections that has it.
func settingNamed(table []setting, name string, sections ...string) (setting, bool) {
	for _, section := range append(sections, "") {
		i := slices.IndexFunc(table, func(s setting) bool { return s.key == known(join(section, name)) })
		if i >= 0 {
			return table[i], true
		}
	}
	return setting{}, false
}

// known is the key under which a person sets what a package calls by path.
func known(path string) string {
	if key, ok := renames[path]; ok {
		return key
	}
	return path
}

// originOf is where the value at key was written, or the list or object that it is part of.
func originOf(key string, origins map[string]string) string {
	for key != "" {
		if origin, ok := origins[key]; ok {
			return origin
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return ""
}

func (p problems) Error() string {
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

// nearest is the candidate closest to name, or "" when none is close enough to be a slip of the pen.
func nearest(name string, candidates []string) string {
	best, distance := "", 1+len(name)/3
	for _, c := range candidates {
		if d := edits(strings.ToLower(name), strings.ToLower(c)); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
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
