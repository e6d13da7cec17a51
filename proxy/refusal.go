package proxy

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// refusalReason is what an upstream says about why it refused a request. The
// zero value is an unexplained refusal.
type refusalReason struct {
	template bool // the chat template, see dialect.TemplateRefusal
	length   bool // the context length, see dialect.ContextLength
	content  bool // the content, see dialect.ContentRefusal
}

// retryRefused examines the answer to an enriched request. If the upstream
// refuses it, the original bytes are sent once, and their answer is the
// client's.
func (x *httpExchange) retryRefused(resp *http.Response) *http.Response {
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError:
	default:
		if resp.StatusCode/100 == 2 && streamed(resp.Header) {
			return x.retryRefusedStream(resp)
		}
		return resp
	}
	resp, head, _ := peekResponse(x.h, resp, refusalTimeout, nil)
	why := x.readRefusal(resp, head)
	if resp.StatusCode == http.StatusInternalServerError && !why.template && !why.length {
		return resp
	}
	original, ok := x.sendOriginal(resp)
	if ok && original.StatusCode/100 == 2 {
		x.reject(why)
	}
	return original
}

// sendOriginal returns the answer to the original bytes. ok is false if there
// is none, and the refusal is returned.
func (x *httpExchange) sendOriginal(refused *http.Response) (resp *http.Response, ok bool) {
	resp, err := x.roundTrip(x.repairer().edits(nil, x.plan.repairs))
	if err != nil {
		return refused, false
	}
	_ = refused.Body.Close()
	x.h.stats.Retries.Add(1)
	x.plan.status, x.plan.memories = StatusRejected, 0
	return resp, true
}

// readRefusal reads the beginning of a refusal. One that can't be read is
// unexplained.
func (x *exchange) readRefusal(resp *http.Response, head []byte) (why refusalReason) {
	defer x.h.guard("read refusal", nil)
	why.length = resp.StatusCode == http.StatusRequestEntityTooLarge
	text, err := decodeAnswer(resp.Header, head, maxPeek)
	if err != nil {
		return why
	}
	return refusalReason{
		template: dialect.TemplateRefusal(text),
		length:   why.length || dialect.ContextLength(resp.StatusCode, text),
		content:  dialect.ContentRefusal(text),
	}
}

// reject records that the upstream accepted the request without its blocks. It
// has seen the bare conversation, so that is what later requests must repeat.
// An unexplained refusal counts against the placement, a template's for
// certain.
func (x *exchange) reject(why refusalReason) {
	if x.api.counts {
		return
	}
	x.plan.walk.Reject()
	if why.template || why == (refusalReason{}) {
		x.h.placements.noteRefusal(x.plan.target, x.plan.turn.Conversation, why.template)
	}
}

// withdraw records that the blocks are not sent, for a reason of our own.
func (x *exchange) withdraw() { x.reject(refusalReason{content: true}) }

// firstEventTimeout is how long the head of a stream waits for the first event,
// which may refuse a request with blocks in it. A server renders its template
// before the model reads a word, so a refusal comes within milliseconds of the
// head. A model's first word may take minutes, and clients give up on a server
// without a head after about ten seconds. The stream waits only until a model
// is known to accept blocks; after the timeout it passes on, and a refusal in
// it is the client's.
const firstEventTimeout = 2 * time.Second

// firstEventWatch is what is still to be learned from the first event of the
// stream that goes to the client.
type firstEventWatch struct {
	expect expectation
	resp   *http.Response
	head   []byte // what has come of the event
}

// expectation is what it means if the first event is not an error.
type expectation uint8

const (
	expectNothing  expectation = iota
	expectAccepted             // the model accepts a block there
	expectStill                // the same, as was known; a refusal means that it no longer does
	expectOriginal             // a template refused the block, and accepts the original
)

// firstEvent classifies the first event of a stream.
type firstEvent uint8

const (
	eventIncomplete firstEvent = iota // it has not come whole
	eventOK                           // not an error
	eventError                        // another error
	eventTemplate                     // see dialect.TemplateRefusal
	eventLength                       // see dialect.ContextLength
)

