package tenants

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// A client that is opened on a pool with sessions of tenants has the tables of all other clients.
func TestEveryClientOfAPoolLocksInTheSameTables(t *testing.T) {
	each(t, func(s scene) {
		db := s.pool()
		first := s.ClientOn(db)
		s.astray(db)
		second := s.ClientOn(db)
		l := s.Take(first, "k")
		s.WantHeld(second, "k")
		s.OK(l.Unlock(s.Context()))
		if next := s.Take(second, "k"); next.Token() <= l.Token() {
			s.Errorf("token %d after %d", next.Token(), l.Token())
		}
	})
}

// A pinned connection whose session ends takes another from the pool, which may lead anywhere.
func TestAPinnedConnectionThatReconnectsLocksInTheTablesThatOpenFound(t *testing.T) {
	eachSchema(t, func(s scene) {
		db, kill := s.killable()
		c := s.ClientOn(db)
		l := s.Take(c, "k")
		s.OK(s.Take(c, "other").Unlock(s.Context()))
		kill()
		s.astray(db)
		for range 8 { // each pinned connection, in any order
			s.Eventually("an answer", func() bool {
				_, err := c.TryLock(s.Context(), "k")
				if err == nil {
					s.Fatal("the key is held twice")
				}
				_, held := err.(*rowlock.HeldError)
				return held
			})
		}
		s.OK(l.Context().Err())
		s.OK(l.Unlock(s.Context()))
		if next := s.Take(c, "k"); next.Token() <= l.Token() {
			s.Errorf("token %d after %d", next.Token(), l.Token())
		}
	})
}

// begin begins a transaction in a session that leads elsewhere.
func (s scene) begin() *sql.Tx {
	s.Helper()
	c := s.led(s.Env.DB)
	tx, err := c.BeginTx(context.WithoutCancel(s.Context()), nil)
	s.OK(err)
	s.Cleanup(func() {
		_ = tx.Rollback()
		_ = c.Raw(func(any) error { return driver.ErrBadConn })
		_ = c.Close()
	})
	return tx
}

// The token is checked in the store's tables, whatever the transaction's own session leads to.
func TestAFenceLooksIntoTheTablesOfTheLock(t *testing.T) {
	servertest.Each(t, func(e *servertest.Scene) {
		s := scene{Scene: e, lead: temporary(e)}
		if !e.Is("sqlite") {
			s = elsewhere(e)
		}
		c, rival := s.Client(), s.Client()
		l := s.Take(c, "k")
		tx := s.begin()
		s.OK(l.Fence(s.Context(), tx))
		s.OK(tx.Commit())

		s.Env.Expire(s, "k")
		newer := s.Take(rival, "k")
		tx = s.begin()
		s.WantErr(l.Fence(s.Context(), tx), rowlock.ErrFenced)
		s.OK(tx.Rollback())

		tx = s.begin()
		s.OK(newer.UnlockTx(s.Context(), tx))
		s.OK(tx.Commit())
		if n := s.Number(`SELECT count(*) FROM {rowlock} WHERE {key} = 'k' AND owner IS NOT NULL`); n != 0 {
			s.Error("the key is still held in the tables of the lock")
		}
	})
}
