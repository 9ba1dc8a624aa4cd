package corrupt

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
)

// latches is without hints and sweeps of its own.
func latches(tb testing.TB, e *testdb.Env) *latch.Latches {
	s, err := latch.New(e.Pool(tb), e.Dialect, &latch.Config{
		Sweep: -1, Poll: 10 * time.Millisecond, Alive: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// A latch of no parties would be open before any has come.
func TestALatchOfImpossibleNumbersIsCorrupt(t *testing.T) {
	e := loose(t)
	s := latches(t, e)
	for name, n := range map[string]struct{ generation, parties, state, ended int64 }{
		"no parties":             {1, 0, 0, 0},
		"parties below zero":     {1, -1, 0, 0},
		"too many parties":       {1, latch.MaxParties + 1, 0, 0},
		"no generation":          {0, 1, 0, 0},
		"a state that is none":   {1, 1, 4, 0},
		"an end that is none":    {1, 1, 0, -1},
		"a generation below one": {-7, 1, 0, 0},
	} {
		id := lease.NewOwner()
		e.Exec(t, `INSERT INTO {rowlock_latch} (kind, key, id, generation, parties, state, ended, made_at, expires_at)
			VALUES (0, ?, ?, ?, ?, ?, ?, 0, 32503680000000)`, []byte(name), id[:], n.generation, n.parties, n.state, n.ended)
		for what, get := range map[string]func(context.Context) error{
			"find": func(ctx context.Context) error { return second(s.Find(ctx, name)) },
			"open": func(ctx context.Context) error { return second(s.Open(ctx, name, 1)) },
		} {
			if err := get(t.Context()); !errors.Is(err, lease.ErrCorrupt) {
				t.Errorf("%s of a latch with %s: %v, want ErrCorrupt", what, name, err)
			}
		}
	}
}

// A sweep that stops at an id that it did not write leaves all parties behind it for ever. Cut to
// the size of an id, a longer one would be found again by the search for the next.
func TestASweepPassesOverPartiesWhoseIDIsOfAnotherSize(t *testing.T) {
	looseEach(t, func(t *testing.T, e *testdb.Env) {
		s := latches(t, e)
		odd := [][]byte{make([]byte, 20), []byte("Z")}
		if e.Driver == "mysql" { // its columns have 16 bytes
			odd = nil
		}
		for _, id := range append(odd, []byte("a past generatio")) {
			e.Exec(t, `INSERT INTO {rowlock_party} (id, phase, party, counted_at) VALUES (?, 0, ?, `+past[e.Driver]+`)`,
				id, []byte("a"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		defer cancel()
		if _, err := s.Sweep(ctx, 10); err != nil {
			t.Error(err)
		}
		var left int
		if err := e.DB.QueryRow(e.SQL(`SELECT count(*) FROM {rowlock_party}`)).Scan(&left); err != nil || left != len(odd) {
			t.Errorf("%d parties are left, want %d: %v", left, len(odd), err)
		}
	})
}

func second[A any](_ A, err error) error { return err }
