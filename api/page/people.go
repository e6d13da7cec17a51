package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

// Bounds of the list of people.
const (
	// peoplePage is from how many people on a page ends. It may have as many
	// again.
	peoplePage = 100
	// maxPeople is how many people are looked through for a page and counted.
	maxPeople = 10_000
)

// peopleView lists whom the session may reach.
type peopleView struct {
	base
	Query      string
	Rows       []api.User
	Next       string // the cursor of the following page; "" = this is the last
	Total      int    // people who match
	Uncounted  bool   // there are more than Total
	Unreadable int
}

// showPeople lists people whose names match.
func showPeople(c *call) error {
	b, err := c.begin("People", "people")
	if err != nil {
		return err
	}
	q := c.r.URL.Query()
	v := peopleView{base: b, Query: strings.TrimSpace(q.Get("q"))}
	cursor := q.Get("cursor")
	if err := v.fill(c, cursor); err != nil {
		return err
	}
	switch {
	case c.partial() && cursor != "":
		c.renderPart("people", "rows", v)
	case c.wants("results"):
		c.renderPart("people", "results", v)
	default:
		c.render(http.StatusOK, "people", v)
	}
	return nil
}

// fillPeople reads a page of people. Only the first page counts those of the
// others, too.
func (v *peopleView) fill(c *call, cursor string) error {
	first, full := cursor == "", false
	for seen := 0; ; {
		page, err := c.service.Users(c.ctx, c.p, api.Target{}, cursor, peoplePage)
		if err != nil {
			return err
		}
		for _, u := range page.Users {
			if !named(u, v.Query) {
				continue
			}
			v.Total++
			if !full {
				v.Rows = append(v.Rows, u)
			}
		}
		v.Unreadable += page.Unreadable
		seen, cursor = seen+len(page.Users), page.Next
		if !full {
			full, v.Next = len(v.Rows) >= peoplePage, cursor
		}
		if cursor == "" || full && !first || seen >= maxPeople {
			v.Uncounted = cursor != ""
			return nil
		}
	}
}

// named reports whether a user's name has a text in it, in any case.
func named(u api.User, text string) bool {
	return strings.Contains(strings.ToLower(u.User), strings.ToLower(text))
}

// MoreLink returns the path of the following page.
func (v peopleView) MoreLink() string { return v.Link("/people", "q", v.Query, "cursor", v.Next) }

// ExportLink returns the path of a user's export.
func (v peopleView) ExportLink(u api.User, format string) string {
	return v.LinkFor(u, "/people/export", "format", format)
}

// EraseLink returns the path of the view that asks whether to erase a user.
func (v peopleView) EraseLink(u api.User) string {
	return v.linkFor(api.Target{Tenant: u.Tenant, User: u.User}, "/people/erase")
}

// extensions are those of exports' files.
var extensions = map[string]string{api.FormatRemora: "jsonl", api.FormatMem0: "json", api.FormatMarkdown: "md"}

// exportUser sends what is remembered of a user as a file. Without an app or a
// project it is all of them.
func exportUser(c *call) (err error) {
	format := c.r.URL.Query().Get("format")
	if format == "" {
		format = api.FormatRemora
	}
	t := c.whose
	if t.User == "" {
		if t, err = c.service.Owner(c.p, t); err != nil {
			return err
		}
	}
	name := "remora-" + fileName(t.User) + "-" + c.now().UTC().Format(time.DateOnly) + "." + extensions[format]
	attach := func() {
		c.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	}
	return request.Stream(c.w, c.log, request.ExportType(format), func(write func([]byte) error) error {
		err := c.service.Export(c.ctx, c.p, t, format, func(p []byte) error {
			attach()
			return write(p)
		})
		if err == nil {
			attach()
		}
		return err
	})
}

// fileName returns a name as it can be a part of the name of a file anywhere.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.@", r) {
			return r
		}
		return '-'
	}, name)
	runes := []rune(name)
	return string(runes[:min(len(runes), maxNamed)])
}

// maxNamed bounds the user's name in the name of a file, in characters.
const maxNamed = 60

// eraseView asks whether a user is to be erased.
type eraseView struct {
	base
	Who      api.Target // the tenant and the user
	Scopes   []api.User // the apps and projects, maxScopes at most
	Others   int        // more than are in Scopes
	Memories int
	Kinds    []namedCount // of the memories that are not deleted
	Problem  string
}

const (
	maxScopes = 50 // apps and projects that are listed before somebody is erased
	maxKinds  = 20 // of which memories are counted by kind
)

// askErase says what erasing a user removes, or shows the receipt of an erasure.
func askErase(c *call) error {
	if id := c.r.URL.Query().Get("receipt"); id != "" {
		receipt, ok := c.session.receipt(id, c.p)
		if !ok {
			return api.ErrNotFound
		}
		return showErased(c, receipt)
	}
	who, err := c.wholeUser()
	if err != nil {
		return err
	}
	return showErase(c, http.StatusOK, who, "")
}

// wholeUser returns who is erased: a user of one tenant, in all apps and
// projects.
func (c *call) wholeUser() (api.Target, error) {
	who := api.Target{Tenant: c.whose.Tenant, User: c.whose.User}
	if who.User == "" {
		return who, &api.FieldError{Field: "user", Why: "is required: choose one of the people"}
	}
	owner, err := c.service.Owner(c.p, who)
	who.Tenant = owner.Tenant
	return who, err
}

