package clienttest

import (
	"database/sql"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/optimistic"
)

func TestNothingToLockIn(t *testing.T) {
	_, err := rowlock.New(nil, nil)
	WantIs(t, "New(nil)", err, rowlock.ErrConfig)
	for _, db := range []rowlock.DB{nil, (*sql.DB)(nil), (*sqlx.DB)(nil)} {
		_, err = rowlock.Open(db, sqlite.New(), nil)
		WantIs(t, "Open(nil db)", err, rowlock.ErrConfig)
		_, err = rowlock.OpenTable(db, sqlite.New(), nil)
		WantIs(t, "OpenTable(nil db)", err, rowlock.ErrConfig)
		_, err = forupdate.NewLocker(db, sqlite.New())
		WantIs(t, "NewLocker(nil db)", err, rowlock.ErrConfig)
		_, err = once.New(db, sqlite.New(), nil)
		WantIs(t, "once.New(nil db)", err, rowlock.ErrConfig)
		_, err = optimistic.New(db, sqlite.New())
		WantIs(t, "optimistic.New(nil db)", err, rowlock.ErrConfig)
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = rowlock.Open(db, nil, nil)
	WantIs(t, "Open(nil dialect)", err, rowlock.ErrConfig)
	_, err = rowlock.New((*memstore.Store)(nil), nil)
	WantIs(t, "New(nil *Store)", err, rowlock.ErrConfig)
}

func TestOptionsAreOfOneCall(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		began := time.Now()
		one := Take(t, c, "one", rowlock.TTL(10*time.Second), rowlock.Note("one"), rowlock.NoRenew())
		two := Take(t, c, "two")
		if r := Record(t, s, "one"); !hasNote(r, "one") || r.Remaining != 10*time.Second {
			t.Errorf("with options the row is %+v", r)
		}
		if r := Record(t, s, "two"); !hasNote(r, "") || r.Remaining != TTL {
			t.Errorf("without options the row is %+v", r)
		}
		WantEnd(t, one, began, 9*time.Second, rowlock.ErrLost)
		time.Sleep(10 * TTL)
		WantAlive(t, two)
	})
}

// A lease with a call's own TTL is renewed at an interval of its own.
func TestTTLOfACallIsRenewedInProportion(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		for _, asked := range []time.Duration{100 * time.Millisecond, time.Second, time.Hour} {
			l := Take(t, c, "k", rowlock.TTL(asked))
			_, before, _ := s.Calls()
			time.Sleep(30 * asked)
			WantAlive(t, l)
			if _, after, _ := s.Calls(); after-before < 85 || after-before > 105 {
				t.Errorf("TTL %v: %d renewals in 30 TTL, want about 95", asked, after-before)
			}
			if err := l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestMaxHoldOfACallOverridesTheClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := &rowlock.Config{MaxHold: time.Minute}
		cfg.Reaper.Off = true
		c := Client(t, NewScript(), cfg)
		began := time.Now()
		short, usual, long := Take(t, c, "a", rowlock.MaxHold(time.Second)), Take(t, c, "b"),
			Take(t, c, "c", rowlock.MaxHold(10*time.Minute))
		WantEnd(t, short, began, time.Second, rowlock.ErrMaxHold)
		WantEnd(t, usual, began, time.Minute, rowlock.ErrMaxHold)
		WantEnd(t, long, began, 10*time.Minute, rowlock.ErrMaxHold)
	})
}
