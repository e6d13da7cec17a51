package export

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
	{regexp.MustCompile(`^failed to send (?:(?:metrics|logs) )?to \S+: (\d{3})\b`), "the collector answers "},
	{regexp.MustCompile(`^(?:[a-z ]+: )?rpc error: code = (Unavailable)\b`), "the collector is away, or answers "},
	{regexp.MustCompile(`^(?:[a-z ]+: )?rpc error: code = (\w+)`), "the collector answers "}, // after the reason for not retrying
	{regexp.MustCompile(`^(?:[a-z ]+: )?(retry-able request failure)`), "the collector does not take them now: "},
	{regexp.MustCompile(`^OTLP partial success: .*\((\d+ (?:spans|metric data points|logs)) rejected\)$`), "the collector rejected "},
	{regexp.MustCompile(`^invalid (OTEL_[A-Z_]+) value `), "an OTEL_* variable can't be used: "},
	{regexp.MustCompile(`^((?:reader|HTTP exporter|gRPC exporter) is (?:shut ?down|not registered))$`), ""},
}

// prefixes are what exporters and readers put before their errors.
var prefixes = [...]string{"traces export: ", "failed to upload metrics: "}

// Failure returns what happened to an export, without any text of the
// collector, and without the values of variables. Of what it does not know it
// returns the type.
func Failure(err error) string {
	text := err.Error()
	for _, p := range prefixes {
		text = strings.TrimPrefix(text, p)
	}
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
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range several.Unwrap() {
			if told := Failure(e); !slices.Contains(all, told) {
				all = append(all, told)
			}
		}
		return strings.Join(all, "; ")
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
		for _, name := range otlpVariables(of.end) {
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

// otlpVariables returns the variables with an end: of each signal, and of all.
func otlpVariables(end string) []string {
	const begin = "OTEL_EXPORTER_OTLP_"
	return []string{begin + signalTraces + "_" + end, begin + signalMetrics + "_" + end, begin + signalLogs + "_" + end, begin + end}
}

// reportUnusable finds what the SDK accepts silently, or reports by its value
// alone.
func reportUnusable(getenv func(string) string, tell func(variable, step string)) {
	for _, name := range otlpVariables("ENDPOINT") {
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
