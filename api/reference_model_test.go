package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/remora-proxy/remora/api"
)

// The contract as the page shows it, in the order of the file.

type reference struct {
	Title, Summary, Version, Description string
	Keys                                 []named
	Groups                               []group
	Shared                               []parameter
	Schemas                              []object
}

type named struct{ Name, Description string }

type group struct {
	named
	Operations []operation
}

type operation struct {
	ID, Method, Path, Summary, Description string
	Open                                   bool // needs no key
	Parameters                             []parameter
	Shared                                 []string // names of parameters that nearly all routes have
	Body                                   *body
	Responses                              []response
}

type parameter struct {
	named
	In       string
	Required bool
	Schema   *openapi3.SchemaRef
}

type body struct {
	Description, Example string
	Required             bool
	Media                []media
}

type media struct {
	Type   string
	Schema *openapi3.SchemaRef
}

type response struct {
	Status, Description string
	Headers             []string
	Media               []media
}

type object struct {
	named
	Schema  *openapi3.SchemaRef
	Members []parameter
}

// shared are the parameters that are described once.
var shared = []string{
	"Tenant", "App", "Project", "User", "UserId", "UserHeader", "AppHeader", "ProjectHeader", "RequestIdHeader",
}

func referenceOf(doc *openapi3.T) reference {
	out := reference{Title: doc.Info.Title, Summary: doc.Info.Summary, Version: doc.Info.Version, Description: doc.Info.Description}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.SecuritySchemes)) {
		out.Keys = append(out.Keys, named{name, doc.Components.SecuritySchemes[name].Value.Description})
	}
	common := map[*openapi3.Parameter]bool{}
	for _, name := range shared {
		p := doc.Components.Parameters[name].Value
		common[p] = true
		out.Shared = append(out.Shared, parameterOf(p))
	}
	for _, tag := range doc.Tags {
		g := group{named: named{tag.Name, tag.Description}}
		for _, path := range inOrder(slices.Collect(maps.Keys(doc.Paths.Map()))) {
			item := doc.Paths.Value(path)
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				if o := item.GetOperation(method); o != nil && o.Tags[0] == tag.Name {
					g.Operations = append(g.Operations, operationOf(method, path, item, o, common))
				}
			}
		}
		out.Groups = append(out.Groups, g)
	}
	for _, name := range inOrder(slices.Collect(maps.Keys(doc.Components.Schemas))) {
		s := doc.Components.Schemas[name]
		o := object{named: named{name, s.Value.Description}, Schema: &openapi3.SchemaRef{Value: s.Value}}
		for _, member := range slices.Sorted(maps.Keys(s.Value.Properties)) {
			ref := s.Value.Properties[member]
			description := ref.Value.Description
			if ref.Ref != "" && description == doc.Components.Schemas[refName(ref)].Value.Description {
				description = "" // the link leads to it
			}
			required := slices.Contains(s.Value.Required, member)
			o.Members = append(o.Members, parameter{named{member, description}, "", required, ref})
		}
		out.Schemas = append(out.Schemas, o)
	}
	return out
}

func operationOf(method, path string, item *openapi3.PathItem, o *openapi3.Operation, common map[*openapi3.Parameter]bool) operation {
	out := operation{
		ID: o.OperationID, Method: method, Path: path, Summary: o.Summary, Description: o.Description,
		Open: o.Security != nil && len(*o.Security) == 0,
	}
	for _, p := range slices.Concat(item.Parameters, o.Parameters) {
		if common[p.Value] {
			out.Shared = append(out.Shared, p.Value.Name)
		} else {
			out.Parameters = append(out.Parameters, parameterOf(p.Value))
		}
	}
	if o.RequestBody != nil {
		b := o.RequestBody.Value
		out.Body = &body{Description: b.Description, Required: b.Required, Media: mediaOf(b.Content)}
		for _, name := range slices.Sorted(maps.Keys(b.Content)) {
			if example := b.Content[name].Example; example != nil && out.Body.Example == "" {
				out.Body.Example = shown(example)
			}
		}
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses.Map())) {
		r := o.Responses.Value(status).Value
		headers := slices.Sorted(maps.Keys(r.Headers))
		headers = slices.DeleteFunc(headers, func(name string) bool { return name == "X-Request-Id" }) // all have it
		out.Responses = append(out.Responses, response{status, *r.Description, headers, mediaOf(r.Content)})
	}
	return out
}

