package latch_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
)

func TestBadInputIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		s, ctx := r.process(t), t.Context()
		long := strings.Repeat("x", 256)
		for want, inputs := range map[error][]struct {
			ctx     context.Context
			name    string
			parties int
		}{
			lease.ErrConfig:     {{ctx, "l", 0}, {ctx, "l", -1}, {ctx, "l", latch.MaxParties + 1}, {nil, "l", 1}},
			lease.ErrInvalidKey: {{ctx, "", 1}, {ctx, long, 1}, {ctx, lease.Reserved + "l", 1}},
		} {
			for _, in := range inputs {
				_, err := s.Open(in.ctx, in.name, in.parties)
				wantIs(t, err, want)
				_, err = s.Barrier(in.ctx, in.name, in.parties)
				wantIs(t, err, want)
			}
		}
		if n := r.count(t, `SELECT COUNT(*) FROM {rowlock_latch}`); n != 0 {
			t.Errorf("%d latches", n)
		}
		var none context.Context
		l := opened(t, s, "l", 1)
		b, err := s.Barrier(ctx, "b", 1)
		ok(t, err)
		for _, party := range []string{"", long} {
			wantIs(t, l.CountDown(ctx, party), lease.ErrInvalidKey)
			wantIs(t, b.Enter(ctx, party), lease.ErrInvalidKey)
			wantIs(t, b.Leave(ctx, party), lease.ErrInvalidKey)
		}
		wantIs(t, l.CountDown(none, "x"), lease.ErrConfig)
		wantIs(t, l.Await(none), lease.ErrConfig)
		wantIs(t, l.CountDownTx(ctx, nil, "x"), lease.ErrConfig)  // no transaction
		wantIs(t, l.CountDownTx(ctx, r.DB, "x"), lease.ErrConfig) // a pool
		wantIs(t, l.CountDownIn(ctx, nil, "x"), lease.ErrConfig)  // no transaction
		wantIs(t, l.CountDownTx(ctx, (*sql.Tx)(nil), "x"), lease.ErrConfig)
		if n := r.count(t, `SELECT COUNT(*) FROM {rowlock_party}`); n != 0 {
			t.Errorf("%d parties", n)
		}
	})
}

func TestNewRefusesWhatItCannotUse(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		var none *sql.DB
		var noContext context.Context
		for what, err := range map[string]error{
			"nil":         second(latch.New(nil, r.Dialect, nil)),
			"nil pool":    second(latch.New(none, r.Dialect, nil)),
			"no dialect":  second(latch.New(r.DB, nil, nil)),
			"Keep":        second(latch.New(r.DB, r.Dialect, &latch.Config{Keep: 1})),
			"Alive":       second(latch.New(r.DB, r.Dialect, &latch.Config{Alive: time.Millisecond})),
			"Poll":        second(latch.New(r.DB, r.Dialect, &latch.Config{Poll: time.Hour})),
			"Connections": second(latch.New(r.DB, r.Dialect, &latch.Config{Connections: -1})),
			"Sweep":       second(latch.New(r.DB, r.Dialect, &latch.Config{Sweep: 1 << 62})),
			"nil context": second(latch.NewContext(noContext, r.DB, r.Dialect, nil)),
		} {
			if err == nil {
				t.Errorf("%s: no error", what)
			}
			wantIs(t, err, lease.ErrConfig)
		}
		small := r.Pool(t)
		small.SetMaxOpenConns(1)
		wantIs(t, second(latch.New(small, r.Dialect, nil)), lease.ErrPool)
		elsewhere := r.New(dialect.Prefix("none_"))
		wantIs(t, second(latch.New(r.DB, elsewhere, nil)), lease.ErrNoSchema)
	})
}

func second(_ *latch.Latches, err error) error { return err }
