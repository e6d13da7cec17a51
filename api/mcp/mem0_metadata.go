package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/remora-proxy/remora/api"
)

// Metadata is kept in tags, as the face for mem0's REST API keeps it: a tag
// meta:KEY=VALUE for each key, with the key escaped as in a query and the value
// as JSON, which continues in meta:KEY#1=... if it is too long for one.
const (
	metadataTag = "meta:"
	minValue    = 32 // bytes of a tag that are left for the value
)

// compact returns a value in the form in which it is kept.
func compact(raw json.RawMessage) (string, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// metadataTags returns the tags for metadata. Its categories are tags
// themselves.
func metadataTags(metadata map[string]json.RawMessage) (tags []string, err error) {
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if key == "category" || key == "categories" || key == "tags" {
			more, err := args(metadata).list(true, key)
			if err != nil {
				return nil, wrong("metadata."+key, "must be a list of strings")
			}
			tags = append(tags, more...)
			continue
		}
		value, err := compact(metadata[key])
		name := metadataTag + url.QueryEscape(key)
		if err != nil || len(name) > api.MaxTag-minValue {
			return nil, wrong("metadata", "has a key that is too long")
		}
		for n := 0; n == 0 || value != ""; n++ {
			prefix := name + "="
			if n > 0 {
				prefix = fmt.Sprintf("%s#%d=", name, n)
			}
			cut := min(api.MaxTag-len(prefix), len(value))
			for cut < len(value) && !utf8.RuneStart(value[cut]) {
				cut--
			}
			tags, value = append(tags, prefix+value[:cut]), value[cut:]
			if len(tags) > api.MaxTags {
				return nil, wrong("metadata", fmt.Sprintf("needs more than %d tags", api.MaxTags))
			}
		}
	}
	return tags, nil
}

// readMetadata splits a memory's tags into metadata and categories.
func readMetadata(tags []string) (metadata map[string]json.RawMessage, categories []string) {
	type piece struct {
		n    int
		text string
	}
	metadata, categories = map[string]json.RawMessage{}, []string{}
	pieces := map[string][]piece{}
	for _, tag := range tags {
		entry, ok := strings.CutPrefix(tag, metadataTag)
		name, text, found := strings.Cut(entry, "=")
		if !ok || !found {
			categories = append(categories, tag)
			continue
		}
		name, number, _ := strings.Cut(name, "#")
		n, _ := strconv.Atoi(number) // 0 for the first
		if key, err := url.QueryUnescape(name); err == nil {
			name = key
		}
		pieces[name] = append(pieces[name], piece{n, text})
	}
	for name, all := range pieces {
		slices.SortFunc(all, func(a, b piece) int { return cmp.Compare(a.n, b.n) })
		var value []byte
		for _, p := range all {
			value = append(value, p.text...)
		}
		if !json.Valid(value) { // a tag that somebody else has set
			value, _ = json.Marshal(string(value)) // a string always encodes
		}
		metadata[name] = value
	}
	return metadata, categories
}