// retryRefusedStream is retryRefused for a stream: servers that send their head
// at once refuse in its first event.
func (x *httpExchange) retryRefusedStream(resp *http.Response) *http.Response {
	at := x.modelPlacement()
	if x.h.placements.isAccepted(at) {
		x.first = firstEventWatch{expect: expectStill, resp: resp}
		return resp
	}
	resp, event := x.awaitFirstEvent(resp)
	switch event {
	case eventTemplate, eventLength:
	case eventOK:
		x.h.placements.noteAccepted(at)
		return resp
	case eventIncomplete:
		x.first = firstEventWatch{expect: expectAccepted, resp: resp}
		return resp
	default:
		return resp
	}
	original, ok := x.sendOriginal(resp)
	if !ok || original.StatusCode/100 != 2 {
		return original
	}
	bare := eventOK
	if streamed(original.Header) {
		original, bare = x.awaitFirstEvent(original)
	}
	switch bare {
	case eventOK:
		x.reject(refusalReason{template: event == eventTemplate, length: event == eventLength})
	case eventIncomplete:
		x.withdraw()
		if event == eventTemplate {
			x.first = firstEventWatch{expect: expectOriginal, resp: original}
		}
	}
	return original
}

// modelPlacement returns where this request's blocks are. One without any may
// have the rule in its system prompt.
func (x *exchange) modelPlacement() modelPlacement {
	if x.plan.memories == 0 {
		return modelPlacement{x.plan.target.model, dialect.System}
	}
	return modelPlacement{x.plan.target.model, x.plan.target.placement}
}

// awaitFirstEvent waits for the first event of a stream, for at most
// firstEventTimeout. Encoded bytes are not held back until it is whole.
func (x *exchange) awaitFirstEvent(resp *http.Response) (whole *http.Response, event firstEvent) {
	whole, head, ended := peekResponse(x.h, resp, firstEventTimeout, func(head []byte) bool {
		return len(head) > 0 && encoded(resp.Header) || x.readFirstEvent(resp, head, false) != eventIncomplete
	})
	return whole, x.readFirstEvent(resp, head, ended)
}

// readFirstEvent classifies the beginning of a stream. An event that is longer
// than maxPeek is not a refusal.
func (x *exchange) readFirstEvent(resp *http.Response, head []byte, ended bool) (event firstEvent) {
	event = eventError
	defer x.h.guard("read first event", nil)
	plain := decodeBeginning(resp.Header, head, maxPeek)
	text, failed, ok := dialect.FirstEvent(plain, strings.EqualFold(mediaType(resp.Header), mediaLines), ended)
	switch {
	case !ok && (ended || len(head) < maxPeek):
		return eventIncomplete
	case !failed:
		return eventOK
	case dialect.TemplateRefusal(text):
		return eventTemplate
	case dialect.ContextLength(http.StatusBadRequest, text):
		return eventLength
	}
	return eventError
}

// learnFirstEvent is given the stream as it passes to the client, from its
// beginning, until the first event has been classified.
func (x *httpExchange) learnFirstEvent(p []byte) {
	f := &x.first
	if f.expect == expectStill {
		// Another model may use the name now, or the context be full. The
		// refusal has passed; the next stream waits for its first event.
		if mayBeError(p) && x.readFirstEvent(f.resp, p, false) >= eventTemplate {
			x.h.placements.forgetAccepted(x.modelPlacement())
		}
		*f = firstEventWatch{}
		return
	}
	f.head = append(f.head, p[:min(len(p), maxPeek-len(f.head))]...)
	event := x.readFirstEvent(f.resp, f.head, false)
	if event == eventIncomplete {
		return
	}
	if event == eventOK && f.expect == expectOriginal {
		x.h.placements.noteRefusal(x.plan.target, x.plan.turn.Conversation, true)
	} else if event == eventOK {
		x.h.placements.noteAccepted(x.modelPlacement())
	}
	*f = firstEventWatch{}
}

// mayBeError reports, at next to no cost, whether p is worth reading as an
// error. Many events say that they have none.
func mayBeError(p []byte) bool {
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
