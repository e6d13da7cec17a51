package export

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// exporters are those that the environment asks for, each nil if it does not,
// and where they send.
type exporters struct {
	traces                      sdktrace.SpanExporter
	metrics                     sdkmetric.Exporter
	logs                        sdklog.Exporter
	tracesTo, metricsTo, logsTo string
}

// Signals, as variables name them.
const (
	signalTraces  = "TRACES"
	signalMetrics = "METRICS"
	signalLogs    = "LOGS"
)

// Exporters, as variables name them.
const (
	kindOTLP       = "otlp"
	kindConsole    = Console
	kindPrometheus = "prometheus"
	kindNone       = "none"
)

// Protocols of OTLP.
const (
	protocolHTTP = "http/protobuf"
	protocolGRPC = "grpc"
)

// newExporters creates what is asked for. The exporters are named here instead
// of taken from contrib/exporters/autoexport, which links all there are.
func newExporters(ctx context.Context, getenv func(string) string, stdout io.Writer, tell func(variable, step string)) (made exporters, err error) {
	logSDK(getenv, tell)
	made = exporters{tracesTo: Off, metricsTo: Off, logsTo: Off}
	if asked(getenv) {
		reportUnusable(getenv, tell)
	}
	kind, protocol, err := choose(getenv, tell, signalTraces, kindOTLP, kindConsole)
	switch {
	case err != nil:
	case kind == kindConsole:
		made.tracesTo = Console
		made.traces, err = stdouttrace.New(stdouttrace.WithWriter(stdout))
	case protocol == protocolGRPC:
		made.traces, err = otlptracegrpc.New(ctx)
	case kind == kindOTLP:
		made.traces, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return exporters{}, err
	}
	made.tracesTo = destination(made.tracesTo, protocol)

	kind, protocol, err = choose(getenv, tell, signalMetrics, kindOTLP, kindPrometheus)
	switch {
	case err != nil:
	case protocol == protocolGRPC:
		made.metrics, err = otlpmetricgrpc.New(ctx)
	case kind == kindOTLP:
		made.metrics, err = otlpmetrichttp.New(ctx)
	}
	if err != nil {
		return exporters{}, err
	}
	made.metricsTo = destination(made.metricsTo, protocol)

	kind, protocol, err = choose(getenv, tell, signalLogs, kindOTLP)
	switch {
	case err != nil:
	case protocol == protocolGRPC:
		made.logs, err = otlploggrpc.New(ctx)
	case kind == kindOTLP:
		made.logs, err = otlploghttp.New(ctx)
	}
	if err != nil {
		return exporters{}, err
	}
	made.logsTo = destination(made.logsTo, protocol)
	return made, nil
}

// asked reports whether anything is to be exported.
func asked(getenv func(string) string) bool {
	for _, signal := range [...]string{signalTraces, signalMetrics, signalLogs} {
		if kind, _, _ := choose(getenv, func(string, string) {}, signal, kindOTLP, kindConsole, kindPrometheus); kind != kindNone {
			return true
		}
	}
	return false
}

// destination returns where OTLP goes in words; without a protocol there is
// none, and it is otherwise.
func destination(otherwise, protocol string) string {
	if protocol == "" {
		return otherwise
	}
	return "otlp over " + protocol
}

// choose returns the exporter of a signal and, of OTLP, the protocol. Traces and
// metrics go to a collector as soon as one is named; logs only if they are asked
// for, because they are on the standard error already. kind is "none" if nothing
// is asked for. Metrics and logs are off, and tell is called, if their exporter
// is not one of those allowed, such as console.
func choose(getenv func(string) string, tell func(variable, step string), signal string, allowed ...string) (kind, protocol string, err error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return kindNone, "", nil
	}
	variable := "OTEL_" + signal + "_EXPORTER"
	kind = getenv(variable)
	if kind == "" {
		kind = kindNone
		named := getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
		if named && signal != signalLogs {
			kind = kindOTLP
		}
	}
	if kind != kindNone && !slices.Contains(allowed, kind) {
		if signal != signalTraces {
			tell(variable, "it takes "+strings.Join(allowed, ", ")+" or "+kindNone)
			return kindNone, "", nil
		}
		return "", "", fmt.Errorf("%s: %q is not %s or %s", variable, kind, strings.Join(allowed, ", "), kindNone)
	}
	if kind != kindOTLP {
		return kind, "", nil
	}
	variable = "OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL"
	if getenv(variable) == "" {
		variable = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	switch protocol = getenv(variable); protocol {
	case "":
		return kind, protocolHTTP, nil
	case protocolHTTP, protocolGRPC:
		return kind, protocol, nil
	}
	return "", "", fmt.Errorf("%s: %q is not %s or %s", variable, protocol, protocolHTTP, protocolGRPC)
}
