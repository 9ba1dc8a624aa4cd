package wait

import (
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
)

// The waiter with the higher priority goes first, although it came later and to another process.
func TestAHigherPriorityGoesFirst(t *testing.T) {
	eachFair(t, func(s *servertest.Scene, m servertest.Mode) {
		l := s.Take(s.Client(m.Set), "priority")
		low := waits(s, s.Context(), s.Client(m.Set), "priority", rowlock.Priority(1),
			rowlock.Note("low"))
		high := waits(s, s.Context(), s.Client(m.Set), "priority", rowlock.Priority(10),
			rowlock.Note("high"))
		s.OK(l.Unlock(s.Context()))
		wantServed(s, l, high, low)
	})
}

// No waiter is overtaken for ever: a step of waiting is worth a level of priority, and nine
// levels are worth nine steps.
func TestALongWaitGoesBeforeAHighPriority(t *testing.T) {
	eachFair(t, func(s *servertest.Scene, m servertest.Mode) {
		for _, older := range []bool{true, false} {
			l := s.Take(s.Client(m.Set), "aged")
			low := waits(s, s.Context(), s.Client(m.Set), "aged", rowlock.Priority(1), rowlock.Note("low"))
			high := waits(s, s.Context(), s.Client(m.Set), "aged", rowlock.Priority(10),
				rowlock.Note("high"))
			gap := s.Number(`SELECT max({rank}) - min({rank}) FROM {rowlock_queue} WHERE {rank} IS NOT NULL`)
			if most := (9 * lease.PriorityStep).Microseconds(); gap > most {
				s.Fatalf("nine levels are worth %d µs, want at most %d", gap, most)
			}
			order := []<-chan got{high, low}
			wait := (9 * lease.PriorityStep).Microseconds() - 1_000_000
			if older {
				order = []<-chan got{low, high}
				wait += 2_000_000
			}
			s.Exec(s.Env.DB,
				`UPDATE {rowlock_queue} SET {rank} = (SELECT r FROM (SELECT max({rank}) AS r FROM {rowlock_queue} WHERE note LIKE '%high') AS h) + ? WHERE note LIKE '%low'`,
				(9*lease.PriorityStep).Microseconds()-wait)
			s.OK(l.Unlock(s.Context()))
			wantServed(s, l, order...)
		}
	})
}

// wantServed fails the test unless waiters are granted a key in this order, one after the other,
// right after l.
func wantServed(s *servertest.Scene, l *rowlock.Lock, order ...<-chan got) {
	s.Helper()
	for i, w := range order {
		g := granted(s, w)
		if want := l.Token() + lease.Token(i) + 1; g.l.Token() != want {
			s.Errorf("waiter %d in order has token %d, want %d", i, g.l.Token(), want)
			defer func() { _ = g.l.Unlock(s.Context()) }()
			continue
		}
		s.OK(g.l.Unlock(s.Context()))
	}
}
