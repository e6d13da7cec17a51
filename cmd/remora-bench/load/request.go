package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/prose"
)

// Slots of a request whose bytes change from request to request. Their lengths
// are fixed, so a request is patched in place and written with one call.
const (
	refLen      = 8   // letters that make every conversation and every newest message unique
	questionLen = 120 // the newest user message's words, padded with spaces
	userLen     = len("user-0000")
)

// benchKey takes the place of an upstream's credential.
const benchKey = "sk-bench-0123456789abcdef"

// replyScript tells the mock upstream how to answer. It is sent as the model's
// name, which every proxy passes on unchanged and which is at the front of the
// body.
type replyScript struct {
	latency time.Duration // before the first byte of the response
	events  int           // of a stream; 0 = a JSON response
	gap     time.Duration // between two events
}

const scriptPrefix = `{"model":"mock-`

func (s replyScript) model() string {
	return fmt.Sprintf("mock-%d-%d-%d", s.latency.Microseconds(), s.events, s.gap.Microseconds())
}

// parseReplyScript reads the script from the front of a body; ok is false where
// there is none.
func parseReplyScript(body []byte) (s replyScript, ok bool) {
	body, ok = bytes.CutPrefix(body, []byte(scriptPrefix))
	if !ok {
		return s, false
	}
	name, _, ok := bytes.Cut(body[:min(len(body), 64)], []byte(`"`))
	if !ok {
		return s, false
	}
	var values [3]int64
	for i := range values {
		var field []byte
		field, name, _ = bytes.Cut(name, []byte("-"))
		if values[i], ok = parseDigits(field); !ok {
			return s, false
		}
	}
	return replyScript{
		latency: time.Duration(values[0]) * time.Microsecond,
		events:  int(values[1]),
		gap:     time.Duration(values[2]) * time.Microsecond,
	}, true
}

// requestSpec describes the requests of a cell to one target.
type requestSpec struct {
	api    api
	host   string
	memory string // X-Remora-Memory; "" = the header is absent
	size   int    // of the body in bytes
	script replyScript
}

// requestTemplate is a whole request, head and body, and where its slots are.
// Users, questions and references are put in by a [requestBuffer], of which
// every connection has one.
type requestTemplate struct {
	raw      []byte
	user     int
	refs     []int
	question int
}

// minBody is the smallest body: in some dialects the fixed messages leave no
// room below it.
const minBody = 1 << 10

// newRequestTemplate builds a request of exactly spec.size body bytes: a system
// prompt, a history of user and assistant messages, and the newest user
// message. The unique reference is also in the first user message, so every
// request is a conversation of its own.
func newRequestTemplate(spec requestSpec, t *prose.Generator) (requestTemplate, error) {
	if spec.size < minBody {
		return requestTemplate{}, fmt.Errorf("body of %d bytes: must be at least %d", spec.size, minBody)
	}
	const refMark, questionMark = "@@REFMRK", "@@QUESTION"
	question := questionMark + strings.Repeat(" ", questionLen-len(questionMark))
	head := fmt.Sprintf(`{"model":%q`, spec.script.model())
	if spec.script.events > 0 {
		head += `,"stream":true`
	}
	before, after := spec.api.message("user")
	head += spec.api.opening + before + refMark + ` hello, `
	tail := before + question + ` (` + refMark + `)` + after + spec.api.closing
	body := head + requestHistory(spec.api, spec.size-len(head)-len(tail), t) + tail

	raw := "POST " + spec.api.path + " HTTP/1.1\r\n" +
		"Host: " + spec.host + "\r\n" +
		"User-Agent: remora-bench\r\n" +
		spec.api.auth +
		"Content-Type: application/json\r\n" +
		"Accept: application/json\r\n" +
		"X-Remora-User: " + fmt.Sprintf("user-%04d", 0) + "\r\n"
	user := len(raw) - len("\r\n") - userLen
	if spec.memory != "" {
		raw += "X-Remora-Memory: " + spec.memory + "\r\n"
	}
	raw += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body

	tpl := requestTemplate{raw: []byte(raw), user: user, question: strings.Index(raw, questionMark)}
	for at := 0; ; {
		i := strings.Index(raw[at:], refMark)
		if i < 0 {
			break
		}
		tpl.refs = append(tpl.refs, at+i)
		at += i + refLen
	}
	return tpl, nil
}

// requestHistory fills exactly size bytes: the rest of the first user message,
// then messages of assistant and user in turn up to an assistant's, with the
// comma that follows it. Long bodies have long messages, as the tool output and
// files in an agent's context are long: 64 messages at most.
func requestHistory(a api, size int, t *prose.Generator) string {
	each := max(200, size/64)
	var b strings.Builder
	_, closing := a.message("user")
	closing += ","
	b.WriteString(jsonText(t.Sentence()))
	b.WriteString(closing)
	for role := "assistant"; ; {
		opening, closing := a.message(role)
		closing += ","
		b.WriteString(opening)
		left := size - b.Len() - len(closing)
		if role == "assistant" && left < 3*each+1000 {
			b.WriteString(padText(left, t))
			b.WriteString(closing)
			return b.String()
		}
		b.WriteString(jsonText(t.Paragraph(each)))
		b.WriteString(closing)
		if role == "assistant" {
			role = "user"
		} else {
			role = "assistant"
		}
	}
}

// padText is exactly size bytes of escaped text.
func padText(size int, t *prose.Generator) string {
	// A cut through an escape would change the meaning of the byte after it.
	s := strings.TrimSuffix(jsonText(t.Paragraph(size))[:size], `\`)
	return s + strings.Repeat(".", size-len(s))
}

// jsonText returns s in JSON form, without the quotes.
func jsonText(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil { // strings always encode
		panic(err)
	}
	return string(quoted[1 : len(quoted)-1])
}

// requestBuffer is one connection's copy of a template.
type requestBuffer struct {
	tpl requestTemplate
	raw []byte
}

func (t requestTemplate) buffer() *requestBuffer {
	return &requestBuffer{tpl: t, raw: bytes.Clone(t.raw)}
}

// patch makes the buffer request number n: unique among the first 26^8 of a
// run, from the given user.
func (b *requestBuffer) patch(n uint64, user int, question string) []byte {
	for i := userLen - 1; i >= len("user-"); i-- {
		b.raw[b.tpl.user+i] = byte('0' + user%10)
		user /= 10
	}
	var ref [refLen]byte
	// Multiplying by a number prime to 26 spreads neighbours over all letters
	// and keeps them distinct.
	const space = 26 * 26 * 26 * 26 * 26 * 26 * 26 * 26
	n = n % space * 10_000_019 % space
	for i := range ref {
		ref[i] = byte('a' + n%26)
		n /= 26
	}
	for _, at := range b.tpl.refs {
		copy(b.raw[at:], ref[:])
	}
	slot := b.raw[b.tpl.question : b.tpl.question+questionLen]
	for i := copy(slot, question); i < len(slot); i++ {
		slot[i] = ' '
	}
	return b.raw
}
