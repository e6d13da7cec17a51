package page

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// liveView is the list of exchanges, which grows as they come.
type liveView struct {
	base
	Of      api.Target // whose exchanges; parts that are "" mean any
	Filter  liveFilter
	Rows    []exchangeRow
	Next    string // the cursor of the following page; "" = this is the last
	Older   bool   // this is not the first page
	Partial bool   // earlier exchanges are not of all users
	Off     bool   // no receipts are kept
	Problem string
	Models  []string // to choose from
	Clients []string
	Read    int64 // when the list was read, in milliseconds
}

// exchangeRow is an exchange in a list.
type exchangeRow struct {
	api.Exchange
	New bool // it came while the page was open
}

// liveFilter is what the list is limited to besides the user, as the URL says
// it.
type liveFilter struct{ Status, Model, Client string }

// liveStatuses are the statuses that a receipt may have.
var liveStatuses = []string{
	"injected", "replayed", "repaired", "empty", "observed", "timeout", "unavailable", "unsupported", "rejected", "too-large", "no-user",
}

const (
	livePage = 50
	// choicePage is how many of the newest exchanges tell which models and
	// clients can be chosen.
	choicePage = 200
)

func liveFilterOf(q url.Values) liveFilter {
	return liveFilter{Status: q.Get("status"), Model: strings.TrimSpace(q.Get("model")), Client: strings.TrimSpace(q.Get("client"))}
}

func (f liveFilter) exchanges() api.ExchangeFilter {
	return api.ExchangeFilter{Status: f.Status, Model: f.Model, Client: f.Client}
}

// showLive lists exchanges, the newest first. Unlike other views it is about
// everybody unless a user is named.
func showLive(c *call) error {
	asked := c.whose
	b, err := c.begin("Live", "live")
	if err != nil {
		return err
	}
	if asked.User == "" {
		b.Whose, c.whose = asked, asked
	}
	q := c.r.URL.Query()
	v := liveView{base: b, Of: liveTarget(asked, b.People, b.More), Filter: liveFilterOf(q), Older: q.Get("cursor") != "", Read: c.now().UnixMilli()}
	if err := v.fill(c, q.Get("cursor")); err != nil {
		return err
	}
	switch {
	case c.partial() && v.Older:
		c.renderPart("live", "exchange-rows", v)
		return nil
	case c.wants("live-list"):
		c.renderPart("live", "live-list", v)
		return nil
	}
	v.fillChoices(c)
	c.render(http.StatusOK, "live", v)
	return nil
}

// liveTarget returns whose exchanges are listed. Parts by which people can't be
// told apart are left out, so that another user can be named without them. The
// tenant stays where people are not known.
func liveTarget(asked api.Target, people []api.User, more bool) api.Target {
	const ordinary = "default"
	if asked.App == ordinary {
		asked.App = ""
	}
	if asked.Project == ordinary {
		asked.Project = ""
	}
	elsewhere := func(u api.User) bool { return u.Tenant != asked.Tenant }
	if len(people) > 0 && !more && !slices.ContainsFunc(people, elsewhere) {
		asked.Tenant = ""
	}
	return asked
}

func (v *liveView) fill(c *call, cursor string) error {
	page, err := c.service.Recent(c.ctx, c.p, v.Of, v.Filter.exchanges(), cursor, livePage)
	switch {
	case errors.Is(err, api.ErrOff):
		v.Off = true
		return nil
	case isOf(err, "invalid") && !(v.Older && c.partial()): // which has no place for it
		v.Problem = sentence(api.Detail(err))
		return nil
	case err != nil:
		return err
	}
	for i := range page.Exchanges {
		v.Rows = append(v.Rows, exchangeRow{Exchange: page.Exchanges[i]})
	}
	v.Next, v.Partial = page.Next, page.Partial
	return nil
}

// fillChoices fills in which models and clients can be chosen.
func (v *liveView) fillChoices(c *call) {
	add := func(list []string, name string) []string {
		if name == "" || slices.Contains(list, name) {
			return list
		}
		return append(list, name)
	}
	v.Models, v.Clients = add(nil, v.Filter.Model), add(nil, v.Filter.Client)
	page, err := c.service.Recent(c.ctx, c.p, api.Target{}, api.ExchangeFilter{}, "", choicePage)
	if err != nil {
		return // the list says it
	}
	for i := range page.Exchanges {
		x := &page.Exchanges[i]
		v.Models, v.Clients = add(v.Models, x.Model), add(v.Clients, x.Client)
	}
	slices.Sort(v.Models)
	slices.Sort(v.Clients)
}

// Statuses returns the choices for the form.
func (liveView) Statuses() []string { return liveStatuses }

// Everybody reports whether the list is about all that the reader may see.
func (v liveView) Everybody() bool { return v.Of.User == "" }

// Elsewhere returns the parts of whose exchanges these are that no field of the
// form shows.
func (v liveView) Elsewhere() map[string]string {
	return base{Whose: api.Target{Tenant: v.Of.Tenant, Project: v.Of.Project, App: v.Of.App}}.Fields()
}

// Narrow reports whether the list is limited to less than everything.
func (v liveView) Narrow() bool { return v.Of != api.Target{} || v.Filter != liveFilter{} }

func (v liveView) query() url.Values {
	q := targetQuery(v.Of)
	setKnown(q, map[string]string{"status": v.Filter.Status, "model": v.Filter.Model, "client": v.Filter.Client})
	return q
}

// Events returns the address of the stream of what comes after this list.
func (v liveView) Events() string {
	q := v.query()
	q.Set("since", strconv.FormatInt(v.Read, 10))
	return "/live/events?" + q.Encode()
}

// Reload returns the address of the newest of the list.
func (v liveView) Reload() string {
	if q := v.query(); len(q) > 0 {
		return "/?" + q.Encode()
	}
	return "/"
}

// MoreLink returns the address of the following page.
func (v liveView) MoreLink() string {
	q, cursor := v.query(), v.Next
	if cursor == "" && len(v.Rows) > 0 {
		cursor = v.Rows[len(v.Rows)-1].ID
	}
	q.Set("cursor", cursor)
	return "/?" + q.Encode()
}

// exchangeLink returns the address of an exchange's receipt.
func exchangeLink(x *api.Exchange) string {
	whose := api.Target{Tenant: x.Tenant, App: x.App, Project: x.Project, User: x.User}
	return base{Whose: whose}.Link("/exchanges/" + url.PathEscape(x.ID))
}

// Link returns the address of the exchange's receipt.
func (r exchangeRow) Link() string { return exchangeLink(&r.Exchange) }

// Person names whose exchange it is.
func (r exchangeRow) Person() string {
	return person(api.Target{App: r.App, Project: r.Project, User: r.User})
}

// Given is how many memories the request was given, with those of before.
func (r exchangeRow) Given() int { return given(&r.Exchange) }

func given(x *api.Exchange) (n int) {
	for i := range x.Inserted {
		n += len(x.Inserted[i].Spans)
	}
	return n
}
