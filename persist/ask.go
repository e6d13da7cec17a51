package persist

import (
	"context"
	"slices"

	"github.com/remora-proxy/remora/persist/distill"
)

// Distiller proposes what to save of a conversation instead of the built-in rules. An error means the rules.
type Distiller interface {
	Distill(ctx context.Context, window []distill.Message) ([]distill.Proposal, error)
}

// SetDistiller has a model propose what to save. It is called before Run; nil is the built-in rules.
func (p *Pipeline) SetDistiller(d Distiller) { p.auditor.distiller = d }

type answer struct {
	talkKey
	number    int
	proposals []distill.Proposal
	err       error
}

// ask hands a conversation to the distiller; false means that the rules have to do.
func (a *auditor) ask(asking context.Context, t *talk) bool {
	if a.distiller == nil || !a.p.cfg.Audit.Enabled || t.fresh == 0 {
		return false
	}
	if a.asking >= roundAudits {
		return false
	}
	window := make([]distill.Message, len(t.window))
	err := guard(func() error {
		for i := range t.window {
			window[i] = distill.Message{User: t.window[i].user, Fresh: t.window[i].fresh, Text: a.p.redacted(ownWords(t.window[i].text))} // again: rules may have been added
		}
		return nil
	})
	if err != nil {
		a.p.stats.distillFailed.Add(1)
		a.p.log.Error("model not asked", "error", err)
		return false
	}
	a.asking++
	a.calling++
	t.asked = a.calling
	for i := range t.window {
		t.window[i].shown, t.window[i].place = t.asked, i
	}
	ans := answer{talkKey: t.talkKey, number: a.calling}
	a.calls.Go(func() {
		ans.err = guard(func() (err error) {
			ans.proposals, err = a.distiller.Distill(asking, window)
			return err
		})
		a.mu.Lock()
		a.answers = append(a.answers, ans)
		a.mu.Unlock()
		wake(a.wake)
	})
	return true
}

// answered goes on with a conversation for which a model was asked.
func (a *auditor) answered(r *roundWork, ans *answer) {
	a.asking--
	t := a.talks[ans.talkKey]
	if t == nil || t.asked != ans.number { // audited without it meanwhile, or erased
		return
	}
	r.touch(t)
	again := *ans
	again.proposals = slices.Clone(ans.proposals)
	r.undoing.answers = append(r.undoing.answers, again)
	t.asked = 0
	if ans.err != nil {
		a.p.stats.distillFailed.Add(1)
		ans.proposals = nil
	} else {
		a.p.stats.distilled.Add(1)
		if ans.proposals == nil {
			ans.proposals = []distill.Proposal{}
		}
		t.hold(ans.number, ans.proposals)
		defer t.release()
	}
	r.audit(t, ans.proposals)
}