func showErase(c *call, status int, who api.Target, problem string) error {
	b, err := c.begin("Erase", "people")
	if err != nil {
		return err
	}
	v := eraseView{base: b, Who: who, Problem: problem}
	if err := v.fill(c); err != nil {
		return err
	}
	c.render(status, "erase", v)
	return nil
}

func (v *eraseView) fill(c *call) error {
	for cursor := ""; ; {
		page, err := c.service.Users(c.ctx, c.p, v.Who, cursor, api.MaxPage)
		if err != nil {
			return err
		}
		for _, u := range page.Users {
			v.Memories += u.Memories
			if len(v.Scopes) < maxScopes {
				v.Scopes = append(v.Scopes, u)
			} else {
				v.Others++
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(v.Scopes) == 0 {
		return api.ErrNotFound
	}
	if len(v.Scopes) > maxKinds {
		return nil
	}
	kinds := map[string]int{}
	for _, u := range v.Scopes {
		sources, err := c.service.Sources(c.ctx, c.p, targetOf(u))
		if err != nil {
			return err
		}
		for _, s := range sources.Sources {
			for kind, n := range s.Kinds {
				kinds[kind] += n
			}
		}
	}
	v.Kinds = countsOf(kinds, kindPlurals)
	return nil
}

var kindPlurals = map[string]string{"fact": "fact|facts", "episode": "passage of a conversation|passages of conversations", "resource": "passage of a document|passages of documents", "curated": "note|notes"}

// Rest is how many of the memories have no kind in Kinds.
func (v eraseView) Rest() int {
	n := v.Memories
	for _, k := range v.Kinds {
		n -= k.Count
	}
	return max(n, 0)
}

// Action returns the path that the erasure is asked for by.
func (v eraseView) Action() string { return v.linkFor(v.Who, "/people/erase") }

// ExportAll returns the path of an export of all that would be erased.
func (v eraseView) ExportAll(format string) string {
	return v.linkFor(v.Who, "/people/export", "format", format)
}

// eraseUser erases a user whose name was typed. It continues if the browser leaves.
func eraseUser(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	who, err := c.wholeUser()
	if err != nil {
		return err
	}
	if strings.TrimSpace(form.Get("name")) != who.User {
		return showErase(c, http.StatusUnprocessableEntity, who, "Nothing was erased: the name is not that of the user. Type it as it is written here.")
	}
	receipt, err := c.service.Erase(context.WithoutCancel(c.ctx), c.p, who)
	switch {
	case err != nil && receipt.Scopes > 0:
		c.log.Error("an erasure broke off", "request", c.w.Header().Get(request.HeaderID), "error", err)
		_, status := api.Kind(err)
		return showErase(c, status, who, fmt.Sprintf("Not everything is erased: it broke off after %s. %s Erase again to go on.",
			plural(receipt.Scopes, "app or project", "apps or projects"), sentence(api.Detail(err))))
	case err != nil:
		return err
	case c.session == nil:
		return showErased(c, receipt)
	}
	c.session.keep(receipt, c.p)
	return c.redirect("/people/erase?receipt=" + receipt.ID)
}

// erasedView is the receipt of an erasure, to be printed.
type erasedView struct {
	base
	Receipt api.Receipt
	Records []namedCount
}

func showErased(c *call, receipt api.Receipt) error {
	c.render(http.StatusOK, "erased", erasedView{c.bare("Receipt of an erasure"), receipt, countsOf(receipt.Records, bucketNames)})
	return nil
}

// bucketNames are what the records of a receipt are.
var bucketNames = map[string]string{
	"spool":    "turn waiting to be read|turns waiting to be read",
	"ledger":   "record of what was inserted into a conversation|records of what was inserted into conversations",
	"index":    "part of the search index|parts of the search index",
	"summary":  "summary of a conversation|summaries of conversations",
	"audit":    "record of where facts came from|records of where facts came from",
	"revision": "earlier version of a memory|earlier versions of memories",
	"trash":    "deletion that could be taken back|deletions that could be taken back",
	"entry":    "value that a tool had kept|values that tools had kept",
	"exchange": "receipt of a request|receipts of requests",
}

// maxReceipts is how many receipts a session keeps; the oldest goes first.
const maxReceipts = 8

// keptReceipt is the receipt of an erasure, with who has asked for it: a proxy
// may name several users in one browser.
type keptReceipt struct {
	p api.Principal
	api.Receipt
}

// keep keeps the receipt of an erasure for as long as the session lasts.
func (s *session) keep(r api.Receipt, p api.Principal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receipts = append(s.receipts, keptReceipt{p, r})
	s.receipts = s.receipts[max(0, len(s.receipts)-maxReceipts):]
}

func (s *session) receipt(id string, p api.Principal) (api.Receipt, bool) {
	if s == nil {
		return api.Receipt{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.receipts {
		if r.ID == id && r.p == p {
			return r.Receipt, true
		}
	}
	return api.Receipt{}, false
}

// namedCount is how much there is of something, or for a reason.
type namedCount struct {
	Name  string
	Count int
}

// countsOf returns counts with their names for people, the largest first. A name
// may be two, for one and for many.
func countsOf(counts map[string]int, names map[string]string) (out []namedCount) {
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		one, many, two := strings.Cut(cmp.Or(names[key], key), "|")
		name := one
		if two && counts[key] != 1 {
			name = many
		}
		if counts[key] > 0 {
			out = append(out, namedCount{name, counts[key]})
		}
	}
	slices.SortStableFunc(out, func(a, b namedCount) int { return cmp.Compare(b.Count, a.Count) })
	return out
}
