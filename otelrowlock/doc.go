// Package otelrowlock tells OpenTelemetry what a rowlock.Client does: metrics of its locks, calls
// and connections, and spans of waits, holds and hand-overs.
//
//	telemetry, err := otelrowlock.New(otelrowlock.Config{})
//	locks, err := rowlock.Open(db, postgres.New(), &rowlock.Config{Hooks: telemetry.Hooks()})
//	err = telemetry.Observe(locks)
//
// # Metrics
//
// All names are in docs/metrics.md. Histograms in seconds: rowlock.lock.wait.duration,
// rowlock.lock.hold.duration, rowlock.lock.handover.duration and rowlock.renewal.duration. A
// histogram's exemplar leads to the span of that wait or hold. Nearly all that rowlock.Stats counts
// is read when metrics are collected, and costs a lock nothing.
//
// A key is no attribute of anything, because keys are many. Config.KeyClass names classes of keys,
// of which the first hundred become the attribute rowlock.key.class of the histograms and spans.
//
// # Spans
//
// "rowlock wait" and "rowlock hold" are children of the span in the ctx of the call that got the
// lock. The hold is linked to its wait, so that it can be found from there also when its parent has
// ended long before. If a call of the same process released the key, and another waited for it,
// "rowlock handover" lies between: a child of the waiting call's span, linked to the hold that
// ended. A wait without a lock, of a call that was refused or gave up, has no span and is not in
// the histogram.
//
// Nothing here has a goroutine of its own or asks the database anything.
package otelrowlock
