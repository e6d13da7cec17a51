package page

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/recall/receipt"
)

// receiptView is what one exchange was given and why.
type receiptView struct {
	base
	X          api.Exchange
	Older      []talkItem // what was said before, but for the last few passages
	Talk       []talkItem // the rest, to the answer
	Inserted   []candidate
	TurnedDown []candidate
	Stages     []stage
	Position   int // in its conversation, from 1; 0 = not known
	Length     int // exchanges of the conversation that are known
	Earlier    string
	Later      string
}

// talkItem is something said, or a block that was inserted there.
type talkItem struct {
	Who     string
	Time    string
	Text    string
	ID      string // of the passage, "" = it is not stored
	Missing string // why there is no text
	Block   *inserted
}

// inserted is a block with where it went.
type inserted struct {
	receipt.Insertion
	Dialect string // of the request
	First   string // address of the exchange that was given it first
}

// candidate is a memory that matched, as it is now.
type candidate struct {
	receipt.Candidate
	Memory *api.Memory // nil = it is gone
}

// stage is a part of the time of an exchange, in microseconds.
type stage struct {
	Name, Meaning string
	Start, Took   int64
	Nested        bool // it is within the one before
}

const (
	// saidBefore is how many passages before an exchange its receipt shows, and
	// saidLast how many of them at once.
	saidBefore = 30
	saidLast   = 4
	// siblingPage is how many exchanges of its conversation are looked at.
	siblingPage = 200
)

