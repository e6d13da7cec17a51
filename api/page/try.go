package page

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/api"
)

// tryView asks what a message would be given.
type tryView struct {
	base
	Asked     trial
	Today     string
	Upstreams []string
	Problem   string
	// Outcomes are empty without a message. With a date there are two: as of
	// the date, and now.
	Outcomes []outcome
	Same     bool // both outcomes insert the same
}

// trial is what is asked, as the URL says it.
type trial struct {
	Message, Previous, Conversation, Upstream, Model, AsOf, TopK string
}

func trialOf(q url.Values) trial {
	return trial{
		Message: q.Get("message"), Previous: q.Get("previous"), Conversation: strings.TrimSpace(q.Get("conversation")), Upstream: q.Get("upstream"),
		Model: strings.TrimSpace(q.Get("model")), AsOf: q.Get("asOf"), TopK: strings.TrimSpace(q.Get("topK")),
	}
}

// Narrow reports whether more than a message and a date is given.
func (t trial) Narrow() bool {
	return t.Previous != "" || t.Conversation != "" || t.Upstream != "" || t.Model != "" || t.TopK != ""
}

// question returns what the service is asked. A day means its end: what was
// said on it counts.
func (t trial) question() (api.Question, error) {
	q := api.Question{Message: t.Message, Previous: t.Previous, Conversation: t.Conversation, Upstream: t.Upstream, Model: t.Model, AsOf: t.AsOf}
	for _, field := range [...]struct{ name, value string }{{"The message", t.Message}, {"The message before", t.Previous}} {
		if len(field.value) > maxTried {
			return q, &api.FieldError{Field: field.name, Why: fmt.Sprintf(
				"has %d bytes. This view takes at most %d, because its address holds them; POST /v1/recall takes more", len(field.value), maxTried)}
		}
	}
	if _, err := time.Parse(time.DateOnly, t.AsOf); err == nil {
		q.AsOf += "T23:59:59Z"
	}
	if t.TopK != "" {
		n, err := strconv.Atoi(t.TopK)
		if err != nil || n < 1 {
			return q, &api.FieldError{Field: "topK", Why: fmt.Sprintf("must be a number from 1 to %d", api.MaxTopK)}
		}
		q.TopK = n
	}
	return q, nil
}

// maxTried bounds a message that is tried, in bytes: it is in the address.
const maxTried = 4 << 10

// outcome is what a message is given at one time.
type outcome struct {
	api.Answer
	Name  string
	When  string // the time that it is as of, "" = now
	Lines []blockLine
	Why   string // nothing is inserted
	Found []found
}

// found is a memory that is inserted, or would be but for the policy.
type found struct {
	api.Found
	Only bool // the outcome next to it does not have it
}

// Bytes and Tokens say how large the block is.
func (o outcome) Bytes() int  { return len(o.Block) }
func (o outcome) Tokens() int { return tokensOf(o.Block) }

// VectorsMeaning says what part embeddings had.
func (o outcome) VectorsMeaning() string {
	return cmp.Or(map[string]string{
		"off": "not used", "none": "none are made yet", "used": "used", "late": "came too late", "failed": "could not be made",
	}[o.Vectors], o.Vectors)
}

// showTry shows what a message would be given now, and as of a date next to it.
func showTry(c *call) error {
	b, err := c.begin("Try", "try")
	if err != nil {
		return err
	}
	v := tryView{base: b, Asked: trialOf(c.r.URL.Query()), Today: c.now().UTC().Format(time.DateOnly), Upstreams: c.service.Upstreams}
	if strings.TrimSpace(v.Asked.Message) != "" {
		if err := v.fill(c); err != nil {
			if !isOf(err, "invalid") || c.nobody(err) {
				return err
			}
			v.Problem, v.Outcomes = sentence(api.Detail(err)), nil
		}
	}
	if c.wants("answer") {
		c.renderPart("try", "answer", v)
		return nil
	}
	status := http.StatusOK
	if v.Problem != "" {
		status = http.StatusUnprocessableEntity
	}
	c.render(status, "try", v)
	return nil
}

func (v *tryView) fill(c *call) error {
	q, err := v.Asked.question()
	if err != nil {
		return err
	}
	ask := func(name string) error {
		a, err := c.service.Try(c.ctx, c.p, c.whose, q)
		if err == nil {
			v.Outcomes = append(v.Outcomes, outcomeOf(a, name, person(c.whose)))
		}
		return err
	}
	if q.AsOf == "" {
		return ask("Now")
	}
	if err := ask("As of " + when(q.AsOf) + " UTC"); err != nil {
		return err
	}
	q.AsOf = ""
	if err := ask("Now"); err != nil {
		return err
	}
	v.Same = compare(&v.Outcomes[0], &v.Outcomes[1])
	return nil
}

func outcomeOf(a api.Answer, name, who string) outcome {
	o := outcome{Answer: a, Name: name, When: a.AsOf}
	for _, f := range a.Results.Results {
		o.Found = append(o.Found, found{Found: f})
	}
	if a.Block != "" {
		o.Lines = blockLines(a.Block, nil)
	} else {
		o.Why = whyNothing(&a, who)
	}
	return o
}

// memoryOff is Answer.Memory where the policy switches memory off.
const memoryOff = "off"

// whyNothing says why a message is given nothing.
func whyNothing(a *api.Answer, who string) string {
	reason := mostOften(a.Cut)
	switch {
	case a.Memory == memoryOff:
		return "The policy switches memory off for this upstream and model."
	case a.Considered == 0 && len(a.Cut) == 0:
		return "The message is small talk, or nothing that is remembered of " + who + " has a word in common with it."
	case reason == "empty":
		return "The message is small talk, for which nothing is looked up."
	case a.Relevance < a.Gate || reason == "gate":
		return "What matches best is not relevant enough."
	case reason == "":
		return "Nothing that matches is left."
	}
	return "What matches was turned down: " + reasonOf(reason) + "."
}

// mostOften returns the reason for which most were turned down.
func mostOften(cut []api.Turned) (reason string) {
	n := map[string]int{}
	for _, c := range cut {
		n[c.Reason]++
	}
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if reason == "" || n[name] > n[reason] {
			reason = name
		}
	}
	return reason
}

// compare marks what each of two outcomes has alone, and reports whether both
// insert the same.
func compare(a, b *outcome) (same bool) {
	mark := func(a, b *outcome) {
		texts, ids := map[string]bool{}, map[string]bool{}
		for _, l := range b.Lines {
			texts[l.Text] = true
		}
		for _, f := range b.Found {
			ids[f.Memory.ID] = true
		}
		for i := range a.Lines {
			a.Lines[i].Only = !texts[a.Lines[i].Text]
		}
		for i := range a.Found {
			a.Found[i].Only = !ids[a.Found[i].Memory.ID]
		}
	}
	mark(a, b)
	mark(b, a)
	return a.Block == b.Block
}

// Cuts returns those that were turned down, with the policy's reasons first:
// they are the least expected.
func (o outcome) Cuts() []api.Turned {
	out := slices.Clone(o.Cut)
	slices.SortStableFunc(out, func(a, b api.Turned) int {
		if first := a.Reason == "policy"; first != (b.Reason == "policy") {
			if first {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.Score, a.Score)
	})
	return out
}
