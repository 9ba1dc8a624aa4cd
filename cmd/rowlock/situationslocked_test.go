package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// stopped is a process that stands still in a transaction that has fenced the key.
func (s *stage) stopped() { s.inside().Pause() }

// inside is a process in a fenced transaction, whose lease has expired.
func (s *stage) inside() *servertest.Child {
	s.Helper()
	c := s.child("fence")
	s.Expire(s.T, "k")
	c.Send("fence")
	c.Expect("fenced")
	return c
}

// stoppedAndWaitedFor has a client of the test wait, which may not end the session.
func (s *stage) stoppedAndWaitedFor() {
	c := s.inside()
	c.Pause()
	s.waits("web-2", func(c *rowlock.Config) { c.EvictAfter = -1 })
	s.Cleanup(c.Kill) // before the waiter closes its client, which would wait for the row
}

func (s *stage) evicted() {
	s.stopped()
	c := s.metered("web-2", func(c *rowlock.Config) { c.EvictAfter = patient })
	s.scene.Take(c, "k")
	eventually(s.T, "the hook", func() bool {
		return strings.Contains(s.metrics(), "rowlock_session_evicted_total 1")
	})
}

// behind has children go through a hole.
func (s *stage) behind() *testdb.Hole {
	s.Helper()
	e, hole := s.BehindHole(s.T)
	s.scene = &servertest.Scene{T: s.T, Env: e}
	return hole
}

func (s *stage) cutOff() {
	hole := s.behind()
	s.child("hold")
	hole.Vanish()
}

func (s *stage) cutOffLate() {
	s.cutOff()
	s.Expire(s.T, "k")
}

func (s *stage) cutOffInside() {
	hole := s.behind()
	s.inside()
	hole.Vanish()
}

// lateRow is an expired key that no process has.
func (s *stage) lateRow() {
	s.Helper()
	s.kept()
	s.Expire(s.T, "k")
}

const touches = `UPDATE {rowlock} SET note = 'x' WHERE {key} = ?`

func (s *stage) lockedByAnother() {
	s.lateRow()
	s.scene.Exec(s.scene.Begin(s.DB, nil), touches, []byte("k"))
}

// prepared is a transaction of two phases, the coordinator of which is gone.
func (s *stage) prepared() {
	s.lateRow()
	name := s.Dialect.Names().Prefix + "two"
	begin, prepare, end := `XA START '`+name+`'`, `XA END '`+name+`'`, `XA ROLLBACK '`+name+`'`
	last := `XA PREPARE '` + name + `'`
	if s.Driver == "pgx" {
		begin, prepare, end = `BEGIN`, `SELECT 1`, `ROLLBACK PREPARED '`+name+`'`
		last = `PREPARE TRANSACTION '` + name + `'`
	}
	s.process = strings.TrimSuffix(end, "'") // XA names its parts
	pinned, err := s.Pool(s.T).Conn(s.Context())
	s.scene.OK(err)
	s.scene.Exec(pinned, begin)
	s.scene.Exec(pinned, touches, []byte("k"))
	s.scene.Exec(pinned, prepare)
	s.scene.Exec(pinned, last)
	_ = pinned.Raw(func(any) error { return driver.ErrBadConn })
	s.Cleanup(func() { s.Exec(s.T, end) })
}

func (s *stage) unlocking() {
	_, l := s.holder()
	s.scene.OK(l.UnlockTx(s.Context(), s.scene.Begin(s.DB, nil)))
}

// handedOver is a section whose commit has passed the key on to another one.
func (s *stage) handedOver() {
	c := s.metered("web-1")
	begun, goOn, ended := make(chan string, 2), make(chan struct{}), make(chan error, 2)
	section := func(note string) {
		ended <- c.DoTx(context.Background(), "k", func(context.Context, *sql.Tx) error {
			begun <- note
			<-goOn
			return nil
		}, rowlock.Note(note))
	}
	go section("the first")
	servertest.Await(s.T, servertest.Patience, begun, "the first section")
	go section("the second")
	eventually(s.T, "the second section to wait", func() bool { return c.Stats().Waiting == 1 })
	goOn <- struct{}{}
	servertest.Await(s.T, servertest.Patience, begun, "the second section")
	s.Cleanup(func() {
		close(goOn)
		s.scene.OK(<-ended)
	})
	s.scene.OK(<-ended)
}