// showReceipt shows one exchange.
func showReceipt(c *call) error {
	b, err := c.begin("Exchange", "live")
	if err != nil {
		return err
	}
	x, err := c.service.Exchange(c.ctx, c.p, c.whose, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	v := receiptView{base: b, X: x, Stages: stagesOf(&x.Times)}
	v.Inserted, v.TurnedDown = candidatesOf(&x)
	siblings, err := v.siblings(c)
	if err != nil {
		return err
	}
	said, err := c.service.Said(c.ctx, c.p, c.whose, x.ID, saidBefore)
	if err != nil {
		return err
	}
	v.Talk = talkOf(&x, &said, siblings)
	v.fold()
	c.render(http.StatusOK, "receipt", v)
	return nil
}

// siblings returns the exchanges of the same conversation, the newest first,
// and fills in which are before and after this one.
func (v *receiptView) siblings(c *call) ([]api.Exchange, error) {
	if v.X.Conversation == "" {
		return nil, nil
	}
	f := api.ExchangeFilter{Conversation: v.X.Conversation}
	page, err := c.service.Exchanges(c.ctx, c.p, c.whose, f, "", siblingPage)
	if err != nil {
		return nil, err
	}
	list := page.Exchanges
	at := slices.IndexFunc(list, func(x api.Exchange) bool { return x.ID == v.X.ID })
	if at < 0 { // more came after it than are looked at
		page, err = c.service.Exchanges(c.ctx, c.p, c.whose, f, v.X.ID, siblingPage)
		if err == nil && len(page.Exchanges) > 0 {
			v.Earlier = exchangeLink(&page.Exchanges[0])
		}
		return page.Exchanges, err
	}
	if page.Next == "" {
		v.Length, v.Position = len(list), len(list)-at
	}
	if at > 0 {
		v.Later = exchangeLink(&list[at-1])
	}
	if at+1 < len(list) {
		v.Earlier = exchangeLink(&list[at+1])
	}
	return list[at+1:], nil
}

// candidatesOf returns the candidates of an exchange: those that were inserted,
// and those that were turned down.
func candidatesOf(x *api.Exchange) (in, down []candidate) {
	for _, one := range x.Candidates {
		c := candidate{Candidate: one}
		for i := range x.Memories {
			if m := &x.Memories[i]; m.ID == one.ID {
				c.Memory, c.Kind = m, m.Kind
			}
		}
		if one.Inserted {
			in = append(in, c)
		} else {
			down = append(down, c)
		}
	}
	return in, down
}

// talkOf returns what was said, with each block before what it was inserted
// before. Where a replayed block belongs is known from the exchange that was
// given it first; if that is gone, it comes first.
func talkOf(x *api.Exchange, said *api.Said, before []api.Exchange) (out []talkItem) {
	type placed struct {
		at    string // the time of the passage that follows
		block *inserted
	}
	var blocks []placed
	for _, in := range x.Inserted {
		p := placed{block: &inserted{Insertion: in, Dialect: x.Dialect}}
		if !in.Replayed {
			p.at = x.Time
		}
		for i := range before {
			if in.Replayed && gaveFirst(&before[i], in.Text) {
				p.at, p.block.First = before[i].Time, exchangeLink(&before[i])
			}
		}
		blocks = append(blocks, p)
	}
	take := func(until string) {
		blocks = slices.DeleteFunc(blocks, func(p placed) bool {
			due := p.block.Replayed && p.at <= until
			if due {
				out = append(out, talkItem{Block: p.block})
			}
			return due
		})
	}
	take("")
	for i := range said.Before {
		take(said.Before[i].EventTime)
		out = append(out, passage(&said.Before[i]))
	}
	take(x.Time)
	for _, p := range blocks {
		out = append(out, talkItem{Block: p.block})
	}
	return append(out, turnOf(x, said.Turn)...)
}

// gaveFirst reports whether an exchange was given this block as a new one.
func gaveFirst(x *api.Exchange, text string) bool {
	return slices.ContainsFunc(x.Inserted, func(in receipt.Insertion) bool { return !in.Replayed && in.Text == text })
}

func passage(m *api.Memory) talkItem {
	item := talkItem{Who: m.Role, Time: m.EventTime, Text: m.Text, ID: m.ID}
	if m.Speaker != "" {
		item.Who = m.Speaker
	}
	return item
}

// turnOf returns the question and the answer of an exchange.
func turnOf(x *api.Exchange, turn []api.Memory) (out []talkItem) {
	asked, answered := false, false
	for i := range turn {
		if turn[i].Role != "assistant" {
			out, asked = append(out, passage(&turn[i])), true
		}
	}
	switch {
	case asked:
	case x.Query != "":
		out = append(out, talkItem{Who: "user", Time: x.Time, Text: x.Query})
	default:
		out = append(out, talkItem{Who: "user", Time: x.Time, Missing: "The question is not kept, or was forgotten."})
	}
	for i := range turn {
		if turn[i].Role == "assistant" {
			out, answered = append(out, passage(&turn[i])), true
		}
	}
	if !answered {
		out = append(out, talkItem{Who: "assistant", Missing: "The answer is not stored: it may have been a step with tools, have come just now, or have been forgotten."})
	}
	return out
}

// fold sets what was said long before apart.
func (v *receiptView) fold() {
	passages := 0
	for i := len(v.Talk) - 1; i >= 0; i-- {
		if v.Talk[i].Block == nil {
			passages++
		}
		const turn = 2 // the question and the answer
		if passages > saidLast+turn {
			v.Older, v.Talk = v.Talk[:i+1], v.Talk[i+1:]
			return
		}
	}
}

// stagesOf takes the time of an exchange apart.
func stagesOf(t *receipt.Times) (out []stage) {
	if t.Total <= 0 {
		return nil
	}
	first := t.FirstByte
	if first <= 0 {
		first = t.Total
	}
	plan := min(t.Plan, first)
	out = append(out,
		stage{Name: "Memory", Meaning: "reading the request, finding memories, and writing them into it", Took: plan},
		stage{Name: "of which search", Meaning: "finding memories alone", Took: min(t.Recall, plan), Nested: true},
		stage{Name: "Upstream", Meaning: "from sending the request to the first byte of the answer", Start: plan, Took: first - plan})
	if t.Total > first {
		out = append(out, stage{Name: "Answer", Meaning: "from its first byte to its last", Start: first, Took: t.Total - first})
	}
	return out
}

// Status returns what happened, in words.
func (v receiptView) Status() status { return statusOf(v.X.Status) }

// Given is how many memories the request was given.
func (v receiptView) Given() int { return given(&v.X) }

// Why says why nothing was inserted.
func (v receiptView) Why() string {
	x := &v.X
	switch {
	case x.Status != "empty":
		return v.Status().Meaning
	case x.Considered == 0:
		return "Nothing that is remembered has anything to do with this message."
	case x.Relevance < x.Gate:
		return "What matches was not relevant enough, and nothing is better than something irrelevant."
	case len(x.Candidates) == 0:
		return "What matches was said in this very conversation, or is not to be recalled here."
	}
	return "All that matches was turned down; the reasons are below."
}

// Cached is the share of the input tokens that came from the cache.
func (v receiptView) Cached() float64 {
	if v.X.Usage.Input <= 0 {
		return 0
	}
	return min(float64(v.X.Usage.CacheRead)/float64(v.X.Usage.Input), 1)
}

// PartsNow reports whether some scores were taken apart again, and differ.
func (v receiptView) PartsNow() bool {
	return slices.ContainsFunc(v.X.Candidates, func(c receipt.Candidate) bool { return c.PartsNow })
}

// maxTurned is how many memories that were turned down are shown at once, if
// others were inserted.
const maxTurned = 5

// ShowTurned reports whether what was turned down is shown at once.
func (v receiptView) ShowTurned() bool {
	return len(v.Inserted) == 0 || len(v.TurnedDown) <= maxTurned
}

// Unwant returns the address to which a memory is sent that was not wanted.
func (v receiptView) Unwant() string {
	return v.Link("/exchanges/" + url.PathEscape(v.X.ID) + "/unwanted")
}

// Asked reports whether the question is known, so that others can be compared
// with it.
func (v receiptView) Asked() bool { return strings.TrimSpace(v.X.Query) != "" }

// messagesDialect is how receipts name Anthropic's API.
const messagesDialect = "messages"

// Place says in words where a block went.
func (i inserted) Place() string {
	switch i.Placement {
	case "beforeUser":
		if i.Dialect == messagesDialect { // its servers merge consecutive messages
			return "as a text block of its own, in the user’s message"
		}
		return "as a message of its own, before the user’s"
	case "inUser":
		return "at the beginning of the user’s message"
	case "system":
		return "at the end of the system prompt"
	}
	return i.Placement
}

// Number is the message's place in the request, from 1.
func (i inserted) Number() int { return i.Message + 1 }

// Bytes is the length of the block.
func (i inserted) Bytes() int { return len(i.Text) }

// setUnwanted has a memory not recalled any more for questions such as the one of
// an exchange, or takes that back.
func setUnwanted(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	id, memory := c.r.PathValue("id"), form.Get("memory")
	done, err := setWanted(c, memory, id, form.Get("do") == "wanted")
	if err != nil {
		if !isOf(err, "invalid", "gone") {
			return err
		}
		done = flash{Text: sentence(api.Detail(err)), Bad: true}
	}
	c.session.say(done)
	return c.redirect(base{Whose: c.whose}.Link("/exchanges/" + url.PathEscape(id)))
}

func setWanted(c *call, memory, exchange string, wanted bool) (flash, error) {
	before, err := c.service.Get(c.ctx, c.p, c.whose, memory, false)
	if err != nil {
		return flash{}, err
	}
	done, after := flash{Text: "It can be recalled for all kinds of questions again."}, before
	if wanted {
		after, err = c.service.WantedAgain(c.ctx, c.p, c.whose, memory, "")
	} else {
		done.Text = "It is not recalled any more for questions like this one."
		after, err = c.service.UnwantedIn(c.ctx, c.p, c.whose, memory, exchange, "not wanted in an exchange")
	}
	if err == nil && after.Version != before.Version { // else there is nothing to take back
		done.Undo = []string{memory}
	}
	return done, err
}
