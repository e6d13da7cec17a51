package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
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
		if err != nil {
			return nil, err
		}
		more, err := api.MetadataTags(key, value)
		if err != nil {
			return nil, wrong("metadata", err.Error())
		}
		if tags = append(tags, more...); len(tags) > api.MaxTags {
			return nil, wrong("metadata", fmt.Sprintf("needs more than %d tags", api.MaxTags))
		}
	}
	return tags, nil
}
