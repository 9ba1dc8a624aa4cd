package rowlock_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

// served is one grant of a waiter in another process.
type served struct {
	name  string
	token int64
	at    int64 // ns since 1970
}

// queueing waits for a key under each name and priority it is told, and says when it had it.
func queueing(c *colleague) error {
	fmt.Println("child: ready")
	var wg sync.WaitGroup
	defer wg.Wait()
	for line := c.next(); line != ""; line = c.next() {
		var name string
		var priority int
		if !scans(line, &name, &priority) {
			return fmt.Errorf("told %q", line)
		}
		wg.Go(func() {
			l, err := c.locks.Lock(context.Background(), "queue", rowlock.Note(name), rowlock.Priority(priority))
			if err != nil {
				fmt.Println("child:", name, err)
				return
			}
			fmt.Println("child:", name, l.Token(), time.Now().UnixNano())
			if err := l.Unlock(context.Background()); err != nil {
				fmt.Println("child:", name, err)
			}
		})
	}
	return nil
}

// line is the waiters of several processes for the key "queue".
type line struct {
	*scene
	children []*child
	waiting  []string // by the (rank, ticket) of the table
	said     chan string
	served   []served
}

const lineProcesses = 4

// lineUp starts n waiters, each when the ticket of the one before it is in the table, in the next process, with a priority of the
// next of those given. The key must be held.
func (s *scene) lineUp(m mode, n int, ttl time.Duration, priorities ...int) *line {
	s.Helper()
	q := &line{scene: s, said: make(chan string, 2*n+lineProcesses)}
	for range lineProcesses {
		c := s.childIn(m, "queue", "none", ttl)
		c.expect("ready")
		q.children = append(q.children, c)
	}
	for i := range n {
		q.children[i%lineProcesses].say(fmt.Sprintf("%d/%d %d", i%lineProcesses, i, priorities[i%len(priorities)]))
		s.eventually("the next ticket", func() bool { return s.tickets() == int64(i+1) })
	}
	rows, err := s.env.DB.QueryContext(s.Context(), s.env.SQL(`SELECT note FROM {rowlock_queue} WHERE {rank} IS NOT NULL ORDER BY {rank}, ticket`))
	s.ok(err)
	defer rows.Close()
	for rows.Next() {
		var name string
		s.ok(rows.Scan(&name))
		q.waiting = append(q.waiting, name)
	}
	s.ok(rows.Err())
	for _, c := range q.children {
		go func() {
			for said := c.hear(); said != "(nothing more)"; said = c.hear() {
				q.said <- said
			}
		}()
	}
	return q
}

// hearServed waits until n in all have been served.
func (q *line) hearServed(n int) {
	q.Helper()
	for len(q.served) < n {
		var v served
		said := arrives(q, scenePatience, q.said, fmt.Sprintf("the next after %d were served", len(q.served)))
		if !scans(said, &v.name, &v.token, &v.at) {
			q.Fatalf("a child said %q", said)
		}
		q.served = append(q.served, v)
	}
}

// names are those who were served, in the order of their tokens.
func (q *line) names() (names []string) {
	slices.SortFunc(q.served, func(a, b served) int { return cmp.Compare(a.token, b.token) })
	for _, v := range q.served {
		names = append(names, v.name)
	}
	return names
}

// wantOrder counts who was served after somebody behind him.
func (q *line) wantOrder(want []string) {
	q.Helper()
	names, inversions := q.names(), 0
	for i, name := range names {
		if i >= len(want) || name != want[i] {
			inversions++
		}
	}
	if inversions > 0 || len(names) != len(want) {
		q.Errorf("%d of %d were served out of turn:\n%v, want\n%v", inversions, len(names), names, want)
	}
}

// The order in which a key is passed on is that of the tickets, whichever process they are of.
func TestFairWaitersOfManyProcessesAreServedInTheOrderOfTheirTickets(t *testing.T) {
	n := fromEnvironment("ROWLOCK_WAIT_LINE", 200)
	eachFair(t, func(s *scene, m mode) {
		l := s.take(s.client(m.set), "queue")
		q := s.lineUp(m, n, 20*time.Second, 5, 4, 6)
		if len(q.waiting) != n {
			s.Fatalf("%d tickets for %d waiters", len(q.waiting), n)
		}
		s.ok(l.Unlock(s.Context()))
		began := time.Now()
		q.hearServed(n)
		q.wantOrder(q.waiting)
		if first, last := q.served[0].token, q.served[n-1].token; first != l.Token()+1 || last != first+int64(n)-1 {
			s.Errorf("tokens %d to %d for %d grants after %d", first, last, n, l.Token())
		}
		s.Logf("%d were served in %s", n, time.Since(began).Round(time.Millisecond))
	})
}

func eachFair(t *testing.T, f func(s *scene, m mode)) {
	t.Helper()
	eachMode(t, func(s *scene, m mode) {
		if m.fair {
			f(s, m)
		} else {
			s.Skip("has no order across processes")
		}
	})
}
