package persist

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// finding is the result of the audit of one conversation.
type finding struct {
	record    AuditRecord
	summary   *extract.Summary
	requests  []PendingForget
	rolePlay  bool    // continues after it
	replaced  int     // facts deleted because their turn was replaced
	withdrawn int     // facts deleted because their words are a template
	priority  float64 // sum over the facts saved
}

func (f *finding) reject(why string) { f.record.Rejected[why]++ }

const (
	maxFactRunes = PassageRunes // a longer statement is rejected
	maxMeant     = 20           // facts that a request to forget names
)

// scopeChanges is what a round changes in a scope.
type scopeChanges struct {
	*facts.Changes
	facts *scopeFacts
}

// inspect scores the statements in a window and merges those worth saving.
// proposals, if not nil, replace the sentences of the new messages. The
// conversation stays as it is, so inspect can be repeated if the store fails.
func (a *auditor) inspect(ctx context.Context, c *conversation, changes *scopeChanges, proposals []extract.Proposal, clock func() time.Time) (finding, error) {
	begun := clock()
	elapsed := func() time.Duration { return clock().Sub(begun) }
	out := finding{record: newAuditRecord(c)}
	for i := range proposals {
		proposals[i].Statement = a.redactor.redact(proposals[i].Statement)
	}
	summary := *c.summary
	out.summary, out.rolePlay = &summary, c.rolePlay
	result, err := extract.Read(c.messages(), out.summary, extract.Options{
		RolePlay: c.rolePlay, Proposals: proposals, Elapsed: elapsed, SoftLimit: a.tuning.softLimit, HardLimit: a.tuning.hardLimit,
	})
	if err != nil {
		return out, err
	}
	out.rolePlay = result.RolePlay
	out.record.Soft, out.record.Rejected = result.CutShort, result.Rejected
	for _, f := range result.Forget {
		turn := c.window[f.Message].turn
		out.requests = append(out.requests, PendingForget{
			Version: auditVersion, ID: facts.ID(c.scope, turn, f.Text), At: storage.TimeOf(c.window[f.Message].Time),
			Conversation: c.conversation, Turn: turn, Text: head(f.Text, 1024), Memories: changes.facts.Mentioned(f.Content, maxMeant),
		})
	}
	candidates := result.Candidates
	defer changes.Merged(len(candidates))
	out.record.Candidates = len(candidates)
	sum := 0.0
	for _, s := range candidates {
		sum += s.Score.Total
		out.record.Best = max(out.record.Best, s.Score.Total)
	}
	if len(candidates) > 0 {
		out.record.Mean = sum / float64(len(candidates))
	}
	// Revoke first, so that what is said now merges with what holds.
	if out.replaced, err = revokeReplaced(ctx, c, changes, candidates); err != nil {
		return out, err
	}
	repeated := map[int]*template{}
	for i := range c.window {
		// What is imported may be a conversation that was audited already.
		if m := &c.window[i]; m.New && m.User && !strings.HasPrefix(m.source, facts.SourceImport) {
			if t := a.templates.read(c.conversationKey, m.Text); t != nil {
				repeated[i] = t
				n, err := changes.Withdraw(ctx, t.words, t.holds)
				if err != nil {
					return out, err
				}
				out.withdrawn += n
			}
		}
	}
	saved := 0
	for _, s := range candidates {
		if t := repeated[s.Message]; t != nil && !s.Requested && t.holds(s.Quote) {
			out.reject(extract.RejectTemplate)
			continue
		}
		if elapsed() > a.tuning.hardLimit {
			return out, extract.ErrTooLong
		}
		if why := a.unfit(s, saved); why != "" {
			out.reject(why)
			continue
		}
		outcome, err := changes.Merge(ctx, s, c.window[s.Message].origin(c.conversation))
		if err != nil {
			return out, err
		}
		known := out.record.Saved
		if out.count(outcome) && (outcome == facts.Quarantined || !s.Requested) {
			saved++
		}
		if out.record.Saved > known {
			out.priority += s.Score.Total
		}
	}
	out.record.TookMicros = elapsed().Microseconds()
	return out, nil
}

// revokeReplaced deletes facts of replaced turns whose new words lack them.
func revokeReplaced(ctx context.Context, c *conversation, changes *scopeChanges, candidates []*extract.Candidate) (revoked int, err error) {
	if len(c.replaced) == 0 {
		return 0, nil
	}
	proposed := make(map[string]bool, len(candidates))
	for _, s := range candidates {
		proposed[facts.ID(c.scope, c.window[s.Message].turn, s.Quote)] = true
	}
	for turn := range c.replaced {
		text := ""
		for i := range c.window {
			if m := &c.window[i]; m.turn == turn && m.User {
				text += m.Text + "\n"
			}
		}
		n, err := changes.Revoke(ctx, turn, text, proposed)
		if err != nil {
			return revoked, err
		}
		revoked += n
	}
	return revoked, nil
}

