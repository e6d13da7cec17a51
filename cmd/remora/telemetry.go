package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// telemetry is the tracing of the process. It is off, and costs nothing, unless
// the standard OTEL_* variables ask for it.
type telemetry struct {
	traces trace.TracerProvider // nil = off
	// shutdown sends what is still queued.
	shutdown func(context.Context) error
	// destination is where traces go, for the startup line: "off", "otlp
	// (http/protobuf)", ...
	destination string
}

// openTelemetry reads OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER (otlp, console,
// none), OTEL_EXPORTER_OTLP_[TRACES_]PROTOCOL (http/protobuf, grpc) and
// OTEL_EXPORTER_OTLP_[TRACES_]ENDPOINT. The SDK itself reads the rest, such as
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and
// OTEL_BSP_*. A collector that is unreachable costs spans, never requests.
func openTelemetry(ctx context.Context, getenv func(string) string, stdout io.Writer, log *slog.Logger) (telemetry, error) {
	off := noTelemetry()
	exporter, destination, err := spanExporter(ctx, getenv, stdout, func(variable, step string) {
		log.WarnContext(ctx, "an OTEL_* variable can't be used", "variable", variable, "step", step)
	})
	if err != nil || exporter == nil {
		return off, err
	}
	described, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", "remora"),
			attribute.String("service.version", readBuild().version),
		),
		resource.WithFromEnv(), // last, so that OTEL_SERVICE_NAME wins
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return off, fmt.Errorf("describe this service: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("telemetry failed", "error", telemetryFailure(err)) }))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described))
	return telemetry{
		traces:      provider,
		shutdown:    provider.Shutdown,
		destination: destination,
	}, nil
}

// consoleTraces is the destination of traces that go to the standard output.
const consoleTraces = "console"

func noTelemetry() telemetry {
	return telemetry{shutdown: func(context.Context) error { return nil }, destination: "off"}
}

// spanExporter returns nil if tracing is off. The exporters are named here
// instead of taken from contrib/exporters/autoexport, which also links the log,
// metric and Prometheus exporters: 2.4 MiB of resident memory. report is called
// with the variables that the SDK can't use, and in which of its steps.
func spanExporter(ctx context.Context, getenv func(string) string, stdout io.Writer, tell func(variable, step string)) (sdktrace.SpanExporter, string, error) {
	otel.SetLogger(logr.FromSlogHandler(sdkLog{getenv, tell}))
	kind := getenv("OTEL_TRACES_EXPORTER")
	asked := kind != "" || getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	if !asked || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, "", nil
	}
	if kind != "none" {
		reportUnusable(getenv, tell)
	}
	switch kind {
	case "none":
		return nil, "", nil
	case "console":
		e, err := stdouttrace.New(stdouttrace.WithWriter(stdout))
		return e, consoleTraces, err
	case "", "otlp":
	default:
		return nil, "", fmt.Errorf("OTEL_TRACES_EXPORTER: %q is not otlp, console or none", kind)
	}
	variable := "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	if getenv(variable) == "" {
		variable = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	protocol := getenv(variable)
	switch protocol {
	case "", "http/protobuf":
		e, err := otlptracehttp.New(ctx)
		return e, "otlp over http/protobuf", err
	case "grpc":
		e, err := otlptracegrpc.New(ctx)
		return e, "otlp over grpc", err
	}
	return nil, "", fmt.Errorf("%s: %q is not http/protobuf or grpc", variable, protocol)
}
