package latch_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/latch"
)

// A thousand parties count down at once, in pairs with as many raw inserts of the same row over as
// many connections. It prints both.
func TestAThousandPartiesCountDown(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		const parties, at = 1000, 32
		db := r.Pool(t)
		connections := 4
		if r.Name == "sqlite" {
			connections = 1
		}
		db.SetMaxIdleConns(connections)
		raw := r.Pool(t)
		raw.SetMaxOpenConns(connections)
		raw.SetMaxIdleConns(connections)
		s := r.open(t, db, latch.Config{Sweep: -1, Connections: connections})
		r.Exec(t, `CREATE TABLE `+r.raw()+` AS SELECT * FROM {rowlock_party} WHERE 1 = 0`)
		defer r.Exec(t, `DROP TABLE `+r.raw())
		r.Exec(t, `CREATE UNIQUE INDEX `+r.raw()+`_key ON `+r.raw()+` (id, phase, party)`)
		insert, err := raw.Prepare(r.SQL(`INSERT INTO ` + r.raw() + ` (id, phase, party, counted_at) VALUES (?, 0, ?, {now})`))
		ok(t, err)
		defer insert.Close()
		for pair := range 3 {
			l := opened(t, s, fmt.Sprint("l", pair), parties)
			waiters := make(chan error, 100)
			late, cancel := context.WithTimeout(t.Context(), 10*patience) // a thousand commits come first
			defer cancel()
			for range cap(waiters) {
				go func() { waiters <- l.Await(late) }()
			}
			counted := clock(at, parties, func(i int) error { return l.CountDown(context.Background(), fmt.Sprint(i)) })
			ended := time.Now()
			for range cap(waiters) {
				ok(t, <-waiters)
			}
			told := time.Since(ended)
			id := []byte(fmt.Sprintf("%016d", pair))
			inserted := clock(at, parties, func(i int) error {
				_, err := insert.Exec(id, []byte(fmt.Sprint(i)))
				return err
			})
			wantCount(t, l, 0)
			t.Logf("%s: %.0f count downs a second, %.0f raw inserts a second, ratio %.2f; 100 waiters knew %s after the last",
				r.Name, parties/counted.Seconds(), parties/inserted.Seconds(), inserted.Seconds()/counted.Seconds(),
				told.Round(time.Millisecond/10))
		}
	})
}

func (r *rig) raw() string { return r.Dialect.Names().Prefix + "raw" }

// clock runs f n times, at a time so many, and returns how long that took.
func clock(at, n int, f func(i int) error) time.Duration {
	var next atomic.Int64
	begin := time.Now()
	inParallel(at, func(int) {
		for i := next.Add(1); i <= int64(n); i = next.Add(1) {
			if err := f(int(i)); err != nil {
				panic(err)
			}
		}
	})
	return time.Since(begin)
}

// A count down is one statement, and a thousand waiters cost the polls of one.
func TestWhatAThousandPartiesAndWaitersCost(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		log := &faultdb.Log{}
		db, err := faultdb.Open(r.Driver, r.Source, log)
		ok(t, err)
		defer db.Close()
		const poll = 100 * time.Millisecond
		s := r.open(t, db, latch.Config{Sweep: -1, Connections: 1, NoHints: true, Poll: poll})
		l := opened(t, s, "l", 50)
		executed := func() (n int) {
			for _, op := range log.Ops() {
				n += b2i(op.Executes())
			}
			return n
		}
		log.Reset()
		for i := range 49 {
			ok(t, l.CountDown(t.Context(), fmt.Sprint(i)))
		}
		if n := executed(); n != 49 {
			t.Errorf("49 count downs are %d statements", n)
		}
		log.Reset()
		began := time.Now()
		waiters := make(chan error, 1000)
		for range cap(waiters) {
			go func() { waiters <- l.Await(soon(t)) }()
		}
		notOpen(t, l)
		ok(t, l.CountDown(t.Context(), "last"))
		for range cap(waiters) {
			ok(t, <-waiters)
		}
		// One for each poll, however many wait.
		if n, took := executed(), time.Since(began); n > 20+int(took/poll) {
			t.Errorf("1,000 waiters are %d statements in %s", n, took)
		}
	})
}
