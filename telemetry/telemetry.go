// Package telemetry has the metrics and the spans of the program: their names,
// units, attributes and meanings in two tables, of which docs/telemetry.md has a
// copy, and what makes instruments of the metrics. It uses the API of
// OpenTelemetry; which SDK runs, and whether any does, is decided where the
// program is put together.
//
// No metric has the name of a user, a tenant or a conversation, or any text, as
// an attribute. Names of models, which clients send, pass through [Models].
package telemetry

//go:generate go test . -run TestDocs -update

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Scope is the name of the instrumentation.
const Scope = "github.com/remora-proxy/remora"

// Kind is what an instrument does with values.
type Kind string

const (
	Counter   Kind = "counter"   // only grows
	Gauge     Kind = "gauge"     // is what it is now
	Histogram Kind = "histogram" // is recorded with each exchange
)

// Row is one metric.
type Row struct {
	Name       string
	Kind       Kind
	Unit       string // as in UCUM: s, By, or what is counted in braces
	Attributes []attribute.Key
	Meaning    string
	Buckets    []float64 // upper bounds, of a histogram
}

// fraction reports whether the values of a row are fractions.
func (r *Row) fraction() bool { return r.Unit == "s" }

// PrometheusName returns the name by which Prometheus knows a metric, without
// the _total of counters: dots become underscores, and the unit is spelled out
// at the end.
func (r *Row) PrometheusName() string { return PrometheusName(r.Name, r.Unit) }

// PrometheusName is the name of a metric in Prometheus, without the _total of
// counters.
func PrometheusName(name, unit string) string {
	name = strings.ReplaceAll(name, ".", "_")
	if suffix := units[unit]; suffix != "" && !strings.HasSuffix(name, "_"+suffix) {
		name += "_" + suffix
	}
	return name
}

// units are the units that Prometheus spells out.
var units = map[string]string{"s": "seconds", "By": "bytes"}

// PrometheusUnit returns the unit as it ends a name in Prometheus, "" if it
// does not.
func PrometheusUnit(unit string) string { return units[unit] }

// NewHistogram returns the histogram of a name in the table. Without a provider
// that can make it, it is one that records nothing.
func NewHistogram(provider metric.MeterProvider, name string) (metric.Float64Histogram, error) {
	for _, r := range Table() {
		if r.Name == name && r.Kind == Histogram {
			return provider.Meter(Scope).Float64Histogram(name, metric.WithUnit(r.Unit), metric.WithDescription(r.Meaning),
				metric.WithExplicitBucketBoundaries(r.Buckets...))
		}
	}
	return nil, errNoSuchMetric
}

// Observer gives the values of counters and gauges while they are collected.
type Observer struct {
	to   metric.Observer
	rows *instruments
}

// instruments are those of all counters and gauges, by name.
type instruments struct {
	whole    map[string]metric.Int64Observable
	fraction map[string]metric.Float64Observable
}

// Count observes a whole number.
func (o Observer) Count(name string, n int64, attributes ...attribute.KeyValue) {
	if i, ok := o.rows.whole[name]; ok {
		o.to.ObserveInt64(i, n, metric.WithAttributes(attributes...))
	}
}

// Seconds observes a duration.
func (o Observer) Seconds(name string, n float64, attributes ...attribute.KeyValue) {
	if i, ok := o.rows.fraction[name]; ok {
		o.to.ObserveFloat64(i, n, metric.WithAttributes(attributes...))
	}
}

// Observe registers all counters and gauges of the table. observe is called
// each time somebody collects them, and by no request.
func Observe(provider metric.MeterProvider, observe func(context.Context, Observer)) error {
	rows := instruments{whole: map[string]metric.Int64Observable{}, fraction: map[string]metric.Float64Observable{}}
	meter := provider.Meter(Scope)
	var all []metric.Observable
	for _, r := range Table() {
		made, err := rows.add(meter, &r)
		if err != nil {
			return err
		}
		if made != nil {
			all = append(all, made)
		}
	}
	_, err := meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		observe(ctx, Observer{to, &rows})
		return nil
	}, all...)
	return err
}

// add makes the instrument of a row, nil for a histogram.
func (i *instruments) add(meter metric.Meter, r *Row) (made metric.Observable, err error) {
	unit, meaning := metric.WithUnit(r.Unit), metric.WithDescription(r.Meaning)
	switch {
	case r.Kind == Counter && r.fraction():
		made, err = keep(i.fraction, r.Name, func() (metric.Float64Observable, error) { return meter.Float64ObservableCounter(r.Name, unit, meaning) })
	case r.Kind == Counter:
		made, err = keep(i.whole, r.Name, func() (metric.Int64Observable, error) { return meter.Int64ObservableCounter(r.Name, unit, meaning) })
	case r.Kind == Gauge && r.fraction():
		made, err = keep(i.fraction, r.Name, func() (metric.Float64Observable, error) { return meter.Float64ObservableGauge(r.Name, unit, meaning) })
	case r.Kind == Gauge:
		made, err = keep(i.whole, r.Name, func() (metric.Int64Observable, error) { return meter.Int64ObservableGauge(r.Name, unit, meaning) })
	}
	return made, err
}

// keep makes an instrument and puts it under its name.
func keep[T metric.Observable](under map[string]T, name string, create func() (T, error)) (metric.Observable, error) {
	made, err := create()
	if err != nil {
		return nil, err
	}
	under[name] = made
	return made, nil
}
