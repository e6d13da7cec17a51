package mem0

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
)

// Metadata is kept in tags of the memory, so it is stored, versioned, exported
// and erased with it. There is a tag for each key, with the value as JSON:
//
//	meta:source="slack"
//	meta:page=7
//
// Keys are escaped as in a query. A value that does not fit in one tag continues
// in others, meta:key#1=..., so nothing is lost: what a memory's tags can't
// hold, some 3 KiB, is refused. All other tags are the memory's categories.

const (
	metadataTag = "meta:"
	minValue    = 32 // bytes of a tag that are left for the value
)

// labels are the tags of a memory in mem0's words.
type labels struct {
	metadata   map[string]json.RawMessage
	categories []string
}

// readLabels splits a memory's tags.
func readLabels(tags []string) labels {
	out := labels{map[string]json.RawMessage{}, []string{}}
	type piece struct {
		n    int
		text string
	}
	pieces := map[string][]piece{}
	for _, tag := range tags {
		entry, ok := strings.CutPrefix(tag, metadataTag)
		name, text, found := strings.Cut(entry, "=")
		if !ok || !found {
			out.categories = append(out.categories, tag)
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
		if !json.Valid(value) { // a tag that another face has set
			value, _ = json.Marshal(string(value)) // a string always encodes
		}
		out.metadata[name] = value
	}
	return out
}

// tags returns labels as the tags of a memory.
func tags(c *call, l labels) ([]string, error) {
	out := slices.Clone(l.categories)
	for i, category := range l.categories {
		switch {
		case strings.HasPrefix(category, metadataTag):
			return nil, invalid(fmt.Sprintf("categories[%d]", i), "begins like metadata")
		case c.service.HidesSecret(category):
			return nil, persist.ErrSecret
		}
		out[i] = c.service.Redact(category)
	}
	for _, key := range slices.Sorted(maps.Keys(l.metadata)) {
		value, err := harmless(c, key, l.metadata[key])
		if err != nil {
			return nil, err
		}
		name := metadataTag + url.QueryEscape(key)
		if len(name) > api.MaxTag-minValue {
			return nil, invalid("metadata", "has a key that is too long")
		}
		for n := 0; n == 0 || len(value) > 0; n++ {
			prefix := name + "="
			if n > 0 {
				prefix = fmt.Sprintf("%s#%d=", name, n)
			}
			room := api.MaxTag - len(prefix)
			if len(value) > room {
				for room > 0 && !utf8.RuneStart(value[room]) {
					room--
				}
			}
			cut := min(room, len(value))
			out = append(out, prefix+string(value[:cut]))
			if value = value[cut:]; len(out) > api.MaxTags {
				return nil, invalid("metadata", fmt.Sprintf("is larger than the %d tags of a memory hold", api.MaxTags))
			}
		}
	}
	return out, nil
}

// harmless returns a value without what may not be kept, as compact JSON.
func harmless(c *call, key string, value json.RawMessage) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, invalid("metadata", "is no JSON")
	}
	secret := false
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			secret = secret || c.service.HidesSecret(key+": "+v)
			return c.service.Redact(v)
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
			return v
		case map[string]any:
			out := make(map[string]any, len(v))
			for name, e := range v {
				secret = secret || c.service.HidesSecret(name)
				out[c.service.Redact(name)] = walk(e)
			}
			return out
		}
		return v
	}
	v = walk(v)
	if secret || c.service.HidesSecret(key) {
		return nil, persist.ErrSecret
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// label adds labels to those of a memory.
func label(c *call, ctx context.Context, m *api.Memory, l labels, why string) (api.Memory, error) {
	all := readLabels(m.Tags)
	for _, category := range l.categories {
		if !slices.Contains(all.categories, category) {
			all.categories = append(all.categories, category)
		}
	}
	maps.Copy(all.metadata, l.metadata)
	tags, err := tags(c, all)
	if err != nil || slices.Equal(tags, m.Tags) {
		return *m, err
	}
	return c.service.Update(ctx, c.p, ownerOf(m), m.ID, 0, api.Patch{Tags: &tags, Why: why})
}

// metadataOf reads the member metadata of a body, which may be null.
func metadataOf(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var out map[string]json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &out) != nil {
		return nil, invalid("metadata", "must be an object")
	}
	return out, nil
}
