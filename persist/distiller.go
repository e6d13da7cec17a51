package persist

import (
	"context"
	"slices"

	"github.com/remora-proxy/remora/persist/extract"
)

// Distiller proposes what to save, instead of the built-in rules, which apply
// after an error. A [distill.Distiller] is one.
type Distiller interface {
	Distill(ctx context.Context, window []extract.Message) ([]extract.Proposal, error)
}

// answer is a distiller's answer to one call.
type answer struct {
	conversationKey
	call      int
	proposals []extract.Proposal
	err       error
}

// ask calls the distiller; false means that the built-in rules apply.
func (a *auditor) ask(ctx context.Context, c *conversation) bool {
	if a.distiller == nil || !a.cfg.Audit.Enabled || c.unread == 0 || a.asking >= roundAudits {
		return false
	}
	window := c.messages()
	err := guard(func() error {
		for i := range window { // redacted again: rules may have been added
			window[i].Text, window[i].Speaker = a.redactor.redact(extract.OwnWords(window[i].Text)), ""
		}
		return nil
	})
	if err != nil {
		a.stats.distillFailed.Add(1)
		a.log.Error("model not asked", "error", err)
		return false
	}
	a.asking++
	a.lastCall++
	c.call = a.lastCall
	for i := range c.window {
		c.window[i].call, c.window[i].position = c.call, i
	}
	ans := answer{conversationKey: c.conversationKey, call: c.call}
	a.calls.Go(func() {
		ans.err = guard(func() (err error) {
			ans.proposals, err = a.distiller.Distill(ctx, window)
			return err
		})
		a.mu.Lock()
		a.answers = append(a.answers, ans)
		a.mu.Unlock()
		wake(a.wake)
	})
	return true
}

// answered audits a conversation with an answer, or without if the call failed.
func (r *round) answered(ans *answer) {
	r.asking--
	c := r.conversations[ans.conversationKey]
	if c == nil || c.call != ans.call { // audited without it meanwhile, or erased
		return
	}
	r.touch(c)
	again := *ans
	again.proposals = slices.Clone(ans.proposals)
	r.undo.answers = append(r.undo.answers, again)
	c.call = 0
	if ans.err != nil {
		r.stats.distillFailed.Add(1)
		r.audit(c, nil)
		return
	}
	r.stats.distilled.Add(1)
	if ans.proposals == nil {
		ans.proposals = []extract.Proposal{}
	}
	c.excludeUnseen(ans.call, ans.proposals)
	defer c.includeUnseen()
	r.audit(c, ans.proposals)
}
