package client

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/recall/receipt"
)

// showReceipt writes all that is known of an exchange.
func showReceipt(c *Console, w *bufio.Writer, x *api.Exchange) {
	field(w, "exchange", x.ID)
	field(w, "at", second(x.Time)+" UTC")
	field(w, "of", scopeOf(whoseOf(x.Tenant, x.App, x.Project, x.User)))
	field(w, "status", statusOf(x))
	field(w, "model", x.Model)
	field(w, "upstream", strings.TrimSpace(x.Upstream+" "+x.Dialect))
	field(w, "client", x.Client)
	field(w, "conversation", x.Conversation)
	field(w, "turn", x.Turn)
	field(w, "question", x.Query)
	field(w, "tokens", tokensOf(&x.Usage))
	field(w, "times", timesOf(&x.Times))
	for i := range x.Inserted {
		showInsertion(w, &x.Inserted[i])
	}
	if len(x.Inserted) == 0 {
		fmt.Fprintln(w, "nothing was inserted")
	}
	showCandidates(c, w, x)
	if len(x.Unrecallable) > 0 {
		fmt.Fprintln(w, "these match as well and are never recalled, as of now:")
		cutRows(c, w, x.Unrecallable)
	}
}

func statusOf(x *api.Exchange) string {
	if x.Code == 0 {
		return x.Status + ", the client left before the answer"
	}
	return fmt.Sprintf("%s, answered %d", x.Status, x.Code)
}

func tokensOf(u *receipt.Usage) string {
	var out []string
	for _, part := range []struct {
		n    int64
		name string
	}{
		{u.Input, "in"}, {u.Output, "out"}, {u.CacheRead, "from the prompt cache"}, {u.CacheWrite, "written to it"},
		{u.Added, "inserted (about)"}, {u.Saved, "saved by the cache"},
	} {
		if part.n != 0 {
			out = append(out, fmt.Sprintf("%d %s", part.n, part.name))
		}
	}
	return strings.Join(out, ", ")
}

func timesOf(t *receipt.Times) string {
	var out []string
	for _, part := range []struct {
		n    int64
		name string
	}{{t.Recall, "search"}, {t.Plan, "before it was sent"}, {t.FirstByte, "to the first byte"}, {t.Total, "in all"}} {
		if part.n != 0 {
			out = append(out, micros(part.n)+" "+part.name)
		}
	}
	return strings.Join(out, ", ")
}

// showInsertion writes one block as it was inserted.
func showInsertion(w *bufio.Writer, in *receipt.Insertion) {
	what := "inserted"
	if in.Replayed {
		what = "repeated from before"
	}
	where := fmt.Sprintf("at message %d", in.Message)
	if in.Offset >= 0 {
		where += fmt.Sprintf(", byte %d of the request", in.Offset)
	}
	fmt.Fprintf(w, "%s, %d bytes (%s, %s):\n", what, len(in.Text), OneLine(in.Placement), where)
	block(w, "  ", in.Text)
}

// showCandidates writes what matched, and what became of each.
func showCandidates(c *Console, w *bufio.Writer, x *api.Exchange) {
	if len(x.Candidates) == 0 {
		return
	}
	fmt.Fprintf(w, "candidates: %d memories matched, relevance %.2f", x.Considered, x.Relevance)
	if x.Gate > 0 {
		fmt.Fprintf(w, ", the gate is at %.2f", x.Gate)
	}
	if x.Vectors != "" {
		fmt.Fprintf(w, ", vectors %s", OneLine(x.Vectors))
	}
	fmt.Fprintln(w)
	texts := map[string]*api.Memory{}
	for i := range x.Memories {
		texts[x.Memories[i].ID] = &x.Memories[i]
	}
	rows := c.table(w, "score", "id", "what became of it", "text")
	for i := range x.Candidates {
		cand := &x.Candidates[i]
		what := "inserted"
		if !cand.Inserted {
			what = reasonOf(cand.Reason)
		}
		text := "(it is gone)"
		if m := texts[cand.ID]; m != nil {
			text = m.Text
		}
		note := ""
		if len(cand.Parts) > 0 {
			parts := make([]api.Part, len(cand.Parts))
			for i, p := range cand.Parts {
				parts[i] = api.Part(p)
			}
			note = partsOf(parts)
		}
		rows.addWith(note, score(cand.Score), cand.ID, what, text)
	}
	rows.flush()
}
