package hazard

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// A check of the lock just before a write proves nothing: the process may stop between the two
// for any time. What the fence refuses was lost to it: the same rounds, unfenced, lose updates.
func TestAWriteAfterAPauseIsRefusedByTheFence(t *testing.T) {
	const children, ttl = 5, 400 * time.Millisecond
	rounds := servertest.FromEnvironment("ROWLOCK_HAZARD_ROUNDS", 20) / children
	servertest.Each(t, func(s *servertest.Scene) {
		table := s.Ledger()
		rival := s.Client(servertest.WithPoll(50 * time.Millisecond))
		var wg sync.WaitGroup
		for i := range children {
			id := i + 2
			s.Exec(s.Env.DB, `INSERT INTO `+table+` VALUES (?, 0)`, id)
			c := s.Child("write", table, ttl)
			wg.Go(func() {
				for range rounds {
					pausedWrite(s, c, rival, table, id, "fenced", "rowlock: fenced", 0)
				}
				pausedWrite(s, c, rival, table, id, "blind", "written", 1)
				c.Finish()
			})
		}
		wg.Wait()
		s.Logf("%d stale writes were refused, %d without a fence were lost updates", children*rounds,
			children)
	})
}

// pausedWrite stops the child between its check and its write until another client has written.
// lost is how many of the reported writes are not there.
func pausedWrite(s *servertest.Scene, c *servertest.Child, rival *rowlock.Client, table string,
	id int, how, said string, lost int64,
) {
	s.Helper()
	count := func() int64 { return s.Number(`SELECT n FROM `+table+` WHERE id = ?`, id) }
	before := count()
	c.Send(how)
	c.Send(fmt.Sprint(id))
	c.Expect("checked")
	c.Pause()
	l := s.Take(rival, fmt.Sprint(id))
	tx := s.Begin(s.Env.DB, nil)
	s.OK(l.Fence(s.Context(), tx))
	s.Exec(tx, `UPDATE `+table+` SET n = n + 1 WHERE id = ?`, id)
	s.OK(tx.Commit())
	c.Resume()
	c.Send("write")
	c.Expect(said)
	written := int64(1)
	if said == "written" {
		written++
	}
	if got := count() - before; got != written-lost {
		s.Errorf("%s: %d of %d writes are there, want %d lost", how, got, written, lost)
	}
	s.OK(l.Unlock(s.Context()))
}

// Holders that die leave their keys locked until they expire, and not longer.
func TestTheKeysOfKilledProcessesExpire(t *testing.T) {
	// A shorter lease is lost by a process that gets no turn on a busy machine, before it is
	// killed.
	const ttl, poll, slack = 3 * time.Second, 50 * time.Millisecond, 5 * time.Second
	const processes, keysEach = 4, 3
	rounds := servertest.FromEnvironment("ROWLOCK_HAZARD_KILLS", processes) / processes
	servertest.Each(t, func(s *servertest.Scene) {
		rival := s.Client(servertest.WithPoll(poll))
		var worst time.Duration
		for round := range rounds {
			children, keys := holders(s, processes, keysEach, fmt.Sprintf("round %d", round), ttl)
			s.Elapse(ttl) // they renew
			for _, key := range keys {
				s.WantHeld(rival, key)
			}
			for _, c := range children {
				c.Kill()
			}
			worst = max(worst, takeAll(s, rival, keys))
		}
		s.Logf("%d keys of %d killed processes were free within %s", rounds*processes*keysEach,
			rounds*processes, worst.Round(time.Millisecond))
		if limit := ttl + poll + slack; worst > limit {
			s.Errorf("a key was free %s after its holder was killed, want at most %s", worst, limit)
		}
	})
}

// holders starts processes that hold some keys each.
func holders(s *servertest.Scene, processes, keysEach int, prefix string,
	ttl time.Duration,
) (children []*servertest.Child, keys []string) {
	s.Helper()
	for range processes {
		children = append(children, s.Child("hold", "none", ttl))
	}
	for i, c := range children {
		for n := range keysEach {
			keys = append(keys, fmt.Sprintf("%s %d %d", prefix, i, n))
			c.Send(keys[len(keys)-1])
			c.Expect("held")
		}
	}
	return children, keys
}

// takeAll waits for several keys at once, and returns how long the last took.
func takeAll(s *servertest.Scene, c *rowlock.Client, keys []string) time.Duration {
	s.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for _, key := range keys {
		wg.Go(func() { s.OK(s.Take(c, key).Unlock(s.Context())) })
	}
	wg.Wait()
	return time.Since(began)
}

// Several processes on one host count together, while each also writes to the database outside of
// any lock.
func TestProcessesCountTogether(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) { countTogether(s) })
}

// In a file with a rollback journal, readers and the writer shut each other out.
func TestProcessesCountTogetherInARollbackJournal(t *testing.T) {
	servertest.On(t, "sqlite", func(s *servertest.Scene) {
		source := strings.Replace(s.Env.Kind.DSN(s), "WAL", "DELETE", 1)
		countTogether(s.Migrated(source, dialect.Prefix(s.Env.Dialect.Names().Prefix)))
	})
}

func countTogether(s *servertest.Scene) {
	s.Helper()
	processes := servertest.FromEnvironment("ROWLOCK_HAZARD_PROCESSES", 3)
	times := servertest.FromEnvironment("ROWLOCK_HAZARD_COUNT", 20)
	table := s.Ledger()
	s.Exec(s.Env.DB, `INSERT INTO `+table+` VALUES (2, 0)`)
	var children []*servertest.Child
	for range processes {
		children = append(children, s.Child("count", table, 10*time.Second))
	}
	for _, c := range children {
		c.Send(fmt.Sprint(times))
	}
	for _, c := range children {
		c.Finish()
	}
	if n := s.Number(`SELECT n FROM ` + table + ` WHERE id = 1`); n != int64(processes*times) {
		s.Errorf("%d processes counted to %d, want %d", processes, n, processes*times)
	}
	s.Logf("counted to %d, beside %d writes without a lock", processes*times,
		s.Number(`SELECT n FROM `+table+` WHERE id = 2`))
}
