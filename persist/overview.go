package persist

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// Overview aggregates what is known of a user, for callers that build a context
// of their own.
type Overview struct {
	// Facts are current and not quarantined, those of the highest value first.
	Facts []storage.Memory
	// Conversations are the newest ones.
	Conversations []extract.Summary
	// Known counts facts by kind: name, preference, decision, goal, fact.
	Known map[string]int
	// Superseded, Quarantined and Episodes count what is not among Facts.
	Superseded, Quarantined, Episodes int
}

// factKinds are the kinds of facts that [Overview] counts.
var factKinds = []string{"name", "preference", "decision", "goal", "fact"}

// OverviewLimits limit an [Overview]; 0 means the default: 50 facts, 10
// conversations.
type OverviewLimits struct{ Facts, Conversations int }

// Overview reads a scope's memory and aggregates it. It costs a scan of the
// scope.
func (p *Pipeline) Overview(ctx context.Context, scope storage.Scope, limits OverviewLimits) (Overview, error) {
	limits.Facts, limits.Conversations = cmp.Or(limits.Facts, 50), cmp.Or(limits.Conversations, 10)
	out := Overview{Known: map[string]int{}}
	now := storage.Now()
	type weighed struct {
		m     storage.Memory
		value float64
	}
	var current []weighed
	err := p.eachMemory(ctx, scope, storage.Query{}, func(m *storage.Memory) {
		switch {
		case m.Kind == storage.KindEpisode:
			out.Episodes++
		case m.Kind != storage.KindFact || m.DeletedAt != 0:
		case m.Trust == 0:
			out.Quarantined++
		case m.SupersededBy != "" || m.ValidTo != 0:
			out.Superseded++
		default:
			current = append(current, weighed{*m, p.cfg.Facts.Value(m, now)})
			if len(m.Tags) > 0 && slices.Contains(factKinds, m.Tags[0]) {
				out.Known[m.Tags[0]]++
			}
		}
	})
	if err != nil {
		return Overview{}, err
	}
	slices.SortStableFunc(current, func(a, b weighed) int { return cmp.Compare(b.value, a.value) })
	for _, f := range current[:min(len(current), limits.Facts)] {
		out.Facts = append(out.Facts, f.m)
	}
	if out.Conversations, err = p.Summaries(ctx, scope); err != nil {
		return Overview{}, err
	}
	out.Conversations = out.Conversations[:min(len(out.Conversations), limits.Conversations)]
	return out, nil
}

// Contradiction is two statements that can't both hold; the newer one does.
type Contradiction struct {
	Newer, Older storage.Memory
	// Opposite reports that one is the negation of the other; otherwise they
	// give one subject two values.
	Opposite bool
}

// Contradictions returns the pairs of which one superseded the other, newest
// first. It costs a scan of the scope's facts.
func (p *Pipeline) Contradictions(ctx context.Context, scope storage.Scope) ([]Contradiction, error) {
	byID := map[string]storage.Memory{}
	err := p.eachMemory(ctx, scope, storage.Query{Kinds: []storage.Kind{storage.KindFact}}, func(m *storage.Memory) { byID[m.ID] = *m })
	if err != nil {
		return nil, err
	}
	var out []Contradiction
	for _, older := range byID {
		if newer, ok := byID[older.SupersededBy]; ok {
			out = append(out, Contradiction{Newer: newer, Older: older, Opposite: facts.Contradicts(&newer, &older)})
		}
	}
	slices.SortFunc(out, func(a, b Contradiction) int {
		return cmp.Or(cmp.Compare(b.Newer.EventTime, a.Newer.EventTime), strings.Compare(a.Older.ID, b.Older.ID))
	})
	return out, nil
}
