package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
)

// stage is where a situation is brought about: the key "k" of tables of its own.
type stage struct {
	*bed
	scene   *servertest.Scene
	holder  *rowlock.Client // whose metrics are read, if it is there
	process string          // the identity of the other process
}

// TestChildAtWork is a process that holds the key and fences it when it is told to.
func TestChildAtWork(t *testing.T) {
	servertest.AtWork(t, map[string]servertest.Job{"hold": servertest.Hold, "fence": fences})
}

func fences(c *servertest.Worker) error {
	l, err := c.Locks.Lock(context.Background(), c.Next())
	if err != nil {
		return err
	}
	_, _ = os.Stdout.WriteString("child: held\n")
	c.Next()
	tx, err := c.DB.BeginTx(context.Background(), nil)
	if err == nil {
		err = l.Fence(context.Background(), tx)
	}
	if err != nil {
		return err
	}
	_, _ = os.Stdout.WriteString("child: fenced\n")
	c.Next()
	return tx.Rollback()
}

// child is another process that holds the key.
func (s *stage) child(job string) *servertest.Child {
	s.Helper()
	c := s.scene.Child(job, "", 0)
	s.process = strconv.Itoa(c.Cmd.Process.Pid)
	c.Send("k")
	c.Expect("held")
	return c
}

func (s *stage) alive() {
	s.holder = s.holds("k")
}

func (s *stage) killed() {
	s.child("hold").Kill()
}

func (s *stage) expired() {
	s.killed()
	s.Expire(s.T, "k")
}

// stopped is a process that stands still in a transaction that has fenced the key.
func (s *stage) stopped() { s.stops() }

func (s *stage) stops() *servertest.Child {
	s.Helper()
	c := s.child("fence")
	s.Expire(s.T, "k")
	c.Send("fence")
	c.Expect("fenced")
	c.Pause()
	return c
}

// stoppedAndWaitedFor has a client of the test wait, which may not end the session.
func (s *stage) stoppedAndWaitedFor() {
	c := s.stops()
	s.waits("web-2", false, -1)
	s.Cleanup(c.Kill) // before the waiter closes its client, which would wait for the row
}

// kept is a key whose holder has unlocked it before MinHold has ended.
func (s *stage) kept() {
	s.wants(0, "", "run", "k", "--identity", "cron-1", "--min-hold", "1h", "--ttl", "1h", "--", "true")
}

func (s *stage) keptLongEnough() {
	s.kept()
	s.Expire(s.T, "k")
}

// waits has a client wait for the key until the test ends.
func (s *stage) waits(identity string, fair bool, evictAfter ...int) {
	s.Helper()
	c := s.scene.Client(func(c *rowlock.Config) {
		c.Identity, c.Fair = identity, fair
		for range evictAfter {
			c.EvictAfter = -1
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := servertest.Aside(func() error { _, err := c.Lock(ctx, "k"); return err })
	s.Cleanup(func() { cancel(); <-ended })
	eventually(s.T, "the waiter", func() bool {
		out, _, _ := s.does("waiters", "k")
		return strings.Contains(out, identity)
	})
}

func (s *stage) waitedFor() {
	s.alive()
	s.waits("web-2", false)
	s.waits("web-3", true)
}

// chains are calls that wait for one another, as their clients tell it.
func (s *stage) chains(process bool) {
	s.Helper()
	s.alive()
	other, err := s.holder.Lock(s.Context(), "other")
	s.scene.OK(err)
	s.Cleanup(func() { _ = other.Unlock(context.Background()) })
	table, err := rowlock.OpenTable(s.Pool(s.T), s.Dialect, nil)
	s.scene.OK(err)
	s.Cleanup(func() { _ = table.Close() })
	held, err := table.Inspect(s.Context(), lease.Filter{Keys: []string{"k"}})
	s.scene.OK(err)
	chains := []lease.Caller{
		{ID: lease.NewOwner(), Holds: []lease.Lease{{Key: "k", Token: held[0].Token}}, Wants: []string{"other"}},
		{ID: lease.NewOwner(), Holds: []lease.Lease{{Key: "other", Token: other.Token()}}, Wants: []string{"k"}},
	}
	graph, ok := adapter.As[lease.Graph](table)
	if !ok {
		s.Fatal("the table records no chains")
	}
	by := lease.Party{Identity: "web-2", Process: process}
	s.scene.OK(graph.Record(s.Context(), by, chains, servertest.Patience))
}

func (s *stage) deadlock()  { s.chains(false) }
func (s *stage) suspicion() { s.chains(true) }

func (s *stage) forced() {
	s.holder = s.scene.Client(func(c *rowlock.Config) {
		c.Identity, c.RenewEvery = "web-1/4711/orders", 100*time.Millisecond
	})
	s.scene.Take(s.holder, "k")
	s.wants(0, "", "release", "k", "--force", "--reason", "hangs", "--by", "ada")
	eventually(s.T, "the holder to be told", func() bool { return s.holder.Stats().Lost == 1 })
}

func (s *stage) corrupt() {
	s.alive()
	s.Exec(s.T, noTimes[s.Driver], []byte("k"))
}

// leads has three processes run for an election, of which one leads.
func (s *stage) leads() {
	ctx, cancel := context.WithCancel(context.Background())
	leader, ended := make(chan *rowlock.Client, 3), make(chan error, 3)
	for i := range cap(ended) {
		c := s.client("web-"+itoa(i+1), false)
		go func() {
			ended <- election.Run(ctx, c, "k", func(ctx context.Context, _ *rowlock.Lock) error {
				leader <- c
				<-ctx.Done()
				return nil
			})
		}()
	}
	s.Cleanup(func() {
		cancel()
		for range cap(ended) {
			<-ended
		}
	})
	s.holder = servertest.Await(s.T, servertest.Patience, leader, "a leader")
	eventually(s.T, "the candidates", func() bool {
		out, _, _ := s.does("waiters", "election/k", "-o", "json")
		return strings.Count(out, `"identity":"web-`) == 2
	})
}
