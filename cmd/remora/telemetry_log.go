package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// exportFailures lists the errors of exports, in the exporters' words. Only
// what the pattern captures is logged: the rest is the collector's own text,
// and collectors quote the key that they refuse.
var exportFailures = [...]struct {
	pattern *regexp.Regexp
	told    string
}{
	{regexp.MustCompile(`^failed to send to \S+: (\d{3})\b`), "the collector answers "},
	{regexp.MustCompile(`^(?:[a-z ]+: )?rpc error: code = (Unavailable)\b`), "the collector is away, or answers "},
	{regexp.MustCompile(`^(?:[a-z ]+: )?rpc error: code = (\w+)`), "the collector answers "}, // after the reason for not retrying
	{regexp.MustCompile(`^(?:[a-z ]+: )?(retry-able request failure)`), "the collector does not take them now: "},
	{regexp.MustCompile(`^OTLP partial success: .*\((\d+ spans) rejected\)$`), "the collector rejected "},
}

// telemetryFailure returns what happened to an export, without any text of the
// collector. Other errors are about the settings, which the SDK names without
// their secrets.
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
	if strings.HasPrefix(text, "unsupported sampler") || strings.HasPrefix(text, "parsing sampler") || strings.HasPrefix(text, "invalid trace ID ratio") {
		return "OTEL_TRACES_SAMPLER or OTEL_TRACES_SAMPLER_ARG can't be used" // without the value
	}
	if !export {
		return text
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return fmt.Sprintf("%T", err)
}

// sdkLog receives what the SDK logs about its settings. It logs which variable
// is wrong, without the value, which may be a header with a key. Otherwise the
// SDK writes both to the standard error.
type sdkLog struct {
	getenv func(string) string
	tell   func(variable, step string)
}

// Enabled reports whether level is logged: errors only, as by the SDK's
// default.
func (s sdkLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

func (s sdkLog) Handle(_ context.Context, r slog.Record) error {
	var values []string // values that the SDK complained about: compared, never logged
	r.Attrs(func(a slog.Attr) bool { values = append(values, a.Value.String()); return true })
	s.tell(variableOf(r.Message, values, s.getenv), r.Message)
	return nil
}

func (s sdkLog) WithAttrs([]slog.Attr) slog.Handler { return s }
func (s sdkLog) WithGroup(string) slog.Handler      { return s }

// stepVariables are the suffixes of the variables that the exporters read in
// one of their steps, by the step's name.
var stepVariables = [...]struct{ step, end string }{
	{"endpoint", "ENDPOINT"}, {"url", "ENDPOINT"}, {"duration", "TIMEOUT"}, {"header", "HEADERS"},
	{"client key", "CLIENT_KEY"}, {"client cert", "CLIENT_CERTIFICATE"}, {"cert", "CERTIFICATE"},
}

// variableOf names the variables that are set and that a step reads: the one
// with the value, if there is one.
func variableOf(step string, values []string, getenv func(string) string) string {
	for _, of := range stepVariables {
		if !strings.Contains(step, of.step) {
			continue
		}
		var set []string
		for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + of.end, "OTEL_EXPORTER_OTLP_" + of.end} {
			value := getenv(name)
			if value != "" && slices.Contains(values, value) {
				return name
			}
			if value != "" {
				set = append(set, name)
			}
		}
		if len(set) > 0 {
			return strings.Join(set, " or ")
		}
	}
	return "an OTEL_* variable"
}

// reportUnusable finds what the SDK accepts silently, or reports by its value
// alone.
func reportUnusable(getenv func(string) string, tell func(variable, step string)) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		if text := getenv(name); text != "" {
			if u, err := url.Parse(text); err == nil && u.Host == "" { // the SDK reports what is not a URL at all
				tell(name, "it is no URL with a host, such as http://collector:4318")
			}
		}
	}
	sampler := strings.ToLower(strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER")))
	switch {
	case sampler == "" || slices.Contains([]string{"always_on", "always_off", "parentbased_always_on", "parentbased_always_off"}, sampler):
	case sampler != "traceidratio" && sampler != "parentbased_traceidratio":
		tell("OTEL_TRACES_SAMPLER", "it names no sampler: all is sampled whose parent is, or that has none")
	default:
		arg := strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER_ARG"))
		if share, err := strconv.ParseFloat(arg, 64); arg != "" && (err != nil || share < 0 || share > 1) {
			tell("OTEL_TRACES_SAMPLER_ARG", "it is no number from 0 to 1: all is sampled")
		}
	}
}
