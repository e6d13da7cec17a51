package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/api"
)

const (
	// missedPage bounds the exchanges that a stream looks at for what was
	// missed. If more have come, the browser has to read the list again.
	missedPage = 200
	// missedSlack is how long an exchange that has ended may take to be kept.
	missedSlack = 5 * time.Second
)

// streamLive streams exchanges as server-sent events named exchange: the id is the
// receipt's, the data a row of the list. An event named relist says that more
// was missed than is sent.
func streamLive(c *call) error {
	s := &liveStream{call: c, filter: liveFilterOf(c.r.URL.Query()).exchanges(), sent: map[string]bool{}}
	s.after = c.r.Header.Get("Last-Event-ID")
	if s.after == "" {
		s.after = c.r.URL.Query().Get("after")
	}
	err := c.service.Watch(c.ctx, c.p, c.whose, s.filter, s.alive, func(x api.Exchange) error { return s.show(&x) })
	if s.alives > 0 || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// liveStream is one browser that watches exchanges.
type liveStream struct {
	*call
	filter api.ExchangeFilter
	after  string          // the last exchange that the browser has, "" = those of its list
	sent   map[string]bool // ids; nil = it is not needed any more
	alives int
}

// alive is called once when nothing is missed any more, and then in between.
// What came before is looked for then, and once more the next time: a receipt
// that was on its way into the store the first time is there.
func (s *liveStream) alive() error {
	if err := s.authenticate(); err != nil { // the session may have ended
		return err
	}
	if s.alives++; s.alives == 1 {
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("Cache-Control", "no-store")
		s.w.WriteHeader(http.StatusOK)
	}
	if err := s.flush(": alive\n\n"); err != nil {
		return err
	}
	switch {
	case s.alives > 2:
		return nil
	case s.alives == 2:
		defer func() { s.sent = nil }()
	}
	return s.sendMissed()
}

// sendMissed sends what came between the browser's list, or the last exchange
// that it has, and now.
func (s *liveStream) sendMissed() error {
	since, err := strconv.ParseInt(s.r.URL.Query().Get("since"), 10, 64)
	if err != nil && s.after == "" {
		return nil
	}
	page, err := s.service.Recent(s.ctx, s.p, s.whose, s.filter, "", missedPage)
	if err != nil {
		return err
	}
	list := page.Exchanges
	if s.after != "" {
		since = startOf(s.after)
		for i := range list {
			if list[i].ID == s.after {
				since = endOf(&list[i])
			}
		}
	}
	since -= missedSlack.Milliseconds()
	if n := len(list); s.after != "" && page.Next != "" && n > 0 && int64(list[n-1].At) > since {
		return s.flush("event: relist\ndata:\n\n")
	}
	for i := range slices.Backward(list) {
		if x := &list[i]; endOf(x) >= since && !s.sent[x.ID] {
			if err := s.show(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// endOf returns when an exchange was over, in milliseconds. Receipts come in
// that order, and are listed by when exchanges began.
func endOf(x *api.Exchange) int64 { return int64(x.At) + x.Times.Total/1000 }

// startOf returns the time in a receipt's id, 0 if it has none.
func startOf(id string) int64 {
	const digits = 12
	if len(id) <= digits {
		return 0
	}
	at, err := strconv.ParseInt(id[1:1+digits], 16, 64)
	if err != nil {
		return 0
	}
	return at
}

func (s *liveStream) show(x *api.Exchange) error {
	var row, event bytes.Buffer
	if err := s.views["live"].ExecuteTemplate(&row, "exchange-row", exchangeRow{Exchange: *x, New: true}); err != nil {
		return errors.New("a template failed") // the error may quote what was said
	}
	if s.sent != nil {
		s.sent[x.ID] = true
	}
	writeEvent(&event, "exchange", x.ID, strings.TrimSpace(row.String()))
	return s.flush(event.String())
}

func (s *liveStream) flush(text string) error {
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

// newlines are what ends a line in a stream of events.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// writeEvent writes one server-sent event. Each line of the data gets a field of
// its own; the browser puts them together again with newlines between.
func writeEvent(w *bytes.Buffer, event, id, data string) {
	fmt.Fprintf(w, "id: %s\nevent: %s\n", oneLine(id), oneLine(event))
	for line := range strings.SplitSeq(newlines.Replace(data), "\n") {
		w.WriteString("data: " + line + "\n")
	}
	w.WriteByte('\n')
}

// oneLine leaves out what would end a field.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' || r == 0 {
			return -1
		}
		return r
	}, text)
}
