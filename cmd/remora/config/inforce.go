package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// loaded is what Load knows of where values came from.
type loaded struct {
	origins map[string]string // by key path
	fitted  map[string]bool   // defaults that were lowered to the memory limit
	where   Place
}

// What a setting is from, where nobody has given it.
const (
	fromDefault = "default"
	fromMemory  = "fitted to the memory limit"
	fromOthers  = "follows from other settings"
)

// InForce returns all settings in the order of the documentation, each with its
// value and where that came from. It shows no secret and nothing of a URL that
// may be a credential.
func (c *Config) InForce() []api.Setting {
	defaults := Default()
	from := c.loaded
	if from == nil {
		from = &loaded{}
	} else {
		defaults.Settle(from.where)
	}
	byDefault := defaults.settings()
	r := report{origins: from.origins}
	var all []api.Setting
	for i, s := range c.settings() {
		shown := api.Setting{
			Section: sectionOf(s.key), Key: s.key, Env: s.variable(), Value: s.shown(), Default: byDefault[i].shown(), Doc: withoutLinks(s.doc),
			From: r.origin(s.key),
		}
		shown.Changed = shown.Value != shown.Default
		switch {
		case shown.From != "":
		case from.fitted[s.key]:
			shown.From = fromMemory
		case shown.Changed:
			shown.From = fromOthers
		default:
			shown.From = fromDefault
		}
		all = append(all, shown)
	}
	return all
}

// sectionOf returns the heading that a setting is listed under.
func sectionOf(key string) string {
	section, _, nested := strings.Cut(key, ".")
	if !nested {
		return "Listener and upstreams"
	}
	return section
}

// variable returns the name of the variable that sets it, or "".
func (s setting) variable() string {
	switch {
	case s.key == "upstreams":
		return upstreamVariable
	case s.at.kind() == listOfObjects:
		return ""
	}
	return s.env()
}

// shown returns the value as text: strings and numbers as they are, lists of
// strings with commas between them, and all else as JSON.
func (s setting) shown() string {
	data, err := encodeJSON(s.at.encode())
	if err != nil { // only an infinite number, which has no setting
		return ""
	}
	var one string
	var several []string
	isOne, isList := json.Unmarshal(data, &one) == nil, json.Unmarshal(data, &several) == nil
	switch {
	case s.at.kind() == kindSecret && one == "":
		return "not set"
	case s.at.kind() == kindSecret:
		return "set"
	case s.credentials:
		return fmt.Sprintf("%d entries", len(several))
	case isOne:
		return withoutUser(one)
	case isList && s.at.kind() != listOfObjects:
		for i := range several {
			several[i] = withoutUser(several[i])
		}
		return strings.Join(several, ", ")
	}
	return jsonString.ReplaceAllStringFunc(string(data), func(quoted string) string {
		if json.Unmarshal([]byte(quoted), &one) != nil {
			return `""`
		}
		shown, _ := encodeJSON(withoutUser(one)) // a string always can be
		return string(shown)
	})
}

// jsonString matches a string in JSON.
var jsonString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// hidden stands for what is left out of a URL.
const hidden = "[hidden]"

// withoutUser hides all of a URL up to its last @, and all from its query on. A
// password with an unescaped slash or question mark is hidden, too.
func withoutUser(text string) string {
	before, after, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	if i := strings.LastIndexByte(after, '@'); i >= 0 {
		after = hidden + after[i:]
	}
	if i := strings.IndexAny(after, "?#"); i >= 0 {
		after = after[:i+1] + hidden
	}
	return before + "://" + after
}

// link matches a link of Markdown.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// withoutLinks returns a text whose links are their texts: they lead to other
// pages of the documentation.
func withoutLinks(doc string) string { return link.ReplaceAllString(doc, "$1") }
