package page

import (
	"bytes"
	"compress/gzip"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

// base is what every view has.
type base struct {
	Title   string
	Section string // which entry of the menu is current
	Theme   string
	Version string
	Admin   bool
	Path    string // with its query
	Whose   api.Target
	People  []api.User // to choose from
	More    bool       // more people than are listed
	Flash   *flash
}

// Link returns a path of the page about the same person. pairs are names and
// values of further parameters; empty values are left out.
func (b base) Link(to string, pairs ...any) string { return b.linkFor(b.Whose, to, pairs...) }

// LinkFor is Link about another person.
func (b base) LinkFor(u api.User, to string, pairs ...any) string {
	return b.linkFor(targetOf(u), to, pairs...)
}

func (base) linkFor(whose api.Target, to string, pairs ...any) string {
	q := targetQuery(whose)
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, ok := pairs[i].(string); ok {
			if value := plainText(pairs[i+1]); value != "" {
				q.Set(name, value)
			}
		}
	}
	if len(q) == 0 {
		return to
	}
	return to + "?" + q.Encode()
}

func targetQuery(t api.Target) url.Values {
	q := url.Values{}
	setKnown(q, map[string]string{"tenant": t.Tenant, "app": t.App, "project": t.Project, "user": t.User})
	return q
}

// setKnown sets the parameters that have a value.
func setKnown(q url.Values, values map[string]string) {
	for name, value := range values {
		if value != "" {
			q.Set(name, value)
		}
	}
}

// Fields returns whose memory the view is about, for the hidden fields of
// forms that are sent by GET. Others have it in their action.
func (b base) Fields() map[string]string {
	out := map[string]string{}
	for name, values := range targetQuery(b.Whose) {
		out[name] = values[0]
	}
	return out
}

// maxListed is how many people the menu of every view lists.
const maxListed = 50

// begin resolves whose memory a view is about, and returns what it shows around
// its own content. A part of a view that names somebody has no such content:
// people are not listed for it, and what is to be reported waits for a view.
func (c *call) begin(title, section string) (base, error) {
	b := c.bare(title)
	b.Section = section
	if !c.partial() {
		b.Flash = c.session.said()
	}
	if !c.partial() || c.whose == (api.Target{}) {
		page, err := c.service.Users(c.ctx, c.p, api.Target{}, "", maxListed)
		if err != nil {
			return b, err
		}
		b.People, b.More = page.Users, page.Next != ""
	}
	c.resolve(b.People)
	b.Whose = c.whose
	return b, nil
}

// bare returns what a view has that is about nobody.
func (c *call) bare(title string) base {
	return base{Title: title, Theme: themeOf(c.r), Version: c.version, Admin: c.p.Everything(), Path: c.r.URL.RequestURI()}
}

// resolve finds out whose memory a request is about. Without a name in it, and
// nothing remembered of the key's holder, it is the first of the people.
func (c *call) resolve(people []api.User) {
	owner, err := c.service.Owner(c.p, c.whose)
	isOwner := func(u api.User) bool { return err == nil && targetOf(u) == owner }
	switch {
	case c.whose == (api.Target{}) && len(people) > 0 && !slices.ContainsFunc(people, isOwner):
		c.whose = targetOf(people[0])
	case err == nil:
		c.whose = owner
	}
}

// views are the templates, by the names of their files.
type views map[string]*template.Template

// sharedTemplates are those that every view may use.
var sharedTemplates = []string{"templates/layout.html", "templates/parts.html", "templates/detail.html"}

// parseViews reads the templates. Each file of a view is parsed with the layout
// and the parts that views share.
func parseViews(assets map[string]*asset) views {
	funcs := functions()
	funcs["asset"] = func(name string) string { return assetPath(assets, name) }
	shared := template.Must(template.New("").Funcs(funcs).ParseFS(templateFiles, sharedTemplates...))
	files, _ := fs.Glob(templateFiles, "templates/*.html") // a valid pattern
	out := views{}
	for _, file := range files {
		if slices.Contains(sharedTemplates, file) {
			continue
		}
		name := strings.TrimSuffix(path.Base(file), ".html")
		out[name] = template.Must(template.Must(shared.Clone()).ParseFS(templateFiles, file))
	}
	return out
}

