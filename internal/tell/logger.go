package tell

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"
)

// Logger returns a Logger whose lines a Queue gives to l. What l itself does, even whether it is
// enabled, happens on the queue's goroutine. A Logger of this function is returned as it is, and so
// is nil.
func Logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return nil
	}
	to := l.Handler()
	if _, is := to.(*handler); is || to == slog.DiscardHandler {
		return l
	}
	return slog.New(&handler{to: to, q: &Queue{Through: func(dropped int64) {
		r := slog.NewRecord(time.Now(), slog.LevelWarn,
			"rowlock: log lines and calls of hooks were dropped, because the Logger or a hook did not return", 0)
		r.AddAttrs(slog.Int64("dropped", dropped))
		handle(context.Background(), to, r)
	}}})
}

// Of returns the queue of a Logger of Logger, and otherwise nil.
func Of(l *slog.Logger) *Queue {
	if h, is := l.Handler().(*handler); is {
		return h.q
	}
	return nil
}

// With returns the queue of a Logger of Logger, for hooks too: what the log has said when a hook is
// called, it says in that order. It is a new one if l discards all.
func With(l *slog.Logger) *Queue {
	return cmp.Or(Of(l), new(Queue))
}

// handler leaves everything to the queue.
type handler struct {
	q    *Queue
	to   slog.Handler
	with []func(slog.Handler) slog.Handler
}

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	h.q.Add(func() {
		to := h.to
		for _, with := range h.with {
			to = with(to)
		}
		handle(ctx, to, r)
	})
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.and(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
}

func (h *handler) WithGroup(name string) slog.Handler {
	return h.and(func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

func (h *handler) and(with func(slog.Handler) slog.Handler) *handler {
	return &handler{h.q, h.to, append(slices.Clip(h.with), with)}
}

// handle is what slog does with a line, whose error it ignores too.
func handle(ctx context.Context, to slog.Handler, r slog.Record) {
	if to.Enabled(ctx, r.Level) {
		_ = to.Handle(ctx, r)
	}
}

// Warn logs settings of a server that endanger locks, by a logger of this package. A program may end
// before a goroutine has told them.
func Warn(ctx context.Context, log *slog.Logger, server string, warnings []string) {
	for _, w := range warnings {
		log.LogAttrs(ctx, slog.LevelWarn, "rowlock: "+w, slog.String("server", server))
	}
	Of(log).Flush(time.Second)
}
