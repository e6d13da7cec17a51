package page

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/storage"
)

// memoryView is one memory: next to the list, or on a page of its own with how
// it came to be and where it was used.
type memoryView struct {
	base
	Memory    api.Memory
	Problem   string
	Given     string // the text that was refused, "" = the memory's own
	Whole     bool   // on a page of its own
	Changes   []change
	Chain     []api.Memory
	Passages  []api.Memory // of the turn that it comes from
	Uses      []api.Exchange
	Originals []api.Original
	Revealed  bool // Originals were asked for
	InList    bool // its row in the list is to be updated
}

// Undo returns what taking back the last change is called, "" if there is none:
// taking back what was taken back makes the change again.
func (v memoryView) Undo() string {
	for i := range v.Changes {
		switch c := &v.Changes[i]; {
		case c.Before == nil:
		case c.Op == "undo":
			return "Redo"
		default:
			return "Undo"
		}
	}
	return ""
}

// Has reports whether the memory has a tag.
func (v memoryView) Has(tag string) bool { return slices.Contains(v.Memory.Tags, tag) }

// Pinned and Private are tags with a meaning of their own.
func (v memoryView) Pinned() bool  { return v.Has(storage.PinnedTag) }
func (v memoryView) Private() bool { return v.Has(storage.PrivateTag) }

// TagText returns the tags for the field in which they are edited.
func (v memoryView) TagText() string { return strings.Join(v.Memory.Tags, ", ") }

// Text returns what the field for the text holds.
func (v memoryView) Text() string {
	if v.Given != "" {
		return v.Given
	}
	return v.Memory.Text
}

// Action returns the path that changes are sent to.
func (v memoryView) Action() string { return v.Link(memoryPath(v.Memory.ID)) }

// own returns whose memory it is.
func own(m *api.Memory) api.Target {
	return api.Target{Tenant: m.Tenant, App: m.App, Project: m.Project, User: m.User}
}

// showMemory shows one memory.
func showMemory(c *call) error {
	m, err := c.service.Get(c.ctx, c.p, c.whose, c.r.PathValue("id"), true)
	if err != nil {
		return err
	}
	c.whose = own(&m)
	v := memoryView{Memory: m, Revealed: c.r.URL.Query().Get("originals") == "1"}
	if c.wants("detail") {
		return v.showPart(c, "detail")
	}
	return v.showWhole(c, http.StatusOK)
}

// showPart answers with a part of the view, which has no more than the history.
func (v *memoryView) showPart(c *call, part string) error {
	v.Whose, v.Path = c.whose, c.r.URL.RequestURI()
	if err := v.fillHistory(c); err != nil {
		return err
	}
	c.renderPart("memory", part, v)
	return nil
}

func (v *memoryView) showWhole(c *call, status int) (err error) {
	if v.base, err = c.begin("Memory", "memories"); err != nil {
		return err
	}
	v.Whole = true
	if err := v.fill(c); err != nil {
		return err
	}
	c.render(status, "memory", v)
	return nil
}

// maxUses is how many exchanges the view of a memory lists.
const maxUses = 20

func (v *memoryView) fillHistory(c *call) error {
	history, err := c.service.History(c.ctx, c.p, c.whose, v.Memory.ID)
	if err != nil {
		return err
	}
	v.Changes, v.Chain = differences(history), history.Chain
	return nil
}

func (v *memoryView) fill(c *call) error {
	err := v.fillHistory(c)
	if err != nil {
		return err
	}
	if v.Memory.Turn != "" {
		if v.Passages, err = c.service.Passages(c.ctx, c.p, c.whose, v.Memory.Turn); err != nil {
			return err
		}
	}
	uses, err := c.service.Exchanges(c.ctx, c.p, c.whose, api.ExchangeFilter{Memory: v.Memory.ID}, "", maxUses)
	if err != nil && !errors.Is(err, api.ErrOff) {
		return err
	}
	v.Uses = uses.Exchanges
	if v.Revealed {
		v.Originals, err = c.service.Originals(c.ctx, c.p, c.whose, v.Memory.ID)
	}
	return err
}