// count counts the outcome of a merge and reports whether a fact was saved.
func (f *finding) count(o facts.Outcome) (saved bool) {
	switch o {
	case facts.Superseded:
		f.record.Superseded++
		f.record.Saved++
		return true
	case facts.Added:
		f.record.Saved++
		return true
	case facts.Quarantined:
		f.record.Quarantined++
		return true
	case facts.Reinforced:
		f.record.Reinforced++
		f.reject(extract.RejectDuplicate)
	case facts.Known:
		f.reject(extract.RejectDuplicate)
	case facts.Stale:
		f.reject(extract.RejectStale)
	case facts.Forgotten:
		f.reject(extract.RejectForgotten)
	}
	return false
}

// unfit returns why a scored candidate is not saved, "" if it is.
func (a *auditor) unfit(c *extract.Candidate, saved int) string {
	switch {
	case c.Score.Importance == 0:
		return extract.RejectUnimportant
	case utf8.RuneCountInString(c.Text()) > maxFactRunes:
		return extract.RejectLong
	case a.redactor.hides(c.Quote):
		return extract.RejectPlaceholders
	case c.Requested:
		return ""
	case c.Score.Total < a.cfg.Audit.Threshold:
		return extract.RejectLow
	case saved >= a.cfg.Audit.PerAudit:
		return extract.RejectSurplus
	}
	return ""
}

// newAuditRecord describes the window.
func newAuditRecord(c *conversation) AuditRecord {
	r := AuditRecord{Conversation: c.conversation, Messages: len(c.window), Fresh: c.unread, Rejected: map[string]int{}}
	for i := range c.window {
		at := storage.TimeOf(c.window[i].Time)
		if r.From == 0 || at < r.From {
			r.From = at
		}
		r.To = max(r.To, at)
		r.Tokens += tokensOf(c.window[i].Text)
	}
	return r
}

// audit audits one conversation. Its messages count as read then, whatever the
// result, unless the round has ended.
func (r *round) audit(c *conversation, proposals []extract.Proposal) {
	if r.ended || !c.dirty() {
		return
	}
	r.audits++
	r.touch(c)
	changes, err := r.changesOf(c.scope)
	if err == nil && r.cfg.Audit.Enabled {
		err = guard(func() error { return r.inspectAndRecord(c, changes, proposals) })
	}
	switch {
	case err == nil:
	case !permanent(err) && !errors.Is(err, extract.ErrTooLong):
		r.ended = true
		return
	default:
		r.stats.auditsGivenUp.Add(1)
		r.log.Warn("audit given up", "error", err)
	}
	c.audited()
}

func (r *round) inspectAndRecord(c *conversation, changes *scopeChanges, proposals []extract.Proposal) error {
	if c.summary == nil {
		err := r.retry("audit", func() (err error) {
			if _, ok := changes.facts.records.summaries[recordKey(c.conversation)]; ok {
				c.summary, err = r.readSummary(r.work, c.conversationKey)
			} else {
				c.summary = &extract.Summary{Conversation: c.conversation}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	var found finding
	tooLong := false
	err := r.retry("audit", func() (err error) {
		found, err = r.inspect(r.work, c, changes, proposals, time.Now)
		if tooLong = errors.Is(err, extract.ErrTooLong); tooLong { // a repetition would take as long
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	c.summary, c.rolePlay = found.summary, found.rolePlay
	if tooLong {
		return extract.ErrTooLong
	}
	if found.withdrawn > 0 {
		r.log.Info("facts withdrawn: their text came back in other conversations", "facts", found.withdrawn)
	}
	found.record.Distilled = proposals != nil
	r.findings = append(r.findings, found)
	r.addRecords(c, changes.facts, &found)
	return nil
}

// addRecords adds the records of an audit, and drops those beyond the limits.
func (r *round) addRecords(c *conversation, f *scopeFacts, found *finding) {
	now := storage.Clock()
	add := func(bucket storage.Bucket, key string, value []byte) {
		r.records = append(r.records, storage.Record{Bucket: bucket, Scope: c.scope, Key: key, Value: value, ExpiresAt: r.auditExpiry(now)})
	}
	drop := func(bucket storage.Bucket, keys []string) {
		for _, key := range keys {
			r.stale = append(r.stale, storage.RecordRef{Bucket: bucket, Scope: c.scope, Key: key})
		}
	}
	t, kept := &r.tuning, &f.records
	add(storage.BucketAudit, kept.auditKey(t.keepRecords), found.record.encode(now))
	key := recordKey(c.conversation)
	add(storage.BucketSummary, key, c.summary.Encode())
	drop(storage.BucketSummary, kept.addSummary(key, storage.TimeOf(c.summary.Updated), t.keepSummaries))
	for i := range found.requests {
		q := &found.requests[i]
		value, err := q.encode()
		if err != nil {
			continue
		}
		key := forgetPrefix + q.ID
		add(storage.BucketAudit, key, value)
		drop(storage.BucketAudit, kept.addPending(key, q.At, t.maxPending))
	}
}
