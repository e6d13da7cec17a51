package rest

import (
	"fmt"
	"net/http"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/persist"
)

func (c *call) exchanges() error {
	limit, err := request.Number(c.r, "limit")
	if err != nil {
		return err
	}
	page, err := c.service.Exchanges(c.r.Context(), c.p, c.t, c.exchangeFilter(), c.r.URL.Query().Get("cursor"), limit)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}

func (c *call) exchangeFilter() api.ExchangeFilter {
	q := c.r.URL.Query()
	return api.ExchangeFilter{
		Conversation: q.Get("conversation"), Status: q.Get("status"), Model: q.Get("model"), Memory: q.Get("memory"),
		Client: q.Get("client"), Upstream: q.Get("upstream"), Since: q.Get("since"), Until: q.Get("until"),
	}
}

func (c *call) recent() error {
	limit, err := request.Number(c.r, "limit")
	if err != nil {
		return err
	}
	page, err := c.service.Recent(c.r.Context(), c.p, c.t, c.exchangeFilter(), c.r.URL.Query().Get("cursor"), limit)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}

func (c *call) said() error {
	limit, err := request.Number(c.r, "limit")
	if err != nil {
		return err
	}
	said, err := c.service.Said(c.r.Context(), c.p, c.t, c.r.PathValue("id"), limit)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, said)
}

func (c *call) benefit() error {
	q := c.r.URL.Query()
	b, err := c.service.Benefit(c.r.Context(), c.p, c.t, api.BenefitQuestion{
		Since: q.Get("since"), Until: q.Get("until"), Model: q.Get("model"), Client: q.Get("client"),
	})
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, b)
}

func (c *call) exchange() error {
	x, err := c.service.Exchange(c.r.Context(), c.p, c.t, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, x)
}

// watch streams receipts as server-sent events named exchange.
func (c *call) watch() error {
	flush := http.NewResponseController(c.w)
	begun := false
	send := func(text string) error {
		if !begun {
			begun = true
			c.w.Header().Set("Content-Type", "text/event-stream")
			c.w.WriteHeader(http.StatusOK)
		}
		if _, err := fmt.Fprint(c.w, text); err != nil {
			return err
		}
		return flush.Flush()
	}
	err := c.service.Watch(c.r.Context(), c.p, c.t, c.exchangeFilter(), func() error { return send(": alive\n\n") }, func(x api.Exchange) error {
		data, err := request.Encode(&x)
		if err != nil {
			return err
		}
		return send(fmt.Sprintf("id: %s\nevent: exchange\ndata: %s\n", x.ID, data))
	})
	if begun {
		return nil
	}
	return err
}

func (c *call) metrics() error {
	m, err := c.service.Metrics(c.r.Context(), c.p)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, m)
}

// audit is one audit as the contract names its fields.
type audit struct {
	At           string         `json:"at"`
	Conversation string         `json:"conversation"`
	Messages     int            `json:"messages"`
	Candidates   int            `json:"candidates"`
	MeanScore    float64        `json:"mean_score"`
	BestScore    float64        `json:"best_score"`
	Saved        int            `json:"saved"`
	Superseded   int            `json:"superseded"`
	Reinforced   int            `json:"reinforced"`
	Quarantined  int            `json:"quarantined"`
	Rejected     map[string]int `json:"rejected"`
	TookMicros   int64          `json:"took_us"`
}

func auditsOf(list []persist.AuditRecord) []audit {
	out := make([]audit, 0, len(list))
	for i := range list {
		r := &list[i]
		a := audit{
			r.At.Std().Format("2006-01-02T15:04:05.000Z07:00"), r.Conversation, r.Messages, r.Candidates, r.Mean, r.Best, r.Saved, r.Superseded,
			r.Reinforced, r.Quarantined, r.Rejected, r.TookMicros,
		}
		if a.Rejected == nil {
			a.Rejected = map[string]int{}
		}
		out = append(out, a)
	}
	return out
}
