package latch

import (
	"context"
	"log/slog"
	"math/rand/v2"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

const usualBatch = 500

// Sweep removes latches and barriers that have expired, and the parties of those and of generations
// that were reset, up to batch rows in each of several short statements. It returns how many rows
// it has removed. A batch of 0 means 500. Several processes may sweep at once.
func (s *Latches) Sweep(ctx context.Context, batch int) (removed int64, err error) {
	if err := isnil.Context("sweep", ctx); err != nil {
		return 0, err
	}
	if s.stopped.Err() != nil {
		return 0, closed("")
	}
	if batch <= 0 {
		batch = usualBatch
	}
	removed, err = s.batches(ctx, batch, func(ctx context.Context, on *conn.Session) (int64, error) {
		return rows.Sweep(ctx, on, s.d, batch)
	})
	if err != nil {
		return removed, err
	}
	parties, err := s.sweepParties(ctx, batch)
	return removed + parties, err
}

// sweepParties goes from one id to the next. An id that is no latch's never is one again.
func (s *Latches) sweepParties(ctx context.Context, batch int) (removed int64, err error) {
	for id := (lease.Owner{}); ; {
		of, live, ok, err := s.nextParties(ctx, id)
		if err != nil || !ok {
			return removed, err
		}
		id = of
		if live {
			continue
		}
		n, err := s.batches(ctx, batch, func(ctx context.Context, on *conn.Session) (int64, error) {
			return rows.DropParties(ctx, on, s.d, of, batch)
		})
		removed += n
		if err != nil {
			return removed, err
		}
	}
}

func (s *Latches) nextParties(ctx context.Context, after lease.Owner) (lease.Owner, bool, bool, error) {
	var id lease.Owner
	var live, ok bool
	err := s.read(ctx, "sweep", "", func(ctx context.Context, on *conn.Session) (err error) {
		id, live, ok, err = rows.NextParties(ctx, on, s.d, after)
		return err
	})
	if err != nil {
		return lease.Owner{}, false, false, err
	}
	return id, live, ok, nil
}

// batches repeats f until it removes less than a batch.
func (s *Latches) batches(
	ctx context.Context, batch int, f func(context.Context, *conn.Session) (int64, error),
) (removed int64, err error) {
	for {
		var n int64
		err := s.read(ctx, "sweep", "", func(ctx context.Context, on *conn.Session) (err error) {
			n, err = f(ctx, on)
			return err
		})
		if err != nil {
			return removed, err
		}
		if removed += n; n < int64(batch) {
			return removed, nil
		}
	}
}

// sweepRegularly sweeps until Close.
func (s *Latches) sweepRegularly() {
	every := s.cfg.Sweep
	for retry.Sleep(s.stopped, every-every/10+rand.N(every/5+1)) {
		if _, err := s.Sweep(s.stopped, 0); err != nil && s.stopped.Err() == nil {
			s.cfg.Logger.LogAttrs(s.stopped, slog.LevelWarn,
				"rowlock: sweep of latches ended early, the next will go on", slog.Any("error", err))
		}
	}
}
