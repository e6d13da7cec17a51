package persist

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Overview is an aggregate of what is known of a user, for callers that build a context of their own.
type Overview struct {
	// Facts are current and not in quarantine, those of the highest worth first.
	Facts []storage.Memory
	// Conversations are the newest ones.
	Conversations []Summary
	// Known counts facts by sort: name, preference, decision, goal, fact.
	Known map[string]int
	// Superseded, Quarantined and Episodes count what is not among Facts.
	Superseded, Quarantined, Episodes int
}

// OverviewLimits bound an [Overview]; 0 means the default: 50 facts, 10 conversations.
type OverviewLimits struct{ Facts, Conversations int }

// Overview reads a scope's memory and aggregates it. It costs a scan of the scope.
func (p *Pipeline) Overview(ctx context.Context, scope storage.Scope, limits OverviewLimits) (Overview, error) {
	limits.Facts, limits.Conversations = cmp.Or(limits.Facts, 50), cmp.Or(limits.Conversations, 10)
	out := Overview{Known: map[string]int{}}
	now := storage.TimeOf(time.Now())
	type weighed struct {
		m     storage.Memory
		worth float64
	}
	var facts []weighed
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
			facts = append(facts, weighed{*m, factOf(m).worth(now, p.cfg.Facts.HalfLife)})
			if len(m.Tags) > 0 {
				out.Known[m.Tags[0]]++
			}
		}
	})
	if err != nil {
		return Overview{}, err
	}
	slices.SortStableFunc(facts, func(a, b weighed) int { return cmp.Compare(b.worth, a.worth) })
	for _, f := range facts[:min(len(facts), limits.Facts)] {
		out.Facts = append(out.Facts, f.m)
	}
	if out.Conversations, err = p.Summaries(ctx, scope); err != nil {
		return Overview{}, err
	}
	out.Conversations = out.Conversations[:min(len(out.Conversations), limits.Conversations)]
	return out, nil
}

// Contradiction is two statements that can't both hold: the newer one does.
type Contradiction struct {
	Newer, Older storage.Memory
	// Opposite says that they are each other's negation; else they give one subject two values.
	Opposite bool
}

// Contradictions lists the pairs of which one superseded the other, newest first. It costs a scan of the scope's facts.
func (p *Pipeline) Contradictions(ctx context.Context, scope storage.Scope) ([]Contradiction, error) {
	byID := map[string]storage.Memory{}
	err := p.eachMemory(ctx, scope, storage.Query{Kinds: []storage.Kind{storage.KindFact}}, func(m *storage.Memory) { byID[m.ID] = *m })
	if err != nil {
		return nil, err
	}
	var out []Contradiction
	for _, older := range byID {
		if newer, ok := byID[older.SupersededBy]; ok {
			out = append(out, Contradiction{Newer: newer, Older: older, Opposite: slices.Contains(newer.Tags, tagContradicts+older.ID)})
		}
	}
	slices.SortFunc(out, func(a, b Contradiction) int {
		return cmp.Or(cmp.Compare(b.Newer.EventTime, a.Newer.EventTime), strings.Compare(a.Older.ID, b.Older.ID))
	})
	return out, nil
}
