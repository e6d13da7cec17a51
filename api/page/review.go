package page

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/remora-proxy/remora/api"
)

// reviewPage is how many memories or pairs a page of the review shows.
const reviewPage = 30

// Tabs of the review.
const (
	tabQuarantine     = "quarantine"
	tabContradictions = "contradictions"
	tabForget         = "forget"
	tabSources        = "sources"
)

// reviewView is what a person should look at, one tab at a time.
type reviewView struct {
	base
	Tab  string
	Tabs []tab

	Quarantined []quarantined
	Pairs       []pair
	Requests    []api.ForgetRequest
	Sources     api.Sources
	Confirm     *confirmation
	Next        string // the cursor of the following page; "" = this is the last
	Truncated   bool   // not all memories were looked through
	Later       bool   // the tabs are counted by a request of their own
}

// tab is one part of the review.
type tab struct {
	Name, Title string
	Count       int
	More        bool // than Count
}

// quarantined is a memory that is never recalled, with the reason.
type quarantined struct {
	api.Memory
	By  string // who has put it there, "" = the audit
	Why string
}

// pair is a contradiction, word by word.
type pair struct {
	api.Contradiction
	Before, After []edit // of the older and of the newer
	Turned        bool   // what gave way was said later
}

// confirmation asks whether to change all memories of a source.
type confirmation struct {
	Do    string // forget-source or quarantine-source
	Count api.SourceCount
	N     int // memories that are changed
}

// showReview shows what a person should look at.
func showReview(c *call) error {
	b, err := c.begin("Review", "review")
	if err != nil {
		return err
	}
	q := c.r.URL.Query()
	v := reviewView{base: b, Tab: q.Get("tab")}
	counts := c.wants("tabs")
	if v.Later, err = countsLater(c); err != nil {
		return err
	}
	v.Later = v.Later && !counts
	if err := v.count(c); err != nil {
		return err
	}
	if counts {
		c.renderPart("review", "tabs", v)
		return nil
	}
	if !slices.ContainsFunc(v.Tabs, func(t tab) bool { return t.Name == v.Tab }) {
		v.Tab = v.firstTab()
	}
	switch v.Tab {
	case tabQuarantine:
		err = v.fillQuarantine(c, q.Get("cursor"))
	case tabContradictions:
		err = v.fillPairs(c, q.Get("cursor"))
	case tabSources:
		if v.Later {
			v.Sources, err = c.service.Sources(c.ctx, c.p, c.whose)
		}
		if err == nil {
			err = v.confirm(q.Get("do"), q.Get("source"))
		}
	}
	if err != nil {
		return err
	}
	c.render(http.StatusOK, "review", v)
	return nil
}

// firstTab is the first with something in it: a tab is no error if it is empty.
func (v *reviewView) firstTab() string {
	for _, t := range v.Tabs {
		if t.Count > 0 && t.Name != tabSources {
			return t.Name
		}
	}
	return tabQuarantine
}

// maxCounted is how many memories are counted before the view is shown: it takes
// a look at each of them. Of more, the counts come after it, if there is a
// script.
const maxCounted = 10_000

func countsLater(c *call) (bool, error) {
	found, err := c.service.Users(c.ctx, c.p, c.whose, "", 1)
	return err == nil && len(found.Users) > 0 && found.Users[0].Memories > maxCounted, err
}

