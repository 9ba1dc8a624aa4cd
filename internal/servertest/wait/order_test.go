package wait

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
)

// served is one grant of a waiter in another process.
type served struct {
	name  string
	token lease.Token
	at    int64 // ns since 1970
}

// queueing waits for a key under each name and priority that it receives, and reports each grant.
func queueing(c *servertest.Worker) error {
	fmt.Println("child: ready")
	var wg sync.WaitGroup
	defer wg.Wait()
	for line := c.Next(); line != ""; line = c.Next() {
		var name string
		var priority int
		if !scans(line, &name, &priority) {
			return fmt.Errorf("received %q", line)
		}
		wg.Go(func() {
			visit(c.Locks, name, rowlock.Priority(priority))
		})
	}
	return nil
}

// visit waits for the key "queue", and tells the parent when it was served.
func visit(c *rowlock.Client, name string, opts ...rowlock.Option) {
	l, err := c.Lock(context.Background(), "queue", append(opts, rowlock.Note(name))...)
	if err != nil {
		fmt.Println("child:", name, err)
		return
	}
	fmt.Println("child:", name, l.Token(), time.Now().UnixNano())
	if err := l.Unlock(context.Background()); err != nil {
		fmt.Println("child:", name, err)
	}
}

// queue is the waiters of several processes for the key "queue".
type queue struct {
	*servertest.Scene
	children []*servertest.Child
	waiting  []string // by the (rank, ticket) of the table
	said     chan string
	ends     sync.WaitGroup
	served   []served
}

const queueProcesses = 4

// enqueue starts n waiters, each in the next process and with the next of the priorities, when
// the ticket before it is in the table. The key must be held.
func enqueue(s *servertest.Scene, m servertest.Mode, n int, ttl time.Duration,
	priorities ...int,
) *queue {
	s.Helper()
	q := &queue{Scene: s, said: make(chan string, 2*n+queueProcesses)}
	s.Exec(s.Env.DB, `DELETE FROM {rowlock_queue}`) // of processes killed in another mode
	for range queueProcesses {
		c := s.ChildIn(m, "queue", "none", ttl)
		c.Expect("ready")
		q.children = append(q.children, c)
	}
	for _, c := range q.children {
		q.ends.Go(func() {
			for said := c.Receive(); said != "done" && said != "(nothing more)"; said = c.Receive() {
				q.said <- said
			}
		})
	}
	for i := range n {
		q.enter(i, priorities)
	}
	rows, err := s.Env.DB.QueryContext(s.Context(),
		s.Env.SQL(`SELECT note FROM {rowlock_queue} WHERE {rank} IS NOT NULL ORDER BY {rank}, ticket`))
	s.OK(err)
	defer rows.Close()
	for rows.Next() {
		var name string
		s.OK(rows.Scan(&name))
		_, name = lease.SplitNote(name)
		q.waiting = append(q.waiting, name)
	}
	s.OK(rows.Err())
	return q
}

// enter starts a waiter, and returns when there is a ticket for each that was started. A waiter
// that a busy server has sent away comes again.
func (q *queue) enter(i int, priorities []int) {
	q.Helper()
	q.children[i%queueProcesses].Send(fmt.Sprintf("%d/%d %d", i%queueProcesses, i,
		priorities[i%len(priorities)]))
	for again := true; again; {
		q.Eventually("the next ticket", func() bool {
			again = len(q.said) > 0
			return again || tickets(q.Scene) == int64(i+1)
		})
		if !again {
			return
		}
		said := <-q.said
		var v served
		var child, gone int
		if _, err := fmt.Sscanf(said, "%d/%d", &child, &gone); err != nil || scans(said, &v.name, &v.token, &v.at) {
			q.Fatalf("in place of a ticket a child said %q", said)
		}
		q.Logf("again: %s", said)
		q.children[child].Send(fmt.Sprintf("%d/%d %d", child, gone, priorities[gone%len(priorities)]))
	}
}

// end returns when every waiter has unlocked.
func (q *queue) end() {
	for _, c := range q.children {
		_ = c.In.Close()
	}
	q.ends.Wait()
}

// awaitServed waits until n in all were served.
func (q *queue) awaitServed(n int) {
	q.Helper()
	for len(q.served) < n {
		var v served
		said := servertest.Await(q, servertest.Patience, q.said,
			fmt.Sprintf("the next after %d were served", len(q.served)))
		if !scans(said, &v.name, &v.token, &v.at) {
			q.Fatalf("a child said %q", said)
		}
		q.served = append(q.served, v)
	}
}

// servedBut counts the served waiters of all processes but one.
func (q *queue) servedBut(child int) (n int) {
	for _, v := range q.served {
		if !strings.HasPrefix(v.name, fmt.Sprint(child, "/")) {
			n++
		}
	}
	return n
}