func parameterOf(p *openapi3.Parameter) parameter {
	return parameter{named{p.Name, p.Description}, p.In, p.Required, p.Schema}
}

func mediaOf(content openapi3.Content) (out []media) {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		out = append(out, media{name, content[name].Schema})
	}
	return out
}

// inOrder sorts keys of the contract by where the file has them.
func inOrder(keys []string) []string {
	places := map[string]int{}
	for _, key := range keys {
		places[key] = max(bytes.Index(api.Contract, []byte("\n  "+key+":\n")), bytes.LastIndex(api.Contract, []byte("\n    "+key+":\n")))
	}
	slices.SortFunc(keys, func(a, b string) int { return places[a] - places[b] })
	return keys
}

// shown returns an example as it would be sent.
func shown(example any) string {
	if text, ok := example.(string); ok {
		return text
	}
	b, err := json.MarshalIndent(example, "", "  ")
	if err != nil {
		return ""
	}
	return string(b)
}

func anchor(kind, name string) string {
	return kind + "-" + strings.ToLower(strings.ReplaceAll(name, " ", "-"))
}

func refName(ref *openapi3.SchemaRef) string {
	return strings.TrimPrefix(ref.Ref, "#/components/schemas/")
}

var bold = regexp.MustCompile(`\*\*([^*]+)\*\*`)

// paragraphs returns a description as HTML. Of Markdown it knows paragraphs and
// bold.
func paragraphs(text string) template.HTML {
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if part != "" {
			part = bold.ReplaceAllString(template.HTMLEscapeString(part), "<strong>$1</strong>")
			fmt.Fprintf(&b, "<p>%s</p>", strings.Join(strings.Fields(part), " "))
		}
	}
	return template.HTML(b.String())
}

// typeOf returns a type in words, with links to objects.
func typeOf(ref *openapi3.SchemaRef) template.HTML {
	if ref == nil {
		return ""
	}
	if name := refName(ref); ref.Ref != "" {
		return template.HTML(fmt.Sprintf(`<a href="#%s"><code>%s</code></a>`, anchor("schema", name), name))
	}
	s := ref.Value
	if s.Type == nil || len(*s.Type) == 0 {
		return "any JSON"
	}
	words := template.HTML(strings.Join(*s.Type, " or "))
	switch {
	case s.Type.Is("array"):
		words = "list of " + typeOf(s.Items)
	case s.Type.Is("object") && s.AdditionalProperties.Schema != nil:
		words = "object of " + typeOf(s.AdditionalProperties.Schema)
	}
	return words + template.HTML(template.HTMLEscapeString(boundsOf(s)))
}

// boundsOf returns what a schema demands besides its type.
func boundsOf(s *openapi3.Schema) string {
	var out []string
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			if text := fmt.Sprint(v); text != "" {
				values = append(values, text)
			}
		}
		out = append(out, strings.Join(values, ", "))
	}
	switch {
	case s.Min != nil && s.Max != nil:
		out = append(out, fmt.Sprintf("%g to %.15g", *s.Min, *s.Max))
	case s.Min != nil:
		out = append(out, fmt.Sprintf("at least %g", *s.Min))
	}
	if s.MaxLength != nil {
		out = append(out, fmt.Sprintf("at most %d characters", *s.MaxLength))
	}
	if s.MaxItems != nil {
		out = append(out, fmt.Sprintf("at most %d of them", *s.MaxItems))
	}
	if len(out) == 0 {
		return ""
	}
	return ": " + strings.Join(out, ", ")
}