// render answers with a whole view.
func (c *call) render(status int, name string, data any) { c.write(status, name, "layout", data) }

// renderPart answers with a part of a view.
func (c *call) renderPart(name, part string, data any) { c.write(http.StatusOK, name, part, data) }

// write executes a template. Nothing is sent before it has succeeded.
func (c *call) write(status int, name, part string, data any) {
	var out bytes.Buffer
	if err := c.views[name].ExecuteTemplate(&out, part, data); err != nil {
		where, _, _ := strings.Cut(err.Error(), ": executing") // the rest may quote what a memory says
		c.log.Error("a template failed", "where", where, "request", c.w.Header().Get(request.HeaderID))
		http.Error(c.w, "internal error", http.StatusInternalServerError)
		return
	}
	header := c.w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Add("Vary", "Accept-Encoding")
	header.Add("Vary", "Hx-Request")
	if out.Len() < minGzip || !acceptsGzip(c.r) {
		c.w.WriteHeader(status)
		_, _ = c.w.Write(out.Bytes())
		return
	}
	header.Set("Content-Encoding", "gzip")
	c.w.WriteHeader(status)
	packed, _ := gzip.NewWriterLevel(c.w, gzip.BestSpeed) // a valid level
	_, _ = packed.Write(out.Bytes())
	_ = packed.Close()
}

// minGzip is the size from which on answers are compressed.
const minGzip = 2 << 10

// errorView reports what went wrong.
type errorView struct {
	base
	Status int
	Detail string
}

// nobody reports whether a view failed because it is about somebody, nobody is
// named, and nobody is remembered who could be meant.
func (c *call) nobody(err error) bool {
	field, ok := errors.AsType[*api.FieldError](err)
	return ok && (field.Field == "tenant" || field.Field == "user") && c.whose.User == "" && c.r.Method == http.MethodGet && c.r.URL.Path != "/people/erase"
}

// fail answers with an error.
func (c *call) fail(err error) {
	kind, status := api.Kind(err)
	if kind == "internal" {
		c.log.Error("the page failed", "request", c.w.Header().Get(request.HeaderID), "error", err)
	}
	detail := sentence(api.Detail(err))
	if c.partial() { // the view stays as it is
		c.w.Header().Set("Hx-Retarget", "#toasts")
		c.w.Header().Set("Hx-Reswap", "innerHTML")
		c.write(status, "error", "toast", map[string]any{"b": c.bare(""), "f": flash{Text: detail, Bad: true}})
		return
	}
	if c.nobody(err) {
		b := c.bare("Nobody yet")
		b.Section = strings.TrimPrefix(b.Route(), "/")
		c.render(http.StatusOK, "nobody", b)
		return
	}
	b := c.bare("Not done")
	b.Whose, b.Path = c.whose, "/"
	c.render(status, "error", errorView{b, status, detail})
}

// isOf reports whether an error is of one of these kinds: see [api.Kind].
func isOf(err error, kinds ...string) bool {
	if err == nil {
		return false
	}
	kind, _ := api.Kind(err)
	return slices.Contains(kinds, kind)
}

// Route returns the path of the view that another person can be chosen for.
func (b base) Route() string {
	to, _, _ := strings.Cut(b.Path, "?")
	switch {
	case strings.HasPrefix(to, "/memories"):
		return "/memories"
	case strings.HasPrefix(to, "/exchanges"):
		return "/"
	}
	return "/" + strings.SplitN(strings.TrimPrefix(to, "/"), "/", 2)[0]
}

// Is reports whether the view is about a person.
func (b base) Is(u api.User) bool { return b.Whose == targetOf(u) }

func targetOf(u api.User) api.Target {
	return api.Target{Tenant: u.Tenant, App: u.App, Project: u.Project, User: u.User}
}