// names are the waiters that were served, in the order of their tokens.
func (q *queue) names() (names []string) {
	slices.SortFunc(q.served, func(a, b served) int { return cmp.Compare(a.token, b.token) })
	for _, v := range q.served {
		names = append(names, v.name)
	}
	return names
}

// wantOrder fails the test unless the waiters were served in this order.
func (q *queue) wantOrder(want []string) {
	q.Helper()
	names, inversions := q.names(), 0
	for i, name := range names {
		if i >= len(want) || name != want[i] {
			inversions++
		}
	}
	if inversions > 0 || len(names) != len(want) {
		q.Errorf("%d of %d were served out of order:\n%v, want\n%v", inversions, len(names), names, want)
	}
}

// A key is passed on in the order of the tickets, whichever process they are of.
func TestFairWaitersOfManyProcessesAreServedInTheOrderOfTheirTickets(t *testing.T) {
	eachFair(t, func(s *servertest.Scene, m servertest.Mode) {
		n := queueLength(s, m)
		l := s.Take(s.Client(m.Set), "queue", rowlock.TTL(time.Hour))
		q := enqueue(s, m, n, 20*time.Second, 5, 4, 6)
		if len(q.waiting) != n {
			s.Fatalf("%d tickets for %d waiters", len(q.waiting), n)
		}
		s.OK(l.Unlock(s.Context()))
		began := time.Now()
		q.awaitServed(n)
		q.end()
		q.wantOrder(q.waiting)
		if first, last := q.served[0].token, q.served[n-1].token; first <= l.Token() ||
			last != first+lease.Token(n)-1 && !manyEras(s) {
			s.Errorf("tokens %d to %d for %d grants after %d", first, last, n, l.Token())
		}
		s.Logf("%d were served in %s", n, time.Since(began).Round(time.Millisecond))
	})
}

// queueLength is 200, but less if each waiter takes longer: in SQLite under the race detector,
// which sees every instruction of a database written in Go, and without hints.
func queueLength(s *servertest.Scene, m servertest.Mode) int {
	n := servertest.FromEnvironment("ROWLOCK_WAIT_LINE", 200)
	if m.Silent || s.Is("sqlite") {
		n = min(n, max(40, n/5))
	}
	return n
}

// A process that dies with its waiters is a hole in the queue, of at most one lease: when that
// has ended, all its tickets are dead. So at most one of them is granted the key, and the living
// keep their order.
func TestTheWaitersOfAKilledProcessAreOneHoleInTheQueue(t *testing.T) {
	const n, before, dead, ttl = 48, 10, 1, 6 * time.Second
	eachFair(t, func(s *servertest.Scene, m servertest.Mode) {
		l := s.Take(s.Client(m.Set), "queue", rowlock.TTL(time.Hour))
		q := enqueue(s, m, n, ttl, 5)
		s.OK(l.Unlock(s.Context()))
		q.awaitServed(before)
		s.OK(q.children[dead].Cmd.Process.Kill())
		killed := time.Now()
		for q.servedBut(dead) < n-n/queueProcesses {
			q.awaitServed(len(q.served) + 1)
		}
		q.end()
		close(q.said)
		for said := range q.said { // of the dead process, from before the kill
			var v served
			if !scans(said, &v.name, &v.token, &v.at) {
				s.Fatalf("a child said %q", said)
			}
			q.served = append(q.served, v)
		}
		names := q.names()
		q.wantOrder(slices.DeleteFunc(slices.Clone(q.waiting), func(name string) bool {
			return strings.HasPrefix(name, fmt.Sprint(dead, "/")) && !slices.Contains(names, name)
		}))
		last := q.served[len(q.served)-1]
		if holes := last.token - l.Token() - lease.Token(len(q.served)); (holes < 0 || holes > 1) && !manyEras(s) {
			s.Errorf("%d dead waiters were granted the key, want at most one", holes)
		}
		var pause time.Duration
		for i := range q.served[1:] {
			pause = max(pause, time.Duration(q.served[i+1].at-q.served[i].at))
		}
		// A second hole would be another ttl. The processes of this test keep a machine busy, and have
		// most of that.
		if limit := 2*ttl - 4*waitSlack; pause > limit {
			s.Errorf("no waiter was served for %s, want at most %s", pause, limit)
		}
		s.Logf("the longest pause was %s; all were served %s after the kill",
			pause.Round(time.Millisecond), time.Since(killed).Round(time.Millisecond))
	})
}

// manyEras reports whether each process has an era of its own, so that tokens do not count grants.
func manyEras(s *servertest.Scene) bool { return s.Env.Name == "sqlite" }

func eachFair(t *testing.T, f func(s *servertest.Scene, m servertest.Mode)) {
	t.Helper()
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		if m.Fair {
			f(s, m)
		} else {
			s.Skip("has no order across processes")
		}
	})
}
