package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// Exchanges shows the receipts of exchanges: what memory did in each.
type Exchanges struct {
	Conversation, Status, Model string
	Memory                      string // id of one that was inserted
	Limit                       int    // the newest, of all users together
}

// Run implements [Verb].
func (v *Exchanges) Run(ctx context.Context, s *Session) error {
	if v.Limit < 1 || v.Limit > maxListed {
		return UsageError(fmt.Sprintf("--limit is 1 to %d", maxListed))
	}
	memory, err := s.fullID(ctx, v.Memory, false)
	if err != nil {
		return err
	}
	q := limited(min(v.Limit, maxPage))
	for name, value := range map[string]string{"conversation": v.Conversation, "status": v.Status, "model": v.Model, "memory": memory} {
		if value != "" {
			q.Set(name, value)
		}
	}
	type receipt struct {
		raw json.RawMessage
		x   api.Exchange
	}
	var all []receipt
	_, err = s.eachScope(ctx, func(t api.Target, _ json.RawMessage) error {
		n := 0
		return s.each(ctx, ask{path: "/v1/exchanges", query: q, whose: &t}, func(raw json.RawMessage) error {
			r := receipt{raw: raw}
			if err := json.Unmarshal(raw, &r.x); err != nil {
				return err
			}
			all = append(all, r)
			if n++; n == v.Limit {
				return errEnough
			}
			return nil
		}, nil)
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b receipt) int { return cmp.Or(cmp.Compare(a.x.At, b.x.At), strings.Compare(a.x.ID, b.x.ID)) })
	w := bufio.NewWriter(s.Out)
	rows := s.exchangeTable(w)
	for i := max(0, len(all)-v.Limit); i < len(all); i++ {
		if s.JSON {
			err = writeRaw(w, all[i].raw)
		} else {
			rows.addExchange(&all[i].x)
		}
		if err != nil {
			return err
		}
	}
	rows.flush()
	return w.Flush()
}

// exchangeTable is a table of exchanges.
type exchangeTable struct{ *table }

func (c *Console) exchangeTable(w *bufio.Writer) exchangeTable {
	return exchangeTable{c.table(w, "time", "id", "user", "status", "inserted", "model", "question")}
}

func (t exchangeTable) addExchange(x *api.Exchange) {
	inserted := map[string]bool{}
	for i := range x.Inserted {
		for _, span := range x.Inserted[i].Spans {
			inserted[span.ID] = true
		}
	}
	t.add(second(x.Time), x.ID, x.User, x.Status, fmt.Sprintf("%d memories", len(inserted)), x.Model, x.Query)
}

// Follow shows exchanges as they come.
type Follow struct{}

// Run implements [Verb]. It ends when ctx does.
func (v *Follow) Run(ctx context.Context, s *Session) error {
	res, err := s.open(ctx, ask{method: http.MethodGet, path: "/v1/exchanges/watch"})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	w := bufio.NewWriter(s.Out)
	rows := s.exchangeTable(w)
	for {
		line, err := lines.ReadBytes('\n')
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return errors.New("the stream has ended: Remora was stopped, or the connection broke")
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		if s.JSON {
			err = s.raw(json.RawMessage(data))
		} else {
			var x api.Exchange
			if err := json.Unmarshal(data, &x); err != nil {
				return err
			}
			rows.addExchange(&x)
			rows.flush()
			err = w.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// Exchange shows one receipt.
type Exchange struct{ ID string }

// Run implements [Verb].
func (v *Exchange) Run(ctx context.Context, s *Session) error {
	raw, err := s.receipt(ctx, v.ID)
	if err != nil {
		return named(err, v.ID)
	}
	if s.JSON {
		return s.raw(raw)
	}
	var x api.Exchange
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	w := bufio.NewWriter(s.Out)
	showReceipt(s.Console, w, &x)
	return w.Flush()
}

// receipt finds a receipt, of whomever it is.
func (c *Client) receipt(ctx context.Context, id string) (raw json.RawMessage, err error) {
	read := func(t *api.Target) error {
		return c.call(ctx, ask{method: http.MethodGet, path: "/v1/exchanges/" + url.PathEscape(id), whose: t}, &raw)
	}
	err = read(nil)
	if _, ok := errors.AsType[*api.FieldError](err); !ok && !errors.Is(err, api.ErrNotFound) { // the default is nobody, or somebody else
		return raw, err
	}
	err = api.ErrNotFound
	_, failed := c.eachScope(ctx, func(t api.Target, _ json.RawMessage) error {
		if found := read(&t); !errors.Is(found, api.ErrNotFound) {
			err = found
			return errEnough
		}
		return nil
	})
	if failed != nil {
		err = failed
	}
	return raw, err
}

// second returns a time as answers have it, to the second.
func second(at string) string {
	if len(at) < len("2006-01-02T15:04:05") {
		return at
	}
	return at[:10] + " " + at[11:19]
}
