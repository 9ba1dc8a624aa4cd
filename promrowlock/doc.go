// Package promrowlock is a Prometheus collector of what a rowlock.Client does, for programs without
// OpenTelemetry. Its names are those that package otelrowlock has after an OpenTelemetry exporter
// for Prometheus, so that the same alerts and the same dashboard serve both.
//
//	collector, err := promrowlock.New(promrowlock.Config{})
//	locks, err := rowlock.Open(db, postgres.New(), &rowlock.Config{Hooks: collector.Hooks()})
//	err = collector.Observe(locks)
//	err = prometheus.Register(collector)
//
// All names are in docs/metrics.md. Nearly all that rowlock.Stats counts is read at a scrape, and
// costs a lock nothing. A scrape asks the database nothing. A key is no label of anything, because
// keys are many: Config.KeyClass names classes of keys, of which the first hundred become the label
// rowlock_key_class of the histograms.
package promrowlock
