package mem0

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
)

// labels are the tags of a memory in mem0's words.
type labels struct {
	metadata   map[string]json.RawMessage
	categories []string
}

// readLabels splits a memory's tags.
func readLabels(tags []string) labels {
	metadata, categories := api.ReadMetadata(tags)
	return labels{metadata, categories}
}

// tags returns labels as the tags of a memory.
func tags(c *call, l labels) ([]string, error) {
	out := slices.Clone(l.categories)
	for i, category := range l.categories {
		switch {
		case strings.HasPrefix(category, api.MetadataTag):
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
		more, err := api.MetadataTags(key, string(value))
		if err != nil {
			return nil, invalid("metadata", err.Error())
		}
		if out = append(out, more...); len(out) > api.MaxTags {
			return nil, invalid("metadata", fmt.Sprintf("is larger than the %d tags of a memory hold", api.MaxTags))
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
