package page

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// changeMemory changes one memory, as the button says that was pressed.
func changeMemory(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	id := c.r.PathValue("id")
	m, err := c.service.Get(c.ctx, c.p, c.whose, id, true)
	if err != nil {
		return err
	}
	c.whose = own(&m)
	done, err := changeOne(c, &m, form)
	if err != nil {
		return showRefused(c, m, form, err)
	}
	if !c.partial() {
		c.session.say(done)
		return c.redirect(returnPath(form, base{Whose: c.whose}.Link("/memories/"+url.PathEscape(id))))
	}
	if m, err = c.service.Get(c.ctx, c.p, c.whose, id, true); err != nil {
		return err
	}
	current, _ := url.Parse(c.r.Header.Get("Hx-Current-Url"))
	inList := current != nil && current.Path == "/memories"
	v := memoryView{base: base{Flash: &done}, Memory: m, InList: inList, Whole: !inList}
	return v.showPart(c, "changed")
}

func returnPath(form url.Values, otherwise string) string {
	if to := form.Get("return"); to != "" {
		return to
	}
	return otherwise
}

// showRefused shows a change that was refused, with what was typed.
func showRefused(c *call, m api.Memory, form url.Values, err error) error {
	detail := sentence(api.Detail(err))
	switch {
	case errors.Is(err, persist.ErrChanged):
		detail = "Somebody else has changed this memory meanwhile. This is what it says now; your text is below."
	case errors.Is(err, api.ErrNotFound), isOf(err, "unavailable", "internal"):
		return err
	}
	v := memoryView{Memory: m, Problem: detail, Given: form.Get("text")}
	if c.partial() {
		return v.showPart(c, "detail")
	}
	return v.showWhole(c, http.StatusUnprocessableEntity)
}

// changeOne does what a button of a memory's form asks for.
func changeOne(c *call, m *api.Memory, form url.Values) (flash, error) {
	id, why := m.ID, form.Get("why")
	tagged := func(tags []string, said string) (flash, error) {
		if slices.Equal(tags, m.Tags) {
			return nothingChanged, nil
		}
		// With the version: else a tag that somebody has just given is lost.
		_, err := c.service.Update(c.ctx, c.p, c.whose, id, m.Version, api.Patch{Tags: &tags, Why: why})
		return flash{Text: said, Undo: []string{id}}, err
	}
	moved := func(state, said string) (flash, error) {
		if state == m.State {
			return nothingChanged, nil
		}
		_, err := c.service.Update(c.ctx, c.p, c.whose, id, 0, api.Patch{State: &state, Why: why})
		return flash{Text: said, Undo: []string{id}}, err
	}
	switch form.Get("do") {
	case "save":
		return saveText(c, m, form)
	case "tag":
		return tagged(with(m.Tags, tagsOf(form.Get("tags"))...), "Tagged.")
	case "pin":
		return tagged(with(m.Tags, storage.PinnedTag), "Pinned: it is kept whatever else goes.")
	case "unpin":
		return tagged(without(m.Tags, storage.PinnedTag), "No longer pinned.")
	case "private":
		return tagged(with(m.Tags, storage.PrivateTag), "Private: it goes only to upstreams that the policy names.")
	case "public":
		return tagged(without(m.Tags, storage.PrivateTag), "No longer private.")
	case "quarantine":
		return moved(api.StateQuarantined, "In quarantine: it is not recalled.")
	case "release":
		return moved(api.StateCurrent, "Released: it can be recalled.")
	case "forget":
		removed, err := c.service.Delete(c.ctx, c.p, c.whose, why, id)
		text := "Forgotten. It can be brought back for 24 hours."
		if n := len(removed.Deleted); n > 1 {
			text = "Forgotten, with " + plural(n-1, "fact", "facts") + " made of it. It can be brought back for 24 hours."
		}
		return flash{Text: text, Undo: []string{id}}, err
	case "undo":
		_, err := c.service.Undo(c.ctx, c.p, c.whose, id, why)
		return flash{Text: "Taken back."}, err
	case "restore":
		return restoreVersion(c, m, form)
	case "helped", "not-helped":
		_, err := c.service.Feedback(c.ctx, c.p, c.whose, id, form.Get("do") == "helped", why)
		return flash{Text: "Noted: its priority changed.", Undo: []string{id}}, err
	}
	return flash{}, errDo
}

// nothingChanged has nothing to undo: that would take back an earlier change.
var nothingChanged = flash{Text: "Nothing was changed."}

