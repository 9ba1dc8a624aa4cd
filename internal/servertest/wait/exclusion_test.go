package wait

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// Many waiters of several processes want one key, again and again. Each adds to a tally that only
// the lock protects: two holders at once lose an addition, or write a token after a higher one.
// No waiter waits for longer than Patience.
func TestWaitersOfManyProcessesExcludeEachOtherAndAllProgress(t *testing.T) {
	const processes, waiters = 4, 16
	lasts := time.Duration(servertest.FromEnvironment("ROWLOCK_SOAK_MS", 1200)) * time.Millisecond
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		table := tally(s)
		var children []*servertest.Child
		for range processes {
			c := s.ChildIn(m, "crowd", table, 10*time.Second)
			c.Expect("ready")
			children = append(children, c)
		}
		for _, c := range children {
			c.Send(fmt.Sprint(waiters, " ", lasts))
		}
		var grants, fewest int64
		var longest time.Duration
		for _, c := range children {
			var n, least, most int64
			if said := c.Receive(); !scans(said, &n, &least, &most) {
				s.Fatalf("a child said %q", said)
			}
			c.Finish()
			if grants += n; fewest == 0 || least < fewest {
				fewest = least
			}
			longest = max(longest, time.Duration(most))
		}
		if n := s.Number(`SELECT n FROM ` + table); n != grants {
			s.Errorf("%d grants added up to %d", grants, n)
		}
		// What a busy server has not answered in time expires.
		s.Eventually("no ticket and no held key to be left", func() bool {
			return (!m.Fair || tickets(s) == 0) && s.Number(
				`SELECT count(*) FROM {rowlock} WHERE owner IS NOT NULL AND expires_at > {now}`) == 0
		})
		s.Logf("%d grants, at least %d each, the longest wait %s", grants, fewest,
			longest.Round(time.Millisecond))
	})
}

func scans(said string, into ...any) bool {
	_, err := fmt.Sscan(said, into...)
	return err == nil
}

// tally makes a table with one row, for counts under a lock and nothing else.
func tally(s *servertest.Scene) (table string) {
	s.Helper()
	table = fmt.Sprintf("%stally%d", s.Env.Dialect.Names().Prefix, tallies.Add(1))
	s.Exec(s.Env.DB, `CREATE TABLE `+table+` (n BIGINT NOT NULL, token BIGINT NOT NULL)`)
	s.Cleanup(func() { _, _ = s.Env.DB.Exec(`DROP TABLE ` + table) })
	s.Exec(s.Env.DB, `INSERT INTO `+table+` VALUES (0, 0)`)
	return table
}

var tallies atomic.Int64

// crowding has many waiters lock one key for so long, each at least once.
func crowding(c *servertest.Worker) error {
	fmt.Println("child: ready")
	var waiters int
	var lasts string
	if !scans(c.Next(), &waiters, &lasts) {
		return nil
	}
	d, err := time.ParseDuration(lasts)
	if err != nil {
		return err
	}
	crowd := make([]crowder, waiters)
	end := time.Now().Add(d)
	var wg sync.WaitGroup
	for i := range crowd {
		wg.Go(func() { crowd[i].work(c, end) })
	}
	wg.Wait()
	total := crowder{grants: 0}
	fewest := crowd[0].grants
	for _, w := range crowd {
		total.grants += w.grants
		total.longest = max(total.longest, w.longest)
		fewest = min(fewest, w.grants)
		total.err = errors.Join(total.err, w.err)
	}
	if total.err == nil {
		fmt.Println("child:", total.grants, fewest, total.longest.Nanoseconds())
	}
	return total.err
}

// crowder is one of them.
type crowder struct {
	grants  int64
	longest time.Duration // a wait
	err     error
}

func (w *crowder) work(c *servertest.Worker, end time.Time) {
	for w.err == nil && (w.grants == 0 || time.Now().Before(end)) {
		w.err = w.once(c)
	}
}

func (w *crowder) once(c *servertest.Worker) error {
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
	defer cancel()
	began := time.Now()
	l, err := c.Locks.Lock(ctx, "crowd")
	if err != nil {
		return fmt.Errorf("after %d grants and a wait of %s: %w", w.grants, time.Since(began), err)
	}
	w.longest = max(w.longest, time.Since(began))
	w.grants++
	return errors.Join(tallyOnce(ctx, c, l), l.Unlock(ctx))
}

// tallyOnce reads, and then writes what it has made of it.
func tallyOnce(ctx context.Context, c *servertest.Worker, l *rowlock.Lock) error {
	var n, token rowlock.Token
	if err := c.DB.QueryRowContext(ctx, `SELECT n, token FROM `+c.Table).Scan(&n, &token); err != nil {
		return err
	}
	if token >= l.Token() {
		return fmt.Errorf("granted with token %d after %d", l.Token(), token)
	}
	return c.Run(c.DB, `UPDATE `+c.Table+` SET n = ?, token = ?`, n+1, l.Token())
}