// countReview counts what is in each tab.
func (v *reviewView) count(c *call) (err error) {
	if v.Later {
		v.Tabs = []tab{{Name: tabQuarantine, Title: "Quarantine"}, {Name: tabContradictions, Title: "Contradictions"}, {Name: tabForget, Title: "Requests to forget"}, {Name: tabSources, Title: "Sources"}}
		v.Requests, err = c.service.ForgetRequests(c.ctx, c.p, c.whose)
		return err
	}
	if v.Sources, err = c.service.Sources(c.ctx, c.p, c.whose); err != nil {
		return err
	}
	pairs, err := c.service.Contradictions(c.ctx, c.p, c.whose, "", api.MaxPage)
	if err != nil {
		return err
	}
	if v.Requests, err = c.service.ForgetRequests(c.ctx, c.p, c.whose); err != nil {
		return err
	}
	inQuarantine := 0
	for _, s := range v.Sources.Sources {
		inQuarantine += s.Quarantined
	}
	v.Truncated = v.Sources.Truncated || pairs.Truncated
	v.Tabs = []tab{
		{tabQuarantine, "Quarantine", inQuarantine, v.Sources.Truncated},
		{tabContradictions, "Contradictions", len(pairs.Contradictions), pairs.Next != "" || pairs.Truncated},
		{tabForget, "Requests to forget", len(v.Requests), false},
		{tabSources, "Sources", len(v.Sources.Sources), v.Sources.Truncated},
	}
	return nil
}

// fillQuarantine reads a page of what is in quarantine. A page of the service
// may be empty though there is more.
func (v *reviewView) fillQuarantine(c *call, cursor string) error {
	for {
		page, err := c.service.List(c.ctx, c.p, c.whose, api.Filter{States: []string{api.StateQuarantined}}, cursor, reviewPage)
		if err != nil {
			return err
		}
		for i := range page.Memories {
			one := quarantined{Memory: page.Memories[i]}
			if one.By, one.Why, err = whoQuarantined(c, one.ID); err != nil {
				return err
			}
			v.Quarantined = append(v.Quarantined, one)
		}
		if cursor = page.Next; cursor == "" || len(v.Quarantined) > 0 {
			v.Next = cursor
			return nil
		}
	}
}

// whoQuarantined returns who has put a memory into quarantine and why, "" if it
// has been there from the start.
func whoQuarantined(c *call, id string) (by, why string, err error) {
	history, err := c.service.History(c.ctx, c.p, c.whose, id)
	if errors.Is(err, api.ErrNotFound) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	for _, change := range history.Changes { // the newest first
		if change.Before != nil && change.Before.State != api.StateQuarantined {
			return cmp.Or(change.By, "somebody"), change.Why, nil
		}
	}
	return "", "", nil
}

func (v *reviewView) fillPairs(c *call, cursor string) error {
	page, err := c.service.Contradictions(c.ctx, c.p, c.whose, cursor, reviewPage)
	if err != nil {
		return err
	}
	v.Next = page.Next
	for _, found := range page.Contradictions {
		p := pair{Contradiction: found, Turned: found.Older.EventTime > found.Newer.EventTime}
		for _, e := range wordEdits(found.Older.Text, found.Newer.Text) {
			if e.Op != "ins" {
				p.Before = append(p.Before, e)
			}
			if e.Op != "del" {
				p.After = append(p.After, e)
			}
		}
		v.Pairs = append(v.Pairs, p)
	}
	return nil
}

// confirm prepares the question whether to change all memories of a source.
func (v *reviewView) confirm(do, source string) error {
	if do == "" {
		return nil
	}
	i := slices.IndexFunc(v.Sources.Sources, func(s api.SourceCount) bool { return s.Source == source })
	if i < 0 || source == "" {
		return api.ErrNotFound
	}
	count := v.Sources.Sources[i]
	v.Confirm = &confirmation{Do: do, Count: count, N: count.Memories}
	switch do {
	case "forget-source":
	case "quarantine-source":
		v.Confirm.N -= count.Quarantined
	default:
		return errDo
	}
	return nil
}

// TabLink returns the path of a tab.
func (v reviewView) TabLink(name string, pairs ...any) string {
	return v.Link("/review", append([]any{"tab", name}, pairs...)...)
}

// answerReview does what a button of the review asks for.
func answerReview(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	do := form.Get("do")
	to := map[string]string{
		"prefer": tabContradictions, "forget": tabContradictions, "forget-these": tabForget, "keep": tabForget,
		"forget-source": tabSources, "quarantine-source": tabSources,
	}[do]
	done, err := decide(c, do, form)
	return c.report(done, err, returnPath(form, base{Whose: c.whose}.Link("/review", "tab", to)))
}

