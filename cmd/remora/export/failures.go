package export

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
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
	{regexp.MustCompile(`^(?:[a-z ]+: )?rpc error: code = Unavailable desc = connection error: desc = "transport: authentication ` +
		`(handshake failed(?:: tls: (?:first record does not look like a TLS handshake|failed to verify certificate))?)`), "TLS with the collector: "},
	{regexp.MustCompile(`^(?:[a-z ]+: )?rpc error: code = (Unavailable)\b`), "the collector is away, or answers "},
	{regexp.MustCompile(`^(?:[a-z ]+: )?rpc error: code = (\w+)`), "the collector answers "}, // after the reason for not retrying
	{regexp.MustCompile(`^(?:[a-z ]+: )?(retry-able request failure)`), "the collector does not take them now: "},
	{regexp.MustCompile(`^OTLP partial success: .*\((\d+ (?:spans|metric data points|logs)) rejected\)$`), "the collector rejected "},
	{regexp.MustCompile(`^invalid (OTEL_[A-Z_]+) value `), "an OTEL_* variable can't be used: "},
	{regexp.MustCompile(`^((?:reader|HTTP exporter|gRPC exporter) is (?:shut ?down|not registered))$`), ""},
}

// prefixes are what exporters and readers put before their errors.
var prefixes = [...]string{"traces export: ", "failed to upload metrics: "}

const tooLong = "the collector takes too long"

// Failure returns what happened to an export, without any text of the
// collector, and without the values of variables. Of what it does not know it
// returns the type.
func Failure(err error) string {
	text := err.Error()
	for _, p := range prefixes {
		text = strings.TrimPrefix(text, p)
	}
	if told := connectionFailure(err); told != "" {
		return told
	}
	for _, f := range exportFailures {
		if m := f.pattern.FindStringSubmatch(text); m != nil {
			return f.told + m[1]
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return tooLong
	}
	if strings.HasPrefix(text, "unsupported sampler") || strings.HasPrefix(text, "parsing sampler") || strings.HasPrefix(text, "invalid trace ID ratio") {
		return "OTEL_TRACES_SAMPLER or OTEL_TRACES_SAMPLER_ARG can't be used" // without the value
	}
	for {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			var all []string
			for _, e := range several.Unwrap() {
				if told := Failure(e); !slices.Contains(all, told) {
					all = append(all, told)
				}
			}
			return strings.Join(all, "; ")
		}
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}

// connectionFailure returns why there is no answer over HTTP, "" if it is not
// that. Of a certificate it says what is wrong, not what is in it, and of a URL
// nothing, because it may have a password.
func connectionFailure(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if op.Op == "proxyconnect" { // the error is that of the connection to the proxy, TLS included
			return "to the proxy: " + Failure(op.Err)
		}
		return op.Error()
	}
	if told := certificateFailure(err); told != "" {
		return told
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return "the endpoint is https, and the collector answers without TLS"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the endpoint is https, and the collector does not speak TLS"
	}
	u, ok := errors.AsType[*url.Error](err)
	if !ok {
		return ""
	}
	cause := u.Err.Error()
	switch {
	case u.Op == "parse":
		return "the endpoint is no URL"
	case u.Timeout():
		return tooLong
	case errors.Is(err, context.Canceled):
		return "the export was canceled"
	case strings.HasPrefix(cause, "unsupported protocol scheme"):
		return "the endpoint is neither http nor https"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the collector closes the connection without an answer"
	case strings.Contains(cause, "malformed HTTP"):
		return "the collector does not answer in HTTP/1.1; its port may be that of gRPC"
	}
	return ""
}

// certificateFailure returns what is wrong with a certificate, "" if nothing is.
func certificateFailure(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the collector's certificate is signed by an unknown authority"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the collector's certificate is for another host"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "the collector's certificate has expired or is not valid yet"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the collector's certificate can't be verified"
	}
	return ""
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
