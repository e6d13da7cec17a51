package proxy

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// openingTime is how long the head of a stream waits for the first event, which may be the refusal of a request with blocks in
// it. A server renders its template before the model reads a word, so a refusal comes within milliseconds of the head; a
// model's first word may take minutes, and clients give up on a server without a head in ten seconds or so. It is waited for
// until a model is known to take blocks. Over it, the stream passes on, and a refusal in it is the client's.
const openingTime = 2 * time.Second

// opening is what is still to be learned from the first event of the stream that goes to the client.
type opening struct {
	asks asks
	resp *http.Response
	head []byte // what has come of that event
}

// asks says what an event that is no error tells.
type asks uint8

const (
	asksNothing asks = iota
	asksTakes        // the model takes a block there
	asksStill        // the same, as was known; a refusal tells that it does so no more
	asksBare         // a template refused the block, and takes the original
)

// told is what a first event tells.
type told uint8

const (
	toldNothing  told = iota // it has not come whole
	toldWell                 // no error
	toldError                // one that is none of these
	toldTemplate             // as dialect.TemplateRefusal
	toldLength               // as dialect.ContextLength
)

// unharmedStream is unharmed for a stream: servers that send their head at once refuse in its first event.
func (x *exchange) unharmedStream(resp *http.Response) *http.Response {
	p := x.placed()
	if x.h.learned.takes(p) {
		x.opening = opening{asks: asksStill, resp: resp}
		return resp
	}
	resp, says := x.firstEvent(resp)
	switch says {
	case toldTemplate, toldLength:
	case toldWell:
		x.h.learned.took(p)
		return resp
	case toldNothing:
		x.opening = opening{asks: asksTakes, resp: resp}
		return resp
	default:
		return resp
	}
	original, ok := x.original(resp)
	if !ok || original.StatusCode/100 != 2 {
		return original
	}
	bare := toldWell
	if streamed(original.Header) {
		original, bare = x.firstEvent(original)
	}
	switch bare {
	case toldWell:
		x.rejected(says == toldTemplate, false)
	case toldNothing:
		x.rejected(false, false)
		if says == toldTemplate {
			x.opening = opening{asks: asksBare, resp: original}
		}
	}
	return original
}

// placed is where this request's blocks stand. One without any may have the rule in its system prompt.
func (x *exchange) placed() placed {
	if x.memories == 0 {
		return placed{x.splice.model, dialect.System}
	}
	return placed{x.splice.model, x.splice.placement}
}

// firstEvent waits for the first event of a stream, for openingTime at most. The encoded bytes that come first are not held.
func (x *exchange) firstEvent(resp *http.Response) (whole *http.Response, says told) {
	whole, head, ended := peekAnswer(x.h, resp, openingTime, func(head []byte) bool {
		return len(head) > 0 && encoded(resp.Header) || x.tells(resp, head, false) != toldNothing
	})
	return whole, x.tells(resp, head, ended)
}

// tells reads the beginning of a stream. An event that is longer than what is looked at is no refusal.
func (x *exchange) tells(resp *http.Response, head []byte, ended bool) (says told) {
	says = toldError
	defer x.h.guard("read first event", nil)
	plain := decodeBeginning(resp.Header, head, refusalPeek)
	event, failed, ok := dialect.FirstEvent(plain, strings.EqualFold(mediaType(resp.Header), mediaLines), ended)
	switch {
	case !ok && (ended || len(head) < refusalPeek):
		return toldNothing
	case !failed:
		return toldWell
	case dialect.TemplateRefusal(event):
		return toldTemplate
	case dialect.ContextLength(http.StatusBadRequest, event):
		return toldLength
	}
	return toldError
}

// opened is given what the client got of a stream, from its beginning, until asks is answered.
func (x *exchange) opened(p []byte) {
	o := &x.opening
	if o.asks == asksStill {
		// Another model may go by the name now, or the context be full. The refusal has passed; the next stream is looked at.
		if mayFail(p) && x.tells(o.resp, p, false) >= toldTemplate {
			x.h.learned.doubt(x.placed())
		}
		*o = opening{}
		return
	}
	o.head = append(o.head, p[:min(len(p), refusalPeek-len(o.head))]...)
	says := x.tells(o.resp, o.head, false)
	if says == toldNothing {
		return
	}
	if sp := x.splice; says == toldWell && o.asks == asksBare {
		x.h.learned.refused(sp.model, sp.scope, sp.placement, x.turn.Conversation, true)
	} else if says == toldWell {
		x.h.learned.took(x.placed())
	}
	*o = opening{}
}

// mayFail says at next to no cost whether it is worth reading that p is an error. Many events say that they have none.
func mayFail(p []byte) bool {
	for word := []byte("error"); ; {
		i := bytes.Index(p, word)
		if i < 0 {
			return false
		}
		if p = bytes.TrimLeft(p[i+len(word):], `": `); !bytes.HasPrefix(p, []byte("null")) {
			return true
		}
	}
}
