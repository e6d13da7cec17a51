package mcp

import "maps"

// schema is a JSON schema.
type schema map[string]any

// field is a property of an object.
type field struct {
	name     string
	schema   schema
	required bool
}

// object returns the schema of an object.
func object(fields ...field) schema {
	properties, required := map[string]any{}, []string{}
	for _, f := range fields {
		properties[f.name] = f.schema
		if f.required {
			required = append(required, f.name)
		}
	}
	out := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func must(name string, s schema) field { return field{name, s, true} }
func may(name string, s schema) field  { return field{name, s, false} }

// about returns a schema with a description.
func (s schema) about(description string) schema {
	out := maps.Clone(s)
	out["description"] = description
	return out
}

// with returns a schema with one more keyword.
func (s schema) with(keyword string, v any) schema {
	out := maps.Clone(s)
	out[keyword] = v
	return out
}

// typed returns the schema of a type, and the others those of what they name.
func typed(name string) schema      { return schema{"type": name} }
func text(limit int) schema         { return typed("string").with("maxLength", limit) }
func oneOf(values ...string) schema { return typed("string").with("enum", values) }
func anyList(of schema) schema      { return typed("array").with("items", of) }

func listOf(of schema, limit int) schema { return anyList(of).with("maxItems", limit) }
func whole(low, high int) schema {
	return typed("integer").with("minimum", low).with("maximum", high)
}
