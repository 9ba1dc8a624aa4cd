package mixed

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/semaphore"
)

const (
	ttl   = 800 * time.Millisecond
	slack = 5 * time.Second // of a machine that has other work
)

// table makes a row for each key.
func table(s *servertest.Scene) string {
	name := s.Env.Dialect.Names().Prefix + "mixed_data"
	s.Env.Exec(s, `CREATE TABLE `+name+` (k varchar(10) PRIMARY KEY, n bigint, m bigint)`)
	s.Cleanup(func() { s.Env.Exec(s, `DROP TABLE `+name) })
	for _, key := range keys {
		s.Env.Exec(s, `INSERT INTO `+name+` VALUES ('`+key+`', 0, 0)`)
	}
	return name
}

// Processes that lock random mixtures in random orders are killed at random. Fenced data shows no
// second holder, no more permits are held than there are, and all is free a lease later.
func TestMixturesOfProcessesThatAreKilled(t *testing.T) {
	const children = 3
	seconds := servertest.FromEnvironment("ROWLOCK_MIXED_SECONDS", 4)
	for _, m := range []servertest.Mode{{}, {Fair: true}} {
		t.Run(m.String(), func(t *testing.T) {
			servertest.Each(t, func(s *servertest.Scene) {
				data := table(s)
				start := func() *servertest.Child {
					child := s.ChildIn(m, "work", data, ttl)
					child.Expect("works")
					return child
				}
				var all [children]*servertest.Child
				for i := range all {
					all[i] = start()
				}
				locks := s.Client(m.Set)
				kills, most := 0, 0
				for began := time.Now(); time.Since(began) < time.Duration(seconds)*time.Second ||
					most == 0 && time.Since(began) < servertest.Patience; {
					for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); {
						most = max(most, permits(s, locks))
					}
					i := rand.IntN(children)
					end(s, all[i])
					all[i] = start()
					kills++
				}
				for _, child := range all {
					end(s, child)
				}
				free(s, locks)
				s.Logf("%d writes, %d permits at most, %d kills", writes(s, data), most, kills)
				if writes(s, data) == 0 || most == 0 {
					s.Error("this shows nothing")
				}
			})
		})
	}
}

// end kills a child, and fails the test if it has found something wrong.
func end(s *servertest.Scene, child *servertest.Child) {
	s.Helper()
	_ = child.Cmd.Process.Kill()
	child.Expect("(nothing more)")
	child.Kill()
}

// permits counts those that are held, in one statement.
func permits(s *servertest.Scene, locks *rowlock.Client) int {
	s.Helper()
	rows, err := locks.Inspect(s.Context(), lease.Filter{Prefix: "semaphore/s/0", Held: true})
	s.OK(err)
	if len(rows) > limit {
		s.Errorf("%d permits of %d are held", len(rows), limit)
	}
	return len(rows)
}

// free fails the test unless all can be had together when the leases of the dead have run out.
func free(s *servertest.Scene, locks *rowlock.Client) {
	s.Helper()
	sem, err := semaphore.New(locks, "s", limit)
	s.OK(err)
	ctx, cancel := context.WithTimeout(s.Context(), ttl+slack)
	defer cancel()
	l, err := locks.LockEach(ctx, []rowlock.Part{rowlock.Exclusive(keys...), sem.Permits(limit)})
	s.OK(err)
	s.OK(l.Unlock(s.Context()))
}

// writes returns how many there were, and fails the test if one was lost.
func writes(s *servertest.Scene, data string) (total int64) {
	s.Helper()
	rows, err := s.Env.DB.QueryContext(s.Context(), `SELECT k, n, m FROM `+data)
	s.OK(err)
	defer rows.Close()
	for rows.Next() {
		var key string
		var n, m int64
		s.OK(rows.Scan(&key, &n, &m))
		if n != m {
			s.Errorf("%q was written %d times and counts %d: two holders wrote at a time", key, m, n)
		}
		total += m
	}
	s.OK(rows.Err())
	return total
}

// A lock of a LockEach that is lost is fenced with all the others.
func TestTheFenceOfAMixtureRefusesAfterOneIsLost(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		locks := s.Client(servertest.WithTTL(time.Minute))
		other := s.ClientOn(s.Env.Pool(s), servertest.WithTTL(time.Minute))
		for _, lost := range []string{"alone", "shared"} {
			l, err := locks.LockEach(s.Context(), []rowlock.Part{
				rowlock.Exclusive("alone"), rowlock.Shared("shared"),
			})
			s.OK(err)
			tx, err := s.Env.DB.BeginTx(s.Context(), nil)
			s.OK(err)
			s.OK(l.Fence(s.Context(), tx))
			s.OK(tx.Rollback())
			if lost == "alone" {
				s.Env.Expire(s, lost)
			} else {
				s.OK(l.Lock(lost).Unlock(s.Context()))
			}
			taken, err := other.TryLock(s.Context(), lost)
			s.OK(err)
			tx, err = s.Env.DB.BeginTx(s.Context(), nil)
			s.OK(err)
			if err := l.Fence(s.Context(), tx); err == nil {
				s.Errorf("%q was taken, and the fence passes", lost)
			}
			s.OK(tx.Rollback())
			s.OK(taken.Unlock(s.Context()))
			_ = l.Unlock(s.Context())
		}
	})
}
