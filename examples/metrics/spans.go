package metrics

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/rowlockdb/rowlock"
)

// Spans makes two spans of each lock, under the span of the call that got it: "rowlock wait" and
// "rowlock hold". Every Acquired is followed by one Released or Lost, so that no span stays open.
type Spans struct {
	tracer trace.Tracer
	open   sync.Map // of term to trace.Span
}

// term is one lock.
type term struct {
	key   string
	token rowlock.Token
}

// NewSpans returns spans of a tracer.
func NewSpans(tracer trace.Tracer) *Spans { return &Spans{tracer: tracer} }

// Hooks are for rowlock.Config.Hooks.
func (s *Spans) Hooks() rowlock.Hooks {
	return rowlock.Hooks{
		Acquired: s.acquired, Released: s.released, Lost: s.lost, UnlockFailed: s.unlockFailed,
		HolderChanged: s.holderChanged,
	}
}

func (s *Spans) acquired(ctx context.Context, key string, token rowlock.Token, waited time.Duration) {
	now, name := time.Now(), attribute.String("rowlock.key", key)
	began := trace.WithTimestamp(now.Add(-waited))
	_, wait := s.tracer.Start(ctx, "rowlock wait", began, trace.WithAttributes(name))
	wait.End(trace.WithTimestamp(now))
	_, hold := s.tracer.Start(ctx, "rowlock hold", trace.WithTimestamp(now),
		trace.WithAttributes(name, attribute.Stringer("rowlock.token", token)))
	s.open.Store(term{key, token}, hold)
}

func (s *Spans) released(_ context.Context, key string, token rowlock.Token, _ time.Duration) {
	if hold, ok := s.open.LoadAndDelete(term{key, token}); ok {
		hold.(trace.Span).End()
	}
}

func (s *Spans) lost(ctx context.Context, key string, token rowlock.Token, cause error) {
	if hold, ok := s.open.Load(term{key, token}); ok {
		hold.(trace.Span).SetStatus(codes.Error, cause.Error())
	}
	s.released(ctx, key, token, 0)
}

func (s *Spans) unlockFailed(_ context.Context, key string, token rowlock.Token, err error) {
	if hold, ok := s.open.Load(term{key, token}); ok {
		hold.(trace.Span).RecordError(err)
	}
}

// holderChanged is an event of the span that waits: the ctx is that of the call.
func (s *Spans) holderChanged(
	ctx context.Context, key string, token rowlock.Token, holder *rowlock.HeldError,
) {
	trace.SpanFromContext(ctx).AddEvent("rowlock holder changed", trace.WithAttributes(
		attribute.String("rowlock.key", key), attribute.Stringer("rowlock.token", token),
		attribute.String("rowlock.holder", holder.Note)))
}
