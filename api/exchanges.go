package api

import (
	"context"
	"encoding/hex"
	"math"
	"strings"
	"time"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// Exchange is the receipt of an exchange, with whose it was.
type Exchange struct {
	Tenant  string `json:"tenant"`
	App     string `json:"app"`
	Project string `json:"project"`
	User    string `json:"user"`
	Time    string `json:"time"`
	receipt.Receipt
	// Money is what the tokens cost; nil if no price is known for the model.
	Money *Money `json:"money,omitempty"`
	// Memories are the candidates as they are now; those that are gone are left
	// out. Only a single exchange has them.
	Memories []Memory `json:"memories,omitempty"`
	// Unrecallable are memories that match the question and are never recalled,
	// because they are superseded or in quarantine, as of now.
	Unrecallable []Turned `json:"unrecallable,omitempty"`
}

// Exchanges is a page of receipts.
type Exchanges struct {
	Exchanges []Exchange `json:"exchanges"`
	Next      string     `json:"next,omitempty"`
}

func (s *questions) showExchange(r receipt.Receipt) Exchange {
	if r.Relevance > 0 {
		r.Gate = s.Recall.Gate
	}
	return Exchange{
		Tenant: identity.Show(r.Scope.Tenant), App: identity.Show(r.Scope.App), Project: identity.Show(r.Scope.Project), User: identity.Show(r.Scope.User), Time: stamp(r.At), Receipt: r,
		Money: s.moneyOf(&r),
	}
}

// ExchangeFilter selects receipts. Zero fields select everything.
type ExchangeFilter struct {
	Conversation string
	Status       string
	Model        string
	Memory       string // id of a memory that was inserted
	Client       string
	Upstream     string
	Since, Until string // as RFC 3339 or a day; Until is exclusive
}

// receiptID reports whether a text looks like the id of a receipt: x and 28
// hexadecimal digits.
func receiptID(id string) bool {
	digits, ok := strings.CutPrefix(id, "x")
	_, err := hex.DecodeString(digits)
	return ok && err == nil && len(digits) == 28
}

// Exchanges lists a user's receipts, newest first.
func (s *questions) Exchanges(ctx context.Context, p Principal, t Target, f ExchangeFilter, cursor string, limit int) (Exchanges, error) {
	out := Exchanges{Exchanges: []Exchange{}}
	if s.Receipts == nil {
		return out, ErrOff
	}
	chosen, limit, err := f.page(cursor, limit)
	if err != nil {
		return out, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return out, err
	}
	if chosen.until != 0 && (cursor == "" || cursor > firstID(chosen.until)) {
		cursor = firstID(chosen.until)
	}
	list, next, err := receipt.List(ctx, s.Store, scope, cursor, limit, chosen.matches)
	if err != nil {
		return out, err
	}
	for _, r := range list {
		out.Exchanges = append(out.Exchanges, s.showExchange(r))
	}
	out.Next = next
	return out, nil
}

// Exchange returns one receipt with its memories.
func (s *questions) Exchange(ctx context.Context, p Principal, t Target, id string) (Exchange, error) {
	if s.Receipts == nil {
		return Exchange{}, ErrOff
	}
	if id == "" || len(id) > storage.MaxID {
		return Exchange{}, ErrNotFound
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return Exchange{}, err
	}
	r, err := receipt.Get(ctx, s.Store, scope, id)
	if err != nil {
		return Exchange{}, err
	}
	out := s.showExchange(r)
	for i := range r.Candidates {
		if m, err := s.Store.Memory(ctx, scope, r.Candidates[i].ID); err == nil && m.DeletedAt == 0 {
			out.Memories = append(out.Memories, s.show(&m))
		}
	}
	if r.Query != "" {
		if err := s.takeApart(ctx, &out.Receipt); err != nil {
			return Exchange{}, err
		}
		out.Unrecallable, err = s.unrecallable(ctx, scope, r.Query, r.At.Std())
	}
	return out, err
}

// takeApart fills in the parts of the candidates' scores by searching again.
// What was said since may have changed them; then the candidate says so.
func (s *questions) takeApart(ctx context.Context, r *receipt.Receipt) error {
	res, err := patiently(ctx, s.Engine, recall.Request{
		Scope: r.Scope, Conversation: r.Conversation, Newest: r.Query, HumanOnly: true, Now: r.At.Std(), TopK: recall.MaxTopK, NoGate: true, Explain: true,
		BudgetTokens: 1 << 20, Unwanted: true,
	})
	if err != nil {
		return err
	}
	for i := range r.Candidates {
		c := &r.Candidates[i]
		for k := range res.Memories {
			m := &res.Memories[k]
			if m.Memory.ID != c.ID {
				continue
			}
			for _, p := range m.Parts {
				c.Parts = append(c.Parts, receipt.Part{Name: p.Name, Term: p.Term, Value: p.Value})
			}
			c.PartsNow = math.Abs(m.Score-c.Score) > 1e-6*math.Abs(c.Score)
		}
	}
	return nil
}

// Watch calls seen for each receipt of the principal's that comes and that the
// filter selects, until ctx ends or seen fails. alive is called once at the
// beginning, and in between, so that a caller can tell that its reader is still
// there.
func (s *questions) Watch(ctx context.Context, p Principal, t Target, f ExchangeFilter, alive func() error, seen func(Exchange) error) error {
	if s.Receipts == nil {
		return ErrOff
	}
	chosen, err := f.compile()
	if err != nil {
		return err
	}
	want, err := s.everyone(p, t)
	if err != nil {
		return err
	}
	receipts, stop, err := s.Receipts.Watch()
	if err != nil {
		return ErrBusy
	}
	defer stop()
	if err := alive(); err != nil { // from now on nothing is missed
		return err
	}
	tick := time.NewTicker(watchPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := alive(); err != nil {
				return err
			}
		case r := <-receipts:
			if covers(want, r.Scope) && chosen.matches(&r) {
				if err := seen(s.showExchange(r)); err != nil {
					return err
				}
			}
		}
	}
}

const watchPause = 15 * time.Second
