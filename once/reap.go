package once

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	defaultBatch = 200
	sweepTimeout = 10 * time.Second // for one batch
)

// Sweep removes expired rows, up to batch in each of several short transactions, until there are
// none left, and returns how many it has removed. A batch of 0 means 200. Several may sweep at
// once, because none waits for a row that another has locked. It borrows a connection from the pool
// and drops it afterwards, because its settings differ from the application's.
func (o *Once) Sweep(ctx context.Context, batch int) (removed int64, err error) {
	if err := isnil.Context("sweep", ctx); err != nil {
		return 0, err
	}
	if o.stopped.Err() != nil {
		return 0, fmt.Errorf("%w: sweep", lease.ErrClosed)
	}
	if batch <= 0 {
		batch = defaultBatch
	}
	return o.sweep(ctx, batch)
}

// sweep with a batch of 0 only checks the privileges.
func (o *Once) sweep(ctx context.Context, batch int) (removed int64, err error) {
	pinned, err := o.db.Conn(ctx)
	if err != nil {
		return 0, o.explain("sweep", "", conn.NotSent{Err: err})
	}
	s := conn.NewSession(pinned)
	defer s.Discard()
	if err := o.d.Setup(ctx, s); err != nil {
		return 0, o.explain("sweep", "", conn.NotSent{Err: err})
	}
	for {
		n, err := o.batch(ctx, s, batch)
		removed += n
		if err != nil || n < int64(batch) || batch == 0 {
			return removed, err
		}
	}
}

func (o *Once) batch(ctx context.Context, s *conn.Session, batch int) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	for pauses, try := retry.Pauses(), 1; ; try++ {
		n, err := s.Change(ctx, o.d.Text("once-sweep"), batch) // leaves what is locked
		if err == nil {
			return n, nil
		}
		again := sqlstore.Judge(o.d, err).Class == sqlstore.Conflict && try < maxTries
		if !again || !retry.Sleep(ctx, pauses.NextBackOff()) {
			return 0, o.explain("sweep", "", err)
		}
	}
}

// reap sweeps regularly until Close.
func (o *Once) reap() {
	for retry.Sleep(o.stopped, o.cfg.Reap-o.cfg.Reap/10+rand.N(o.cfg.Reap/5+1)) {
		removed, err := o.sweep(o.stopped, defaultBatch)
		switch {
		case err == nil && removed > 0:
			o.cfg.Logger.LogAttrs(o.stopped, slog.LevelDebug,
				"rowlock: what was done once is forgotten", slog.Int64("rows", removed))
		case err != nil && o.stopped.Err() == nil:
			o.cfg.Logger.LogAttrs(o.stopped, slog.LevelWarn,
				"rowlock: sweep of rowlock_once ended early, the next will go on",
				slog.Int64("rows", removed), slog.Any("error", err))
		}
	}
}
