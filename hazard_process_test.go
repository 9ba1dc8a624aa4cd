package rowlock_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
)

// A check of the lock just before a write proves nothing: the process may stand between the two for as long as it likes. What
// the fence refuses was lost to it: the same rounds, unfenced, lose updates.
func TestAWriteAfterAPauseIsRefusedByTheFence(t *testing.T) {
	const children, ttl = 5, 400 * time.Millisecond
	rounds := fromEnvironment("ROWLOCK_HAZARD_ROUNDS", 20) / children
	eachScene(t, func(s *scene) {
		s.Parallel()
		table := s.ledger()
		rival := s.client(withPoll(50 * time.Millisecond))
		var wg sync.WaitGroup
		for i := range children {
			id := i + 2
			s.exec(s.env.DB, `INSERT INTO `+table+` VALUES (?, 0)`, id)
			c := s.child("write", table, ttl)
			wg.Go(func() {
				for range rounds {
					s.pausedWrite(c, rival, table, id, "fenced", "rowlock: fenced", 0)
				}
				s.pausedWrite(c, rival, table, id, "blind", "written", 1)
				c.done()
			})
		}
		wg.Wait()
		s.Logf("%d stale writes were refused, %d without a fence were lost updates", children*rounds, children)
	})
}

// pausedWrite has the child stand between its check and its write until another has written. lost is how many of the writes
// that were reported as done are not there.
func (s *scene) pausedWrite(c *child, rival *rowlock.Client, table string, id int, how, said string, lost int64) {
	s.Helper()
	count := func() int64 { return s.number(`SELECT n FROM `+table+` WHERE id = ?`, id) }
	before := count()
	c.say(how)
	c.say(fmt.Sprint(id))
	c.expect("checked")
	c.pause()
	l := s.take(rival, fmt.Sprint(id))
	tx := s.begin(s.env.DB, nil)
	s.ok(l.Fence(s.Context(), tx))
	s.exec(tx, `UPDATE `+table+` SET n = n + 1 WHERE id = ?`, id)
	s.ok(tx.Commit())
	c.goOn()
	c.say("write")
	c.expect(said)
	written := int64(1)
	if said == "written" {
		written++
	}
	if got := count() - before; got != written-lost {
		s.Errorf("%s: %d of %d writes are there, want %d lost", how, got, written, lost)
	}
	s.ok(l.Unlock(s.Context()))
}

// Holders that die leave their keys locked until they expire, and not longer.
func TestTheKeysOfKilledProcessesComeFree(t *testing.T) {
	// A shorter lease is lost by a process that gets no turn on a busy machine, before it is killed.
	const ttl, poll, slack = 3 * time.Second, 50 * time.Millisecond, time.Second
	const processes, keysEach = 4, 3
	rounds := fromEnvironment("ROWLOCK_HAZARD_KILLS", processes) / processes
	eachScene(t, func(s *scene) {
		rival := s.client(withPoll(poll))
		var worst time.Duration
		for round := range rounds {
			children, keys := s.holders(processes, keysEach, fmt.Sprintf("round %d", round), ttl)
			s.atLeast(ttl) // they renew
			for _, key := range keys {
				s.wantHeld(rival, key)
			}
			for _, c := range children {
				c.kill()
			}
			worst = max(worst, s.takeAll(rival, keys))
		}
		s.Logf("%d keys of %d killed processes came free within %s", rounds*processes*keysEach, rounds*processes, worst.Round(time.Millisecond))
		if limit := ttl + poll + slack; worst > limit {
			s.Errorf("a key came free %s after its holder was killed, want at most %s", worst, limit)
		}
	})
}

// holders starts processes that hold some keys each.
func (s *scene) holders(processes, keysEach int, prefix string, ttl time.Duration) (children []*child, keys []string) {
	s.Helper()
	for range processes {
		children = append(children, s.child("hold", "none", ttl))
	}
	for i, c := range children {
		for n := range keysEach {
			keys = append(keys, fmt.Sprintf("%s %d %d", prefix, i, n))
			c.say(keys[len(keys)-1])
			c.expect("held")
		}
	}
	return children, keys
}

// takeAll waits for several keys at once, and returns how long the last took.
func (s *scene) takeAll(c *rowlock.Client, keys []string) time.Duration {
	s.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for _, key := range keys {
		wg.Go(func() { s.ok(s.take(c, key).Unlock(s.Context())) })
	}
	wg.Wait()
	return time.Since(began)
}

// Several processes on one host count together, while each writes to the database outside of any lock as well.
func TestProcessesCountTogether(t *testing.T) {
	eachScene(t, func(s *scene) { s.countTogether() })
}

// In a file with a rollback journal, readers and the writer shut each other out.
func TestProcessesCountTogetherInARollbackJournal(t *testing.T) {
	onScene(t, "sqlite", func(s *scene) {
		source := strings.Replace(s.env.Kind.DSN(s), "WAL", "DELETE", 1)
		s.migrated(source, dialect.Prefix(s.env.Dialect.Names().Prefix)).countTogether()
	})
}

func (s *scene) countTogether() {
	s.Helper()
	processes := fromEnvironment("ROWLOCK_HAZARD_PROCESSES", 3)
	times := fromEnvironment("ROWLOCK_HAZARD_COUNT", 20)
	table := s.ledger()
	s.exec(s.env.DB, `INSERT INTO `+table+` VALUES (2, 0)`)
	var children []*child
	for range processes {
		children = append(children, s.child("count", table, 10*time.Second))
	}
	for _, c := range children {
		c.say(fmt.Sprint(times))
	}
	for _, c := range children {
		c.done()
	}
	if n := s.number(`SELECT n FROM ` + table + ` WHERE id = 1`); n != int64(processes*times) {
		s.Errorf("%d processes counted to %d, want %d", processes, n, processes*times)
	}
	s.Logf("counted to %d, beside %d writes without a lock", processes*times, s.number(`SELECT n FROM `+table+` WHERE id = 2`))
}