func with(tags []string, more ...string) []string {
	out := slices.Clone(tags)
	for _, tag := range more {
		if !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}

func without(tags []string, tag string) []string {
	return slices.DeleteFunc(slices.Clone(tags), func(t string) bool { return t == tag })
}

// typed returns what was typed into a field of several lines. Browsers end them
// with carriage returns.
func typed(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }

// saveText stores an edited text and tags, unless the memory has changed since
// the form was made. What the form still says as it was shown stays as it is: a
// tag may have a comma in it, and a text may end with an empty line.
func saveText(c *call, m *api.Memory, form url.Values) (flash, error) {
	d := api.Patch{Why: form.Get("why")}
	if text := typed(form.Get("text")); text != typed(m.Text) {
		d.Text = &text
	}
	if given := form.Get("tags"); given != (memoryView{Memory: *m}).TagText() {
		if tags := tagsOf(given); !slices.Equal(tags, m.Tags) {
			d.Tags = &tags
		}
	}
	if d.Text == nil && d.Tags == nil {
		return nothingChanged, nil
	}
	version, _ := strconv.ParseUint(form.Get("version"), 10, 64) // 0 = any
	_, err := c.service.Update(c.ctx, c.p, c.whose, m.ID, version, d)
	return flash{Text: "Saved.", Undo: []string{m.ID}}, err
}

// restoreVersion gives a memory the text, the tags and the priority that it had
// before a change, which the form names by its time.
func restoreVersion(c *call, m *api.Memory, form url.Values) (flash, error) {
	history, err := c.service.History(c.ctx, c.p, c.whose, m.ID)
	if err != nil {
		return flash{}, err
	}
	for i := range history.Changes {
		if was := history.Changes[i].Before; was != nil && history.Changes[i].At == form.Get("at") {
			d := api.Patch{Tags: &was.Tags, Priority: &was.Priority, Why: "restored an earlier version"}
			if was.Text != m.Text {
				d.Text = &was.Text
			}
			_, err := c.service.Update(c.ctx, c.p, c.whose, m.ID, 0, d)
			return flash{Text: "Restored.", Undo: []string{m.ID}}, err
		}
	}
	return flash{}, api.ErrGone
}

// changeMany does the same to several memories.
func changeMany(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	done, err := changeChosen(c, form)
	return c.report(done, err, returnPath(form, base{Whose: c.whose}.Link("/memories")))
}

func changeChosen(c *call, form url.Values) (flash, error) {
	ids, why := form["id"], form.Get("why")
	if len(ids) == 0 {
		return flash{}, &api.FieldError{Field: "id", Why: "names no memory: choose some first"}
	}
	if len(ids) > api.MaxIDs {
		return flash{}, &api.FieldError{Field: "id", Why: "names too many memories at a time"}
	}
	switch form.Get("do") {
	case "forget":
		_, err := c.service.Delete(c.ctx, c.p, c.whose, why, ids...)
		return flash{Text: plural(len(ids), "memory", "memories") + " forgotten. They can be brought back for 24 hours.", Undo: ids}, err
	case "merge":
		merged, err := c.service.Merge(c.ctx, c.p, c.whose, ids, typed(form.Get("text")), why)
		return flash{Text: plural(len(ids), "memory", "memories") + " merged.", Undo: append([]string{merged.Memory.ID}, merged.Deleted...)}, err
	case "undo":
		return undoMany(c, ids, why)
	}
	return changeEach(c, ids, form)
}

// changeEach does what a button asks for to one memory after the other. It stops
// at the first that can't be changed, and reports how many were.
func changeEach(c *call, ids []string, form url.Values) (flash, error) {
	var changed []string // those of which there is something to take back
	for _, id := range ids {
		m, err := c.service.Get(c.ctx, c.p, c.whose, id, true)
		if err == nil {
			var done flash
			done, err = changeOne(c, &m, form)
			if err == nil {
				changed = append(changed, done.Undo...)
				continue
			}
		}
		if len(changed) == 0 {
			return flash{}, err
		}
		return flash{Text: plural(len(changed), "memory", "memories") + " changed; then: " + sentence(api.Detail(err)), Bad: true, Undo: changed}, nil
	}
	return flash{Text: plural(len(changed), "memory", "memories") + " changed.", Undo: changed}, nil
}

// undoMany takes back the last change of several memories. Those that come back
// with another, because they were forgotten together, are left alone then.
func undoMany(c *call, ids []string, why string) (flash, error) {
	back := map[string]bool{}
	for _, id := range ids {
		if back[id] {
			continue
		}
		restored, err := c.service.Undo(c.ctx, c.p, c.whose, id, why)
		if err != nil {
			return flash{}, err
		}
		for i := range restored {
			back[restored[i].ID] = true
		}
	}
	return flash{Text: "Taken back."}, nil
}
