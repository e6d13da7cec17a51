package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MetadataTag begins the tags of a memory that hold metadata, such as
// meta:source="slack" and meta:page=7: so metadata is stored, versioned,
// exported and erased with the memory. Keys are escaped as in a query and values
// are JSON. A value too long for one tag continues in others, meta:key#1=....
// All other tags are a memory's categories.
const MetadataTag = "meta:"

const minMetadataValue = 32 // bytes of a tag that are left for the value

// MetadataTags returns the tags for one key with its value, which is compact
// JSON. It refuses what the tags of one memory can't hold.
func MetadataTags(key, value string) (tags []string, err error) {
	name := MetadataTag + url.QueryEscape(key)
	if len(name) > MaxTag-minMetadataValue {
		return nil, errors.New("has a key that is too long")
	}
	for n := 0; n == 0 || value != ""; n++ {
		if n == MaxTags {
			return nil, fmt.Errorf("is larger than the %d tags of a memory hold", MaxTags)
		}
		prefix := name + "="
		if n > 0 {
			prefix = fmt.Sprintf("%s#%d=", name, n)
		}
		cut := min(MaxTag-len(prefix), len(value))
		for cut < len(value) && !utf8.RuneStart(value[cut]) {
			cut--
		}
		tags, value = append(tags, prefix+value[:cut]), value[cut:]
	}
	return tags, nil
}

// ReadMetadata splits a memory's tags into metadata and categories. A value that
// is no JSON, in a tag somebody set by hand, is read as a string.
func ReadMetadata(tags []string) (metadata map[string]json.RawMessage, categories []string) {
	type piece struct {
		n    int
		text string
	}
	metadata, categories = map[string]json.RawMessage{}, []string{}
	pieces := map[string][]piece{}
	for _, tag := range tags {
		entry, ok := strings.CutPrefix(tag, MetadataTag)
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
		if !json.Valid(value) {
			value, _ = json.Marshal(string(value)) // a string always encodes
		}
		metadata[name] = value
	}
	return metadata, categories
}