func decide(c *call, do string, form url.Values) (flash, error) {
	id, why := form.Get("id"), form.Get("why")
	switch do {
	case "prefer":
		changed, err := c.service.Prefer(c.ctx, c.p, c.whose, id, why)
		if err != nil {
			return flash{}, err
		}
		text := "It holds now, and the other one gave way."
		if len(changed) < 2 {
			text = "It holds now."
		}
		return flash{Text: text, Undo: []string{id}}, nil
	case "forget":
		_, err := c.service.Delete(c.ctx, c.p, c.whose, why, id)
		return flash{Text: "Forgotten. It can be brought back for 24 hours.", Undo: []string{id}}, err
	case "forget-these", "keep":
		return answerForget(c, do == "forget-these", form)
	case "forget-source":
		return forgetSource(c, form.Get("source"))
	case "quarantine-source":
		return quarantineSource(c, form.Get("source"))
	}
	return flash{}, errDo
}

// answerForget answers a request to forget. To forget nothing is to keep, and
// has a button of its own: no ids would mean all.
func answerForget(c *call, forget bool, form url.Values) (flash, error) {
	ids := form["id"]
	if !forget {
		_, err := c.service.AnswerForget(c.ctx, c.p, c.whose, form.Get("request"), false, nil)
		return flash{Text: "Kept. The request is answered."}, err
	}
	if len(ids) == 0 {
		return flash{}, &api.FieldError{Field: "id", Why: "names no memory: choose what to forget, or keep them"}
	}
	gone, err := c.service.AnswerForget(c.ctx, c.p, c.whose, form.Get("request"), true, ids)
	return removed(gone), err
}

// removed reports what was deleted. To undo one deletion brings back all that
// were deleted at once.
func removed(gone api.Removed) flash {
	if len(gone.Deleted) == 0 {
		return flash{Text: "Nothing was there to forget any more."}
	}
	return flash{
		Text: plural(len(gone.Deleted), "memory", "memories") + " forgotten. For 24 hours they can be brought back, here or in Memories with the state deleted.",
		Undo: gone.Deleted[:1],
	}
}

var errSource = &api.FieldError{Field: "source", Why: "is required"} // none would mean all

func forgetSource(c *call, source string) (flash, error) {
	if source == "" {
		return flash{}, errSource
	}
	gone, err := c.service.DeleteAll(c.ctx, c.p, c.whose, api.Filter{Source: source}, "everything from this source")
	return removed(gone), err
}

func quarantineSource(c *call, source string) (flash, error) {
	if source == "" {
		return flash{}, errSource
	}
	filter := api.Filter{Source: source, States: []string{api.StateCurrent, api.StateSuperseded}}
	var ids []string
	for cursor := ""; ; {
		page, err := c.service.List(c.ctx, c.p, c.whose, filter, cursor, api.MaxPage)
		if err != nil {
			return flash{}, err
		}
		for i := range page.Memories {
			ids = append(ids, page.Memories[i].ID)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	state, changed := api.StateQuarantined, []string{}
	for _, id := range ids {
		_, err := c.service.Update(c.ctx, c.p, c.whose, id, 0, api.Patch{State: &state, Why: "everything from this source"})
		switch {
		case errors.Is(err, api.ErrNotFound): // it has gone meanwhile
		case err != nil && len(changed) == 0:
			return flash{}, err
		case err != nil:
			return flash{Text: strconv.Itoa(len(changed)) + " of " + plural(len(ids), "memory", "memories") + " put in quarantine; then: " + sentence(api.Detail(err)), Bad: true}, nil
		default:
			changed = append(changed, id)
		}
	}
	done := flash{Text: plural(len(changed), "memory", "memories") + " put in quarantine. They are not recalled until you release them."}
	if len(changed) <= api.MaxIDs {
		done.Undo = changed
	}
	return done, nil
}
