package imports

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// telling are file names that only one format has.
var telling = []struct {
	files  *regexp.Regexp
	format string
}{
	{names(`memories\.jsonl\.gz`), "openmemory"},
	{names(`rollout-[^/]*\.jsonl`), "codex"},
	{names(`chats/(?:[^/]+/)?session-[^/]*\.jsonl?`), "gemini-cli"},
}

// shared are file names that several formats have.
var shared = names(`(?:conversations(?:-\d+)?|projects|memories)\.json`)

// detect finds the format of the export: by a name that only one format has,
// else by how the JSON of its files begins, those with names of exports first.
// An export of two formats is read as the first that is found.
func (r *reading) detect() (string, error) {
	for _, n := range r.names {
		for _, t := range telling {
			if t.files.MatchString(n) {
				return t.format, nil
			}
		}
	}
	var candidates, others []string
	for _, n := range r.names {
		switch ext := strings.ToLower(path.Ext(n)); {
		case shared.MatchString(n):
			candidates = append(candidates, n)
		case slices.Contains(wholeTypes, ext), slices.Contains(lineTypes, ext):
			others = append(others, n)
		}
	}
	candidates = append(candidates, others...)
	if len(r.names) == 1 {
		candidates = r.names
	}
	for _, n := range candidates[:min(len(candidates), maxSniffed)] {
		format, err := r.sniff(n)
		if err != nil {
			return "", err
		}
		if format != "" {
			return format, nil
		}
	}
	return "", fmt.Errorf("%w: none of %d files is of one of %s", ErrFormat, len(r.names), known())
}

// sniff returns the format of a file by its first objects, or nothing. JSON
// that is cut or malformed shows in what comes before.
func (r *reading) sniff(name string) (string, error) {
	s, err := r.stream(name, maxSniff)
	if err != nil {
		return "", err
	}
	defer s.close()
	s.in.maxFile = min(s.in.maxFile, maxSniff)
	for range maxSniffedValues {
		t, err := s.token()
		if err != nil {
			return "", nil
		}
		if t != json.Delim('{') {
			continue // the array around the objects, or nothing of interest
		}
		keys := map[string]bool{}
		err = s.members(func(key string) error {
			keys[key] = true
			return s.skip()
		})
		if format := guess(keys); format != "" || err != nil {
			return format, nil
		}
	}
	return "", nil
}

// guess returns the format of an object by the keys of its members, or nothing.
// Keys of the later formats are in objects of the earlier ones, too.
func guess(keys map[string]bool) string {
	all := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return !keys[n] })
	}
	one := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return keys[n] })
	}
	switch {
	case all("mapping") && one("current_node", "title", "conversation_id", "create_time"):
		return "chatgpt"
	case one("chat_messages", "conversations_memory", "project_memories"), all("uuid", "docs"):
		return "claude"
	case all("type", "payload"):
		return "codex"
	case all("type", "message") && one("sessionId", "uuid", "parentUuid"):
		return "claude-code"
	case all("info", "messages"):
		return "opencode"
	case all("sessionId") && one("messages", "projectHash", "startTime"), all("role", "parts"), all("history", "authType"):
		return "gemini-cli"
	case all("id", "text") && one("kind", "createdAt", "eventTime"):
		return "remora"
	case all("memories") && one("user", "apps", "categories", "memory_categories"),
		all("id", "content") && one("state", "app", "app_id", "category_ids", "categories"):
		return "openmemory"
	case one("results", "memories"), all("memory") && one("id", "user_id", "hash", "created_at"),
		one("text", "data") && one("user_id", "agent_id", "run_id"):
		return "mem0"
	}
	return ""
}
