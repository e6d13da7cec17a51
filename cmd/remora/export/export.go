// Package export is what the program does with its telemetry: traces, metrics
// and logs go to a collector if the standard OTEL_* variables ask for it, and
// metrics to Prometheus when it asks. It is the only package that links the SDK
// of OpenTelemetry.
//
// Nothing is sent unless it is asked for. A collector that is unreachable,
// refuses or hangs costs telemetry, never requests: all that waits for it is
// bounded. What it answers, and the values of variables, are never logged.
package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otellog "go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/remora-proxy/remora/telemetry"
)

// Telemetry is that of the process. The zero value is off.
type Telemetry struct {
	Traces trace.TracerProvider // nil = off
	// Meters makes instruments. What they have can be scraped, and is sent if
	// Sends is set. nil = there are none.
	Meters metric.MeterProvider
	Sends  bool
	// TracesTo, MetricsTo and LogsTo are where they go, for people: "off",
	// "otlp over grpc", ...
	TracesTo, MetricsTo, LogsTo string

	// Ends are what Shutdown calls: each sends what one signal has queued.
	Ends []func(context.Context) error

	logs   otellog.LoggerProvider // nil = off
	reader *sdkmetric.ManualReader
}

// Options are what Open works with.
type Options struct {
	Getenv  func(name string) string
	Stdout  io.Writer // for traces that go to the console
	Log     *slog.Logger
	Version string // of the program
}

// Console is the destination of traces that go to the standard output.
const Console = "console"

// Off is the destination of what goes nowhere.
const Off = "off"

// Open reads OTEL_SDK_DISABLED and, for each signal, its exporter
// (OTEL_TRACES_EXPORTER: otlp, console, none; OTEL_METRICS_EXPORTER: otlp,
// prometheus, none; OTEL_LOGS_EXPORTER: otlp, none), protocol and endpoint. The
// SDK itself reads the rest, such as OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES
// OTEL_TRACES_SAMPLER, OTEL_METRIC_EXPORT_INTERVAL and the limits of batches.
func Open(ctx context.Context, o Options) (t Telemetry, err error) {
	tell := func(variable, step string) {
		o.Log.WarnContext(ctx, "an OTEL_* variable can't be used", "variable", variable, "step", step)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("telemetry failed", "error", Failure(err)) }))
	made, err := newExporters(ctx, o.Getenv, o.Stdout, tell)
	if err != nil {
		return Telemetry{}, err
	}
	described, err := describe(ctx, o.Version)
	if err != nil {
		return Telemetry{}, err
	}
	t = Telemetry{TracesTo: made.tracesTo, MetricsTo: made.metricsTo, LogsTo: made.logsTo}
	if made.traces != nil {
		provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(made.traces), sdktrace.WithResource(described))
		t.Traces, t.Ends = provider, append(t.Ends, provider.Shutdown)
	}
	t.reader = sdkmetric.NewManualReader()
	options := []sdkmetric.Option{sdkmetric.WithReader(t.reader), sdkmetric.WithResource(described)}
	if t.Sends = made.metrics != nil; t.Sends {
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(made.metrics)))
	}
	meters := sdkmetric.NewMeterProvider(options...)
	t.Meters, t.Ends = meters, append(t.Ends, meters.Shutdown)
	if made.logs != nil {
		provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(made.logs)), sdklog.WithResource(described))
		t.logs, t.Ends = provider, append(t.Ends, provider.Shutdown)
	}
	return t, nil
}

// describe returns which program this is.
func describe(ctx context.Context, version string) (*resource.Resource, error) {
	described, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "remora"), attribute.String("service.version", version)),
		resource.WithFromEnv(), // last, so that OTEL_SERVICE_NAME wins
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe this service: %w", err)
	}
	return described, nil
}

// Logger returns a logger of what log gets, which is also sent if logs are. It
// has log's level. What telemetry itself reports must go to log, or a failure
// to send would be sent.
func (t *Telemetry) Logger(log *slog.Logger) *slog.Logger {
	if t.logs == nil {
		return log
	}
	sent := otelslog.NewHandler(telemetry.Scope, otelslog.WithLoggerProvider(t.logs))
	return slog.New(slog.NewMultiHandler(log.Handler(), leveled{sent, log.Handler()}))
}

// leveled is a handler with the level of another one.
type leveled struct {
	slog.Handler
	level slog.Handler
}

func (l leveled) Enabled(ctx context.Context, level slog.Level) bool {
	return l.level.Enabled(ctx, level) && l.Handler.Enabled(ctx, level)
}

func (l leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leveled{l.Handler.WithAttrs(attrs), l.level}
}

func (l leveled) WithGroup(name string) slog.Handler {
	return leveled{l.Handler.WithGroup(name), l.level}
}

// Scrape answers Prometheus. It is 404 where there are no metrics.
func (t *Telemetry) Scrape() http.Handler {
	if t.reader == nil {
		return http.NotFoundHandler()
	}
	return &scraper{reader: t.reader}
}

// Shutdown sends what is still queued, of all signals at the same time: one
// whose collector hangs takes no time from the others. Its error is one for [Failure].
func (t *Telemetry) Shutdown(ctx context.Context) error {
	errs := make([]error, len(t.Ends))
	var all sync.WaitGroup
	for i, end := range t.Ends {
		all.Go(func() { errs[i] = end(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Check reports where telemetry would go, and which variables can't be used. It
// sends nothing.
func Check(ctx context.Context, getenv func(string) string, tell func(variable, step string)) (traces, metrics, logs string, err error) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { tell("an OTEL_* variable", Failure(err)) }))
	made, err := newExporters(ctx, getenv, io.Discard, tell)
	if err != nil {
		return "", "", "", err
	}
	if made.traces != nil { // nothing is queued
		_ = made.traces.Shutdown(ctx)
	}
	if made.metrics != nil {
		_ = made.metrics.Shutdown(ctx)
	}
	if made.logs != nil {
		_ = made.logs.Shutdown(ctx)
	}
	return made.tracesTo, made.metricsTo, made.logsTo, nil
}

// logSDK has the SDK log through tell, which is called with the variables that
// it can't use, and in which of its steps.
func logSDK(getenv func(string) string, tell func(variable, step string)) {
	otel.SetLogger(logr.FromSlogHandler(sdkLog{getenv, tell}))
}
