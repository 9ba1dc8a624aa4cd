package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// errPanic is of a function of the application, or of its driver, that has panicked.
var errPanic = errors.New("rowlock: a panic; the log has its stack")

// caught makes a panic an error; defer it. Views are read on goroutines of the feed, where a panic
// would end the application: net/http recovers those of its own goroutines only.
func (c *Console) caught(ctx context.Context, where string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	*err = fmt.Errorf("%w: %s: %v", errPanic, where, p)
	c.o.Logger.LogAttrs(ctx, slog.LevelError, "rowlock: console: panic", slog.String("in", where),
		slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
}

func (c *Console) timeline(ctx context.Context, key string) (events []Event, err error) {
	defer c.caught(ctx, "Options.Timeline", &err)
	return c.o.Timeline(ctx, key)
}

func (c *Console) findings(ctx context.Context) (found []Finding, err error) {
	defer c.caught(ctx, "Options.Findings", &err)
	return c.o.Findings(ctx)
}
