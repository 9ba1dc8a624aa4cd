package latch_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
)

var levels = map[string]*sql.TxOptions{
	"default": nil, "repeatable read": {Isolation: sql.LevelRepeatableRead},
	"serializable": {Isolation: sql.LevelSerializable},
}

func (r *rig) levels(t *testing.T, f func(t *testing.T, name string, o *sql.TxOptions)) {
	for name, o := range levels {
		if r.Name == "sqlite" && o != nil {
			continue // it has one level
		}
		t.Run(name, func(t *testing.T) { f(t, name, o) })
	}
}

func TestACountInATransactionStandsAndFallsWithIt(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		s := r.process(t)
		r.levels(t, func(t *testing.T, name string, o *sql.TxOptions) {
			l := opened(t, s, name, 1)
			for _, commit := range []bool{false, true} {
				tx, err := r.DB.BeginTx(t.Context(), o)
				ok(t, err)
				ok(t, l.CountDownTx(t.Context(), tx, "x"))
				ok(t, l.CountDownTx(t.Context(), tx, "x"))
				notOpen(t, l)
				if !commit {
					ok(t, tx.Rollback())
					notOpen(t, l)
					continue
				}
				ok(t, tx.Commit())
				l.Wake()
				ok(t, l.Await(soon(t)))
			}
			tx, err := r.DB.BeginTx(t.Context(), o)
			ok(t, err)
			ok(t, l.CountDownTx(t.Context(), tx, "x")) // again
			ok(t, tx.Commit())
		})
	})
}

// A thousand open transactions that count would otherwise stop the latch, and it them.
func TestAnOpenTransactionThatHasCountedHoldsUpNoOtherParty(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name == "sqlite" {
			t.Skip("it has one writer")
		}
		s := r.process(t)
		for name, o := range map[string]*sql.TxOptions{"default": nil, "repeatable read": levels["repeatable read"]} {
			l := opened(t, s, name, 2)
			open, err := r.DB.BeginTx(t.Context(), o)
			ok(t, err)
			ok(t, l.CountDownTx(t.Context(), open, "x"))
			other, err := r.DB.BeginTx(t.Context(), o)
			ok(t, err)
			ok(t, l.CountDownTx(t.Context(), other, "y"))
			ok(t, other.Commit())
			ok(t, l.CountDown(t.Context(), "z"))
			ok(t, l.Await(soon(t)))
			next, err := l.Reset(t.Context())
			ok(t, err)
			ok(t, open.Commit())
			wantCount(t, next, 2)
		}
	})
}

func TestATransactionIsToldOfAResetAndOfAnotherDatabase(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		l := opened(t, r.process(t), "l", 1)
		_, err := l.Reset(t.Context())
		ok(t, err)
		tx, err := r.DB.BeginTx(t.Context(), nil)
		ok(t, err)
		wantIs(t, l.CountDownTx(t.Context(), tx, "x"), latch.ErrStale)
		ok(t, tx.Rollback())
		r.expire(t)
		tx, err = r.DB.BeginTx(t.Context(), nil)
		ok(t, err)
		wantIs(t, l.CountDownTx(t.Context(), tx, "x"), latch.ErrNotFound)
		ok(t, tx.Rollback())
		if r.Name == "sqlite" {
			other := (&rig{r.Open(t)}).process(t)
			tx, err = r.DB.BeginTx(t.Context(), nil)
			ok(t, err)
			wantIs(t, opened(t, other, "l", 1).CountDownTx(t.Context(), tx, "x"), lease.ErrForeignTx)
			ok(t, tx.Rollback())
		}
	})
}

func TestACountInATransactionOfPgxItself(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name != "postgres" {
			t.Skip("pgx speaks to PostgreSQL")
		}
		l := opened(t, r.process(t), "l", 1)
		conn, err := pgx.Connect(t.Context(), r.Source)
		ok(t, err)
		defer conn.Close(context.Background())
		for _, commit := range []bool{false, true} {
			tx, err := conn.Begin(t.Context())
			ok(t, err)
			ok(t, postgres.CountDownTx(t.Context(), tx, l, "x"))
			if !commit {
				ok(t, tx.Rollback(t.Context()))
				wantCount(t, l, 1)
				continue
			}
			ok(t, tx.Commit(t.Context()))
		}
		wantCount(t, l, 0)
		wantIs(t, postgres.CountDownTx(t.Context(), nil, l, "x"), lease.ErrConfig)
	})
}
