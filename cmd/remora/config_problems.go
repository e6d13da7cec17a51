package main

import (
	"fmt"
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

// addAll takes the joined errors of a package's Validate, each "fieldPath: what is wrong", and puts them under section.
func (p *problems) addAll(section string, err error, origins map[string]string) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			p.addAll(section, e, origins)
		}
		return
	}
	field, what, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		field, what = "", err.Error()
	}
	key := strings.TrimSuffix(join(section, field), ".")
	if known, ok := renames[key]; ok {
		key = known
	}
	p.add(key, originOf(key, origins), what)
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
