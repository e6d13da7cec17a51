package proxy

import (
	"slices"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// ReceiptRecorder keeps the receipts of exchanges. Record must not block;
// the receipt is its own from then on. It redacts Query before anybody sees it.
type ReceiptRecorder interface {
	Record(r *receipt.Receipt)
}

// newReceipt returns the receipt of an exchange whose user is known, nil if
// none is kept.
func newReceipt(x *exchange, scope storage.Scope) *receipt.Receipt {
	if x.h.deps.Receipts == nil || x.api.counts {
		return nil
	}
	return &receipt.Receipt{
		At: storage.TimeOf(x.start), Scope: scope, Client: x.read.client.Name, Upstream: x.up.Name, Dialect: x.api.d.Name(), Model: x.read.req.Model,
	}
}

// noteSearch puts what recall found into a receipt, which may be nil. injects
// reports whether what was found may be inserted.
func noteSearch(r *receipt.Receipt, injects bool, words string, res *recall.Result, took time.Duration, block *fence.Block) {
	if r == nil {
		return
	}
	r.Query = string(append([]byte(nil), words[:min(len(words), receipt.MaxQuery+receipt.QueryOverhang)]...)) // words may be part of the body
	r.Considered, r.Relevance, r.Vectors, r.Times.Recall = res.Considered, res.Relevance, string(res.Vectors), took.Microseconds()
	shown := map[string]bool{}
	for _, s := range block.Spans {
		shown[s.ID] = true
	}
	r.Candidates = make([]receipt.Candidate, 0, len(res.Memories)+len(res.Cut))
	for i := range res.Memories {
		m := &res.Memories[i]
		c := receipt.Candidate{ID: string([]byte(m.Memory.ID)), Kind: string(m.Memory.Kind), Score: m.Score, Inserted: shown[m.Memory.ID]}
		if !c.Inserted {
			c.Reason = string(recall.CutBudget)
			if !injects {
				c.Reason = string(StatusObserved)
			}
		}
		r.Candidates = append(r.Candidates, c)
	}
	for _, c := range res.Cut {
		if slices.ContainsFunc(r.Candidates, func(o receipt.Candidate) bool { return o.ID == c.ID }) {
			continue // found in another way
		}
		r.Candidates = append(r.Candidates, receipt.Candidate{ID: c.ID, Score: c.Score, Reason: string(c.Reason)})
	}
}

// noteInsertion puts an inserted block into a receipt, which may be nil.
func noteInsertion(r *receipt.Receipt, turn int, p dialect.Placement, b fence.Block, at int, replayed bool) {
	if r == nil {
		return
	}
	r.Inserted = append(r.Inserted, receipt.Insertion{
		Placement: p.String(), Message: turn, Offset: at, Replayed: replayed, Text: b.Text, Spans: b.Spans,
	})
	r.Usage.Added += int64(len(b.Text)+3) / 4
}

// finishReceipt fills in how the exchange ended and returns the receipt, nil if
// there is none. It is called once.
func finishReceipt(x *exchange, out *relayed) *receipt.Receipt {
	r := x.plan.receipt
	x.plan.receipt = nil
	if r == nil || !x.rights.persist && len(r.Candidates)+len(r.Inserted) == 0 { // nobody is remembered for a receipt alone
		return nil
	}
	r.Status, r.Code, r.Conversation = string(x.plan.status), out.Status, x.plan.turn.Conversation
	r.Turn = x.plan.turn.Chain
	if x.plan.memories == 0 {
		r.Inserted, r.Usage.Added = nil, 0
	}
	went := map[string]bool{} // what was found may have had no place, or have been forgotten meanwhile
	for _, id := range r.Memories() {
		went[id] = true
	}
	for i := range r.Candidates {
		if c := &r.Candidates[i]; c.Inserted && !went[c.ID] {
			c.Inserted, c.Reason = false, string(x.plan.status)
		}
	}
	now := x.h.deps.Now()
	r.Times.Plan, r.Times.Total = x.plan.recallUS, now.Sub(x.start).Microseconds()
	if !out.FirstByte.IsZero() {
		r.Times.FirstByte = out.FirstByte.Sub(x.start).Microseconds()
	}
	return r
}

// recordReceipt hands a finished receipt to the recorder.
func (h *Handler) recordReceipt(r *receipt.Receipt) {
	if r != nil {
		h.deps.Receipts.Record(r)
	}
}
