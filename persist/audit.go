package persist

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/persist/distill"
	"github.com/remora-proxy/remora/storage"
)

// finding is what an audit of one conversation came to.
type finding struct {
	record   AuditRecord
	requests []PendingForget
	replaced int // facts deleted because their turn was replaced
}

var errTooLong = errors.New("audit took too long")

// inspect reads a conversation's window, scores what it finds and merges what is worth it. clock is time.Now but in tests.
// proposals, if not nil, are a distiller's and stand in for the spans of the fresh messages. The summary is brought up to
// date first: relevance is measured by it.
func (p *Pipeline) inspect(ctx context.Context, t *talk, g *merging, proposals []distill.Proposal, clock func() time.Time) (finding, error) {
	begun := clock()
	cfg := &p.cfg.Audit
	out := finding{record: newAuditRecord(t)}
	var candidates []*candidate
	newest := time.Time{}
	space := &p.auditor.reading
	space.reset()
	defer space.reset()
	for i := range t.window {
		m := &t.window[i]
		if m.at.After(newest) {
			newest = m.at
		}
		if !m.fresh {
			countWords(space.window, ownWords(m.text))
			continue
		}
		space.take(m)
	}
	distinct := len(space.said.list) // words of the fresh messages; those of the summary come behind
	t.summary.read(space)
	keywords := t.summary.keywords()
	for _, k := range keywords {
		if at, ok := space.said.at[k]; ok && at < distinct {
			space.window[k]++
		}
	}
	fresh := space.own
	played := t.played
	for i := range t.window {
		m := &t.window[i]
		if !m.fresh {
			continue
		}
		own := fresh[0]
		if fresh = fresh[1:]; !m.user {
			continue
		}
		took := clock().Sub(begun)
		if took > cfg.HardLimit {
			return out, errTooLong
		}
		if took > cfg.SoftLimit {
			out.record.Soft = true
			out.reject(rejectTime)
			continue
		}
		playing := played
		played = plays(own.text, played)
		playing = playing || played
		if proposals == nil && !playing {
			if c := mended(t.window, i); c != nil {
				candidates = append(candidates, c)
			}
		}
		for _, sp := range spansIn(own, m.at, i) {
			switch {
			case sp.forget != "":
				out.requests = append(out.requests, p.forgetRequest(g.d, m, t.conversation, sp.forget))
			case sp.reject != "":
				out.reject(sp.reject)
			case playing:
				out.reject(rejectFiction)
			case proposals == nil || sp.candidate.remembered:
				if sp.candidate.answers {
					sp.candidate.asked, sp.candidate.answers = askedBefore(t.window, i)
				}
				candidates = append(candidates, sp.candidate)
			}
		}
	}
	t.played = played
	for i := range proposals {
		proposals[i].Statement = p.redacted(proposals[i].Statement)
		if c := proposed(&proposals[i], t.window); c != nil {
			candidates = append(candidates, c)
		} else {
			out.reject(rejectRefused)
		}
	}
	r := cfg.Weights.relevance(space.window, keywords)
	h := cfg.Weights.coherence(t.window)
	sum := 0.0
	for _, c := range candidates {
		c.q = quality{r: r, h: h, i: cfg.Weights.importance(c), c: cfg.Weights.recency(newest.Sub(c.at))}
		c.q.total = cfg.Weights.total(c.q)
		c.heeded = heeded(c)
		sum += c.q.total
		out.record.Best = max(out.record.Best, c.q.total)
	}
	if len(candidates) > 0 {
		out.record.Mean = sum / float64(len(candidates))
	}
	out.record.Candidates = len(candidates)
	for i, c := range candidates {
		c.place = int64(i + 1)
	}
	defer func() { g.d.places += int64(len(candidates)) }()
	slices.SortStableFunc(candidates, func(a, b *candidate) int {
		if a.remembered != b.remembered {
			if a.remembered {
				return -1
			}
			return 1
		}
		if a.heeded != b.heeded { // what harms if it is forgotten is not to be the fourth of an audit
			if a.heeded {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.q.total, a.q.total)
	})
	if len(t.replaced) > 0 {
		for _, c := range candidates {
			space.ids[factID(t.scope, t.window[c.message].turn, c.quote)] = true
		}
	}
	for turn := range t.replaced { // first, so that what is said now merges with what holds
		text := ""
		for i := range t.window {
			if m := &t.window[i]; m.turn == turn && m.user {
				text += m.text + "\n"
			}
		}
		n, err := g.revoke(ctx, turn, text, space.ids)
		if err != nil {
			return out, err
		}
		out.replaced += n
	}
	saved := 0
	for _, c := range candidates {
		if clock().Sub(begun) > cfg.HardLimit {
			return out, errTooLong
		}
		if why := p.unfit(c, saved); why != "" {
			out.reject(why)
			continue
		}
		what, err := g.merge(ctx, c, &t.window[c.message], t.conversation)
		if err != nil {
			return out, err
		}
		switch what {
		case mergedNew, mergedSuperseded:
			out.record.Saved++
			if what == mergedSuperseded {
				out.record.Superseded++
			}
			if !c.remembered {
				saved++
			}
		case mergedQuarantined:
			out.record.Quarantined++
			saved++
		case mergedReinforced:
			out.record.Reinforced++
			out.reject(rejectDuplicate)
		case mergedSame:
			out.reject(rejectDuplicate)
		case mergedStale:
			out.reject(rejectStale)
		case mergedForgotten:
			out.reject(rejectForgotten)
		}
	}
	out.record.TookMicros = clock().Sub(begun).Microseconds()
	return out, nil
}

// unfit says why a scored candidate is not saved, "" if it is.
func (p *Pipeline) unfit(c *candidate, saved int) string {
	switch {
	case c.q.i == 0:
		return rejectUnimportant
	case len([]rune(factText(c))) > p.cfg.Facts.MaxCharacters:
		return rejectLong
	case p.redact != nil && (p.redact.OnlyPlaceholders(c.quote) || p.redact.HidesSecret(c.quote)):
		return rejectPlaceholders
	case c.remembered:
		return ""
	case c.q.total < p.cfg.Audit.Threshold:
		return rejectLow
	case saved >= p.cfg.Audit.PerAudit:
		return rejectSurplus
	}
	return ""
}

func (f *finding) reject(why string) { f.record.Rejected[why]++ }

// proposed makes a candidate of a distiller's proposal. Its quotation must stand in a fresh message of the user, or else
// the model made it up.
func proposed(p *distill.Proposal, window []windowMessage) *candidate {
	if p.Message < 0 || p.Message >= len(window) || p.Quote == "" || p.Statement == "" {
		return nil
	}
	m := &window[p.Message]
	said := " " + normalised(words(ownWords(m.text))) + " "
	ws := words(p.Quote)
	if !m.fresh || !m.user || len(ws) < 2 || instructs(p.Statement) || links(p.Statement) && !links(p.Quote) ||
		!strings.Contains(said, " "+normalised(ws)+" ") {
		return nil
	}
	if m := lexicon().marksAt(words(p.Statement), 0); m.has(markCommand) || m.has(markStanding) || m.has(markQuestion) {
		return nil // of an order or a question nothing is in the third person
	}
	kind := markFact
	for k := range markCount {
		if markNames[k] == p.Kind && saying&(1<<k) != 0 {
			kind = k
		}
	}
	c := &candidate{quote: p.Quote, statement: p.Statement, kind: kind, words: words(p.Statement), at: m.at, message: p.Message}
	c.dates = datesIn(ws, m.at)
	c.suspicious = instructs(p.Quote)
	return c
}

// newAuditRecord describes the window.
func newAuditRecord(t *talk) AuditRecord {
	r := AuditRecord{Conversation: t.conversation, Messages: len(t.window), Fresh: t.fresh, Rejected: map[string]int{}}
	for i := range t.window {
		at := storage.TimeOf(t.window[i].at)
		if r.From == 0 || at < r.From {
			r.From = at
		}
		r.To = max(r.To, at)
		r.Tokens += tokensOf(t.window[i].text)
	}
	return r
}
