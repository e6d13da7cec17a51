package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
)

// exportFailures are what an export failed by, as the exporters put it. Only what the pattern captures is told: what
// stands around it is the collector's own text, and collectors quote the key that they refuse.
var exportFailures = [...]struct {
	pattern *regexp.Regexp
	told    string
}{
	{regexp.MustCompile(`^failed to send to \S+: (\d{3})\b`), "the collector answers "},
	{regexp.MustCompile(`^(?:[a-z ]+: )?rpc error: code = (Unavailable)\b`), "the collector is away, or answers "},
	{regexp.MustCompile(`^(?:[a-z ]+: )?rpc error: code = (\w+)`), "the collector answers "}, // behind why it was not tried again
	{regexp.MustCompile(`^(?:[a-z ]+: )?(retry-able request failure)`), "the collector does not take them now: "},
	{regexp.MustCompile(`^OTLP partial success: .*\((\d+ spans) rejected\)$`), "the collector rejected "},
}

// telemetryFailure says what became of an export without a word of the collector's. Other errors are about the
// settings, which the SDK names without their secrets.
func telemetryFailure(err error) string {
	text, export := strings.CutPrefix(err.Error(), "traces export: ")
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Error()
	}
	for _, f := range exportFailures {
		if m := f.pattern.FindStringSubmatch(text); m != nil {
			return f.told + m[1]
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the collector takes too long"
	}
	if !export {
		return text
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return fmt.Sprintf("%T", err)
}

// sdkLog takes what the SDK says of its settings: what it stumbled over, and not the value, which may be a header with a
// key. Without it the SDK writes both to the standard error, past the log.
type sdkLog struct{ log *slog.Logger }

// Enabled says no to all but errors, as the SDK's own default does.
func (s sdkLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

func (s sdkLog) Handle(ctx context.Context, r slog.Record) error {
	s.log.WarnContext(ctx, "an OTEL_* variable can't be used", "step", r.Message)
	return nil
}

func (s sdkLog) WithAttrs([]slog.Attr) slog.Handler { return s }
func (s sdkLog) WithGroup(string) slog.Handler      { return s }
