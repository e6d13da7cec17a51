package proxy

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/ledger"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// assembler reads finished answers and hands the turns that they end to
// persistence, off the request path. Its queue is bounded in number by
// LimitsConfig.Assemblies and in bytes by the tees' budget; beyond that a turn
// is dropped and counted. Answers wait for assemblyDelay, so that several are
// read in a row, and few while the client that just got its answer asks again.
type assembler struct {
	h     *Handler
	queue chan *answer
	// submitted and done count answers, so that flush knows when those of now
	// have been read.
	submitted, done atomic.Int64
}

// answer is a finished exchange whose answer is still to be read.
type answer struct {
	d       dialect.Dialect
	header  http.Header
	tee     *tee
	turn    persist.Turn // without the answer and the id
	persist bool
	needed  bool          // by more than telemetry
	trace   *exchangeSpan // nil = not traced
	ended   time.Time
	cut     bool             // a side hung up, so the stream itself must show that it is complete
	sent    ledger.Sent      // where the answer is recorded
	system  ledger.Hash      // see ledger.SystemHash
	receipt *receipt.Receipt // nil = none
}

// streamed reports whether an answer is a stream of events or lines.
func streamed(h http.Header) bool {
	media := mediaType(h)
	return strings.EqualFold(media, "text/event-stream") || strings.EqualFold(media, mediaLines)
}

const mediaLines = "application/x-ndjson"

func mediaType(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.TrimSpace(media)
}

const assemblers = 2

// assemblyDelay is short compared with the fifth of a second after which a turn
// is searchable.
const assemblyDelay = 5 * time.Millisecond

func newAssembler(h *Handler) *assembler {
	return &assembler{h: h, queue: make(chan *answer, h.cfg.Limits.Assemblies)}
}

// submit never blocks. Answers that only telemetry needs leave half of the
// queue to the others.
func (a *assembler) submit(j *answer) {
	if j.needed || 2*len(a.queue) < cap(a.queue) {
		select {
		case a.queue <- j:
			a.submitted.Add(1)
			return
		default:
		}
	}
	a.missed(j, &a.h.stats.TurnsLost)
	a.h.recordReceipt(j.receipt)
	j.tee.release()
	j.trace.end(j.ended)
}

// run works until ctx has ended and the queue is empty.
func (a *assembler) run(ctx context.Context) {
	var wg sync.WaitGroup
	for range assemblers {
		wg.Go(func() {
			for {
				select {
				case j := <-a.queue:
					a.read(j)
					continue
				default:
				}
				select {
				case j := <-a.queue:
					if len(a.queue) < cap(a.queue)/8 {
						pause(ctx, assemblyDelay)
					}
					a.read(j)
				case <-ctx.Done():
					if len(a.queue) == 0 {
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// flush waits until the answers that were submitted before the call have been
// read.
func (a *assembler) flush(ctx context.Context) error {
	pause(ctx, 2*assemblyDelay) // an answer is submitted right after its client has got it
	for until := a.submitted.Load(); a.done.Load() < until; {
		if pause(ctx, assemblyDelay); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (a *assembler) read(j *answer) {
	defer a.done.Add(1)
	defer j.tee.release()
	defer j.trace.end(j.ended)
	defer a.h.recordReceipt(j.receipt)
	defer a.h.guard("assemble turn", nil)
	plain, release, err := j.tee.decode(j.header)
	switch {
	case errors.Is(err, errTooLarge):
		a.missed(j, &a.h.stats.TeeSkipped)
		return
	case err != nil:
		a.missed(j, &a.h.stats.Undecoded)
		return
	}
	defer release()
	reply, err := j.parse(plain)
	a.h.countUsage(j, reply.Usage)
	j.trace.used(reply.Usage)
	if u, r := reply.Usage, j.receipt; r != nil {
		r.Usage.Input, r.Usage.Output, r.Usage.CacheRead, r.Usage.CacheWrite = u.Input, u.Output, u.Cached, u.Written
		r.Usage.Saved = u.Cached - u.Cached/10
	}
	if err == nil {
		j.trace.reply(reply)
	}
	if reply.Failed {
		j.trace.reported(0)
	}
	cut := j.cut && !reply.Ended
	if cut {
		j.trace.failed("aborted")
	} else if err == nil {
		j.sent.NoteAnswer(reply)
	}
	if !j.persist {
		return
	}
	if err != nil || cut || !reply.Final() {
		a.h.stats.NotFinal.Add(1)
		return
	}
	t := j.turn
	chain := t.Chain
	if j.system != (ledger.Hash{}) {
		chain += ledger.HexHash(j.system)
	}
	t.ID = a.h.turns.Load().ID(t.Scope, t.Conversation, chain)
	t.Finish = reply.Finish
	if reply.Model != "" {
		t.Model = reply.Model
	}
	t.Messages = append(t.Messages, persist.Message{
		Role: storage.RoleAssistant, Text: reply.Text, Time: a.h.stamp(j.ended),
	})
	if err := a.h.deps.Persist.Enqueue(t); err != nil {
		a.h.stats.TurnsLost.Add(1)
		return
	}
	a.h.stats.Assembled.Add(1)
}

// missed counts a turn that is not remembered; of an answer that was to be read
// for something else none is missing.
func (a *assembler) missed(j *answer, count *atomic.Int64) {
	if j.persist {
		count.Add(1)
	}
}

// parse reads the answer in the form that it has: servers label streams as
// JSON, text or bytes, and JSON as a stream.
func (j *answer) parse(plain []byte) (dialect.Reply, error) {
	switch text := bytes.TrimLeft(plain, " \t\r\n\ufeff"); {
	case isEventStream(text):
		return j.d.ReplyStream(plain)
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		if reply, err := j.d.Reply(text); err == nil {
			return reply, nil
		}
		return j.d.ReplyStream(plain) // one JSON value a line
	case streamed(j.header):
		return j.d.ReplyStream(plain)
	}
	return j.d.Reply(plain)
}

// isEventStream reports whether text begins like server-sent events.
func isEventStream(text []byte) bool {
	return slices.ContainsFunc([][]byte{[]byte("data:"), []byte("event:"), []byte("id:"), []byte("retry:"), []byte(":")}, func(field []byte) bool {
		return bytes.HasPrefix(text, field)
	})
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
