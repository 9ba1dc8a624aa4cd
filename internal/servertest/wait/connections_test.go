package wait

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
)

// A fleet of processes that have nothing to do costs a server little more than a connection each,
// and three each while all of them wait. Each has a pool of its own, as an application would, and
// what stays in that pool counts. The server counts.
func TestAProcessHasFewConnectionsAtTheServer(t *testing.T) {
	const processes, idle, most, waiting = 5, time.Second, 1.3, 3.0
	servertest.EachServer(t, func(s *servertest.Scene) {
		f := newFleet(s)
		clients := make([]*rowlock.Client, processes)
		for i := range clients {
			clients[i] = f.client(idle)
		}
		s.Logf("%.1f connections of each process after Open", f.each(processes))
		f.burst(clients)
		s.Logf("%.1f of each after locks and unlocks", f.each(processes))
		s.Eventually("idle processes to close connections", func() bool {
			return f.each(processes) <= most
		})

		s.Take(s.Client(), "held", rowlock.TTL(servertest.LongTTL), rowlock.NoRenew())
		ctx, cancel := context.WithCancel(s.Context())
		var all sync.WaitGroup
		for _, c := range clients {
			all.Go(func() { _, _ = c.Lock(ctx, "held") })
		}
		defer all.Wait()
		defer cancel()
		s.Eventually("every registration", func() bool {
			return s.Number(`SELECT count(*) FROM {rowlock_queue}`) == processes
		})
		s.Logf("%.1f of each while all wait", f.each(processes))
		s.Elapse(2 * idle)
		s.Eventually("processes that wait to close connections", func() bool {
			return f.each(processes) <= waiting
		})
		s.Logf("%.1f of each while all have waited for a while", f.each(processes))
		cancel()
		all.Wait()
		s.Eventually("processes that waited to close connections", func() bool {
			return f.each(processes) <= most
		})
		s.Logf("%.1f of each afterwards", f.each(processes))
	})
}

// fleet are processes whose connections the server can count: on PostgreSQL they have a name, and
// on MySQL and MariaDB a user.
type fleet struct {
	*servertest.Scene
	source, count string
}

var fleets atomic.Int64

func newFleet(s *servertest.Scene) *fleet {
	s.Helper()
	name := fmt.Sprintf("rowlock_fleet_%d_%d", os.Getpid(), fleets.Add(1))
	if s.Is("postgres") {
		u, err := url.Parse(s.Env.Source)
		s.OK(err)
		q := u.Query()
		q.Set("application_name", name)
		u.RawQuery = q.Encode()
		return &fleet{s, u.String(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = '` + name + `'`}
	}
	cfg, err := mysql.ParseDSN(s.Env.Source)
	s.OK(err)
	s.Env.Exec(s, `CREATE USER `+name+` IDENTIFIED BY 'secret'`)
	s.Cleanup(func() { s.Env.Exec(s, `DROP USER `+name) })
	s.Env.Exec(s, `GRANT ALL ON `+cfg.DBName+`.* TO `+name)
	cfg.User, cfg.Passwd = name, "secret"
	count := `SELECT count(*) FROM information_schema.processlist WHERE user = '` + name + `'`
	if s.Is("mysql") { // its process list fails while any statement has bytes that are no text
		count = `SELECT count(*) FROM performance_schema.threads WHERE processlist_user = '` + name + `'`
	}
	return &fleet{s, cfg.FormatDSN(), count}
}

// each is how many connections a process has, of so many.
func (f *fleet) each(processes int) float64 {
	f.Helper()
	return float64(f.Number(f.count)) / float64(processes)
}

// client is a process with the usual settings, but for how long its connections stay open.
func (f *fleet) client(idle time.Duration) *rowlock.Client {
	f.Helper()
	db, err := sql.Open(f.Env.Driver, f.source)
	f.OK(err)
	f.Cleanup(func() { f.OK(db.Close()) })
	store, _, err := table.Open(f.Context(), db, f.Env.Dialect, table.Options{
		Connections: 3, Timeout: 5 * time.Second, Hints: true, Relax: true, Idle: idle,
	})
	f.OK(err)
	f.Cleanup(func() { f.OK(store.Close()) })
	c, err := rowlock.New(store, servertest.Config(func(c *rowlock.Config) { c.Reaper.Off = false }))
	f.OK(err)
	f.Cleanup(func() { f.OK(c.Close()) })
	return c
}

// burst has every process lock much at once.
func (f *fleet) burst(clients []*rowlock.Client) {
	f.Helper()
	var all sync.WaitGroup
	for i, c := range clients {
		for j := range 8 {
			all.Go(func() {
				for n := range 10 {
					l, err := c.Lock(f.Context(), fmt.Sprint(i, j, n))
					if err == nil {
						err = l.Unlock(f.Context())
					}
					if err != nil {
						f.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
}
