package proxy

import (
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// outcome is how an exchange ended.
type outcome struct {
	relayed        // Status is 0 if the client left before it was sent one
	cause   string // why it failed, for the log: a kind of problem or one of the causes in failure.go; "" = it did not
	detail  string // of the problem
}

// newTee returns a tee for an answer that something will be learned from, or
// nil.
func (x *exchange) newTee(resp *http.Response) *tee {
	if x.api.d == nil || resp.StatusCode/100 != 2 || x.trace == nil && !x.needs(resp) {
		return nil
	}
	return &tee{limit: x.h.cfg.Limits.TeeBytes, budget: &x.h.tees}
}

// needs reports whether more than telemetry is learned from an answer.
func (x *exchange) needs(resp *http.Response) bool {
	return x.plan.persist || x.plan.receipt != nil || x.plan.next != nil && encoded(resp.Header) || x.plan.walk.Ambiguous()
}

// assemble hands the copy of an answer to the assembler, or ends the span if
// there is no whole copy.
func (x *exchange) assemble(resp *http.Response, t *tee, out relayed) {
	now := x.h.deps.Now()
	told := finishReceipt(x, &out)
	if streamed(resp.Header) {
		x.trace.firstChunk(out.FirstByte)
	}
	if t == nil {
		x.h.recordReceipt(told)
		x.trace.end(now)
		return
	}
	// A client may hang up once it has read the last event, before the upstream
	// has closed the stream; and an upstream may close it uncleanly.
	cut := out.Failed != failedNone && (streamed(resp.Header) || resp.ContentLength < 0)
	if t.over || !out.Complete && !cut {
		missed := &x.h.stats.TeeSkipped
		if !t.over {
			missed = &x.h.stats.NotFinal
			x.trace.failed("aborted")
		}
		if x.plan.persist { // otherwise no turn is missing
			missed.Add(1)
		}
		t.release()
		x.h.recordReceipt(told)
		x.trace.end(now)
		return
	}
	needed := x.needs(resp)
	x.recordEncodedPosition(resp.Header, t)
	x.h.assembler.submit(&answer{
		d: x.api.d, header: resp.Header, tee: t, turn: x.plan.turn, persist: x.plan.persist, needed: needed, trace: x.trace, ended: now, cut: cut,
		sent: x.plan.walk.Sent(), system: x.plan.system, receipt: told,
	})
}

// finish counts an exchange that failed, and writes its one line. Its span may
// end later, with the assembler.
func (x *exchange) finish(out outcome) {
	switch {
	case out.Failed == failedClient:
		out.cause = causeOfLeaving(x.ctx, out.Err)
	case out.Failed == failedUpstream:
		out.cause = causeOfBreak(x.up, out.Err)
	case out.Err != nil: // an upgrade that was refused
		p := explain(x.up, out.Err)
		out.cause, out.detail = p.Kind(), p.Detail
	}
	switch {
	case out.cause != "":
		x.h.stats.failures.Add(out.cause)
	case out.Status >= http.StatusBadRequest && out.Status <= 599: // the upstream's
		x.h.stats.failures.Add(strconv.Itoa(out.Status))
	}
	x.log(out)
}

// log writes the exchange's one line.
func (x *exchange) log(out outcome) {
	if !x.h.log.Enabled(x.ctx, slog.LevelInfo) {
		return
	}
	now := x.h.deps.Now()
	attrs := []slog.Attr{
		slog.String("method", x.r.Method),
		slog.String("path", x.h.loggedPath(x.r.URL.Path)),
		slog.Int("code", out.Status),
		slog.String("upstream", x.up.Name),
		slog.String("memory", string(x.plan.status)),
		slog.Int("memories", x.plan.memories),
		slog.Int64("recallUs", x.plan.recallUS),
		slog.Int64("bytes", out.Bytes),
		slog.Float64("ms", float64(now.Sub(x.start).Microseconds())/1000),
	}
	if sent := x.up.SentPath(x.r); sent != x.r.URL.Path {
		attrs = append(attrs, slog.String("sent", x.h.loggedPath(sent)))
	}
	if !out.FirstByte.IsZero() {
		attrs = append(attrs, slog.Float64("firstByteMs", float64(out.FirstByte.Sub(x.start).Microseconds())/1000))
	}
	if x.plan.repair != "" {
		attrs = append(attrs, slog.String("repair", x.plan.repair))
	}
	if x.plan.late {
		attrs = append(attrs, slog.String("ledger", "late"))
	}
	if out.cause != "" {
		attrs = append(attrs, slog.String("failed", out.cause))
	}
	if out.detail != "" {
		attrs = append(attrs, slog.String("detail", out.detail))
	}
	x.h.log.LogAttrs(x.ctx, slog.LevelInfo, "exchange", attrs...)
}

// maxLoggedPath limits a path in the log, in bytes.
const maxLoggedPath = 256

// versionSegment is a segment of a path that names nobody: a version, or a word
// that APIs have in common.
var versionSegment = regexp.MustCompile(`^(v\d{1,2}([a-z]+\d*)?|api|openai|anthropic|compatible-mode|compat|inference|proxy|llm|gateway|deployments|projects|locations|publishers|google|models)$`)

// loggedPath returns the part of a path that may be logged. Of a known path
// that is the suffix by which it is known, and before it the segments that name
// nobody; others are "...". An unknown path is redacted, since it may hold keys
// and names.
func (h *Handler) loggedPath(path string) string {
	for _, to := range h.routes {
		before, ok := strings.CutSuffix(path, to.suffix)
		if !ok {
			continue
		}
		if len(before) > maxLoggedPath {
			return "..." + to.suffix
		}
		segments := strings.Split(before, "/")
		for i, s := range segments {
			if s != "" && !versionSegment.MatchString(s) {
				segments[i] = "..."
			}
		}
		return strings.Join(segments, "/") + to.suffix
	}
	if redact := h.deps.Redact; redact != nil {
		return redact(path[:min(len(path), maxLoggedPath)])
	}
	return ""
}
