package otelrowlock

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/measure"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// acquired records the wait, which is over, and begins the hold.
func (t *Telemetry) acquired(ctx context.Context, key string, token rowlock.Token, waited time.Duration) {
	now, class := time.Now(), t.classes.Of(key)
	began := now.Add(-waited)
	at, by, passed := t.passed.Acquired(key, token, began)
	within, wait, recorded := t.waited(ctx, began, class)
	t.made.wait.Record(within, waited.Seconds(), class.record...)
	if recorded {
		wait.End(trace.WithTimestamp(now))
		t.begin(ctx, term{key, token}, now, class, wait)
	}
	if !passed {
		return
	}
	if recorded {
		within = t.handedOver(ctx, at, now, by, class)
	}
	t.made.handOver.Record(within, now.Sub(at).Seconds(), class.record...)
}

// waited begins the span of a wait. What a sampler refuses has no other span either.
func (t *Telemetry) waited(
	ctx context.Context, began time.Time, class *class,
) (within context.Context, wait trace.Span, recorded bool) {
	if t.untraced {
		return ctx, nil, false
	}
	within, wait = t.tracer.Start(ctx, "rowlock wait", trace.WithTimestamp(began), class.spans)
	return within, wait, wait.IsRecording()
}

// begin starts the span of a hold.
func (t *Telemetry) begin(ctx context.Context, of term, now time.Time, class *class, wait trace.Span) {
	_, span := t.tracer.Start(ctx, "rowlock hold", trace.WithTimestamp(now), class.spans,
		trace.WithAttributes(attribute.Stringer("rowlock.token", of.token)),
		trace.WithLinks(trace.Link{SpanContext: wait.SpanContext()}))
	t.holds.add(of, hold{span, now, trace.SpanContextFromContext(ctx)})
}

// handedOver makes the span between a release and the grant to a call that waited for it.
func (t *Telemetry) handedOver(
	ctx context.Context, at, now time.Time, by trace.SpanContext, class *class,
) (within context.Context) {
	var links []trace.Link
	if by.IsValid() {
		links = []trace.Link{{SpanContext: by}}
	}
	within, span := t.tracer.Start(ctx, "rowlock handover",
		trace.WithTimestamp(at), class.spans, trace.WithLinks(links...))
	span.End(trace.WithTimestamp(now))
	return within
}

// releasing remembers the release, and the hold that it ends.
func (t *Telemetry) releasing(_ context.Context, key string, token rowlock.Token) {
	var by trace.SpanContext
	if hold, ok := t.holds.find(term{key, token}); ok {
		by = hold.span.SpanContext()
	}
	t.passed.Releasing(key, token, time.Now(), by)
}

func (t *Telemetry) released(ctx context.Context, key string, token rowlock.Token, held time.Duration) {
	now := time.Now()
	began := now.Add(-held)
	pick := func(open []hold) int { return closest(open, began) }
	if hold, ok := t.holds.take(term{key, token}, pick); ok {
		hold.span.End(trace.WithTimestamp(now))
		ctx = trace.ContextWithSpanContext(ctx, hold.span.SpanContext()) // the exemplar's
	}
	t.made.hold.Record(ctx, held.Seconds(), t.classes.Of(key).record...)
}

// lost ends the span with the cause's class alone: an error's text may name the key. Its ctx has
// the span of the call that took the lock.
func (t *Telemetry) lost(ctx context.Context, key string, token rowlock.Token, cause error) {
	class := measure.CauseOf(cause)
	t.made.lost[class].happened(ctx)
	pick := func(open []hold) int { return child(open, trace.SpanContextFromContext(ctx)) }
	if hold, ok := t.holds.take(term{key, token}, pick); ok {
		hold.span.SetAttributes(attribute.String(measure.Cause, class))
		hold.span.SetStatus(codes.Error, "the lock was lost: "+class)
		hold.span.End()
	}
}

// unlockFailed comes before the end of the hold.
func (t *Telemetry) unlockFailed(_ context.Context, key string, token rowlock.Token, _ error) {
	if hold, ok := t.holds.find(term{key, token}); ok {
		hold.span.AddEvent("rowlock unlock failed")
	}
}

// holderChanged is an event of the span that waits: the ctx is that of the call.
func (t *Telemetry) holderChanged(
	ctx context.Context, key string, token rowlock.Token, _ *rowlock.HeldError,
) {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.AddEvent("rowlock holder changed", t.classes.Of(key).spans,
			trace.WithAttributes(attribute.Stringer("rowlock.token", token)))
	}
}
