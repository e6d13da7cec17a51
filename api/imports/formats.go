package imports

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// format is one kind of export.
type format struct {
	name  string
	files *regexp.Regexp // the paths of its files; nil if they have no names of their own
	types []string       // extensions of files that are read if there are none of these
	looks string         // the same for people
	read  func(r *reading, names []string) error
}

// formats are all formats, in the order of Formats.
var formats = []format{
	{"remora", nil, lineTypes, "*.jsonl", readRemora},
	{"mem0", nil, slices.Concat(wholeTypes, lineTypes), "*.json or *.jsonl", readMem0},
	{"openmemory", names(`memories\.json|memories\.jsonl\.gz`), slices.Concat(wholeTypes, lineTypes),
		"memories.json, memories.jsonl.gz", readOpenMemory},
	{"chatgpt", names(`conversations(-\d+)?\.json`), wholeTypes,
		"conversations.json, conversations-000.json", readChatGPT},
	{"claude", names(`(conversations(-\d+)?|projects|memories)\.json|(projects|memories)/[^/]+\.json`), wholeTypes,
		"conversations.json, projects.json, memories.json", readClaude},
	{"claude-code", nil, lineTypes, "*.jsonl", readClaudeCode},
	{"codex", names(`rollout-[^/]*\.jsonl`), lineTypes, "rollout-*.jsonl", readCodex},
	{"gemini-cli", names(`session-[^/]*\.jsonl?|checkpoint[^/]*\.json`), slices.Concat(wholeTypes, lineTypes),
		"chats/session-*.json, checkpoint-*.json", readGemini},
	{"opencode", nil, wholeTypes, "*.json of opencode export", readOpenCode},
}

var (
	wholeTypes = []string{".json"}
	lineTypes  = []string{".jsonl", ".ndjson"}
)

// names matches paths whose last elements match expr.
func names(expr string) *regexp.Regexp { return regexp.MustCompile(`(?:^|/)(?:` + expr + `)$`) }

// formatNamed returns the format of this name, or nil.
func formatNamed(name string) *format {
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &formats[i]
}

// known lists the formats for an error.
func known() string { return strings.Join(Formats(), ", ") }

// pick returns the files of a format: those of its names, or else those of its
// types, or else the only file that there is.
func (r *reading) pick(f *format) []string {
	var named, typed []string
	for _, n := range r.names {
		if f.files != nil && f.files.MatchString(n) {
			named = append(named, n)
		}
		if slices.Contains(f.types, strings.ToLower(path.Ext(n))) {
			typed = append(typed, n)
		}
	}
	switch {
	case len(named) > 0:
		return named
	case len(typed) > 0:
		return typed
	case len(r.names) == 1:
		return r.names
	}
	return nil
}
