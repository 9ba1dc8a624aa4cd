package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// stage is where a situation is brought about: the key "k".
type stage struct {
	*bed
	scene   *servertest.Scene
	scraped string   // where the metrics are of the process that the situation is about
	process string   // the identity of the other process, or what else its tools must name
	flags   []string // of the tools
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
	c := s.scene.Child(job, "", servertest.LongTTL)
	s.process = strconv.Itoa(c.Cmd.Process.Pid)
	c.Send("k")
	c.Expect("held")
	return c
}

// holder is a client of the test's that has the key, and its lock.
func (s *stage) holder(change ...func(*rowlock.Config)) (*rowlock.Client, *rowlock.Lock) {
	s.Helper()
	c := s.metered("web-1/4711/orders", change...)
	return c, s.scene.Take(c, "k")
}

func (s *stage) alive() { s.holder() }

func (s *stage) unlocked() {
	_, l := s.holder()
	s.scene.OK(l.Unlock(s.Context()))
}

func (s *stage) killed() { s.child("hold").Kill() }
func (s *stage) stands() { s.child("hold").Pause() }

func (s *stage) expired() {
	s.killed()
	s.Expire(s.T, "k")
}

func (s *stage) standsLate() {
	s.stands()
	s.Expire(s.T, "k")
}

// kept is a key whose holder has unlocked it before MinHold has ended.
func (s *stage) kept() {
	run := append([]string{"run", "k", "--identity", "cron-1", "--min-hold", "1h", "--ttl", "1h"}, s.flags...)
	s.wants(0, "", append(run, "--", "true")...)
}

func (s *stage) keptLongEnough() {
	s.kept()
	s.Expire(s.T, "k")
}

func (s *stage) shared() {
	for _, identity := range []string{"web-1", "web-2"} {
		l, err := s.metered(identity).RLock(s.Context(), "k")
		servertest.Locked(s.T)(l, err)
	}
}

func (s *stage) tooLong() {
	c := s.metered("web-1")
	l := s.scene.Take(c, "k", rowlock.MaxHold(time.Second), rowlock.TTL(servertest.LongTTL))
	<-l.Context().Done()
	eventually(s.T, "the metric", func() bool { return strings.Contains(s.metrics(), `{error_type="max_hold"} 1`) })
}

func (s *stage) forced() {
	c, _ := s.holder(func(c *rowlock.Config) { c.RenewEvery = 100 * time.Millisecond })
	s.wants(0, "", "release", "k", "--force", "--reason", "hangs", "--by", "ada")
	eventually(s.T, "the holder to be told", func() bool { return c.Stats().Lost == 1 })
}

func (s *stage) corrupt() {
	s.alive()
	s.Exec(s.T, noTimes[s.Driver], []byte("k"))
}
