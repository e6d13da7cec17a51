package api

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// Said is what was said around an exchange, as far as it is remembered, oldest
// first. It is empty if the exchange belongs to no conversation.
type Said struct {
	Before []Memory `json:"before"`
	// Turn is what was said in the exchange itself. Exchanges of one turn, as
	// the steps of a tool loop are, have the same. It is empty until the answer
	// is stored, or if nothing of it is.
	Turn  []Memory `json:"turn"`
	After []Memory `json:"after"`
}

// Limits of Said.
const (
	defaultSaid = 20
	maxSaid     = 100 // passages before the exchange, and as many after it
	// turnDistance is how many passages before the time of an exchange are
	// searched for its turn, besides those that are asked for.
	turnDistance = 500
)

// Said returns the passages of an exchange's conversation around it, at most
// limit before and after it; 0 = the default. It looks at the newest maxScanned
// passages of the conversation.
//
// What a receipt and the passages of its turn have in common is the
// conversation, and that the receipt's Turn is the Provenance.Chain of the
// passages: the hash of the request up to its newest user message.
func (s *questions) Said(
	ctx context.Context, p Principal, t Target, exchangeID string, limit int,
) (Said, error) {
	out := Said{Before: []Memory{}, Turn: []Memory{}, After: []Memory{}}
	switch {
	case s.Receipts == nil:
		return out, ErrOff
	case !receiptID(exchangeID):
		return out, ErrNotFound
	case limit < 0 || limit > maxSaid:
		return out, invalid("limit", "must be 1..%d", maxSaid)
	}
	limit = cmp.Or(limit, defaultSaid)
	scope, err := s.scope(p, t)
	if err != nil {
		return out, err
	}
	r, err := receipt.Get(ctx, s.Store, scope, exchangeID)
	if err != nil || r.Conversation == "" {
		return out, err
	}
	around, err := s.passagesAround(ctx, &r, limit)
	if err != nil {
		return out, err
	}
	at := r.At
	if turn := slices.IndexFunc(around, func(m storage.Memory) bool { return ofTurn(&m, &r) }); turn >= 0 {
		at = around[turn].EventTime
	}
	for i := range around {
		switch m := &around[i]; {
		case ofTurn(m, &r):
			out.Turn = append(out.Turn, s.show(m))
		case m.EventTime < at:
			out.Before = append(out.Before, s.show(m))
		case len(out.After) < limit:
			out.After = append(out.After, s.show(m))
		}
	}
	out.Before = out.Before[max(0, len(out.Before)-limit):]
	return out, nil
}

func ofTurn(m *storage.Memory, r *receipt.Receipt) bool {
	return r.Turn != "" && m.Provenance.Chain == r.Turn
}

// passagesAround returns the passages of a receipt's conversation in order,
// from limit before the exchange on.
func (s *questions) passagesAround(
	ctx context.Context, r *receipt.Receipt, limit int,
) (out []storage.Memory, err error) {
	q := storage.Query{Kinds: []storage.Kind{storage.KindEpisode}, Conversation: r.Conversation, Newest: true}
	scanned, before, found := 0, 0, false
scan:
	for page, err := range storage.ScanPages(ctx, s.Store, r.Scope, q) {
		if err != nil {
			return nil, err
		}
		for i := range page.Memories {
			m := &page.Memories[i]
			scanned++
			switch {
			case m.DeletedAt != 0:
				continue
			case ofTurn(m, r):
				found, before = true, 0
			case m.EventTime < r.At:
				before++
			}
			out = append(out, *m)
			if before >= limit && (found || before >= limit+turnDistance) {
				break scan
			}
		}
		if scanned >= maxScanned {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b storage.Memory) int {
		return cmp.Or(
			cmp.Compare(a.EventTime, b.EventTime), strings.Compare(a.Provenance.Turn, b.Provenance.Turn),
			cmp.Compare(a.Provenance.Seq, b.Provenance.Seq),
		)
	})
	return out, nil
}
