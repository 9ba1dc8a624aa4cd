package wait

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// renting waits for a key that tenants share, under each tenant and name that it receives, and
// reports each grant.
func renting(c *servertest.Worker) error {
	fmt.Println("child: ready")
	var wg sync.WaitGroup
	defer wg.Wait()
	for line := c.Next(); line != ""; line = c.Next() {
		var tenant, name string
		if !scans(line, &tenant, &name) {
			return fmt.Errorf("received %q", line)
		}
		n, err := c.Locks.Namespace(tenant, rowlock.Quota{})
		if err != nil {
			return err
		}
		wg.Go(func() {
			visit(n, name, rowlock.ParentKey())
		})
	}
	return nil
}

// A tenant has two processes with many waiters, and another tenant one with a few. The few are
// served in turn. When a process of the first is killed, what it leaves costs the time in which
// tickets and leases end, and the rest are served in turn.
func TestTenantsTakeTurnsWhoeverIsKilled(t *testing.T) {
	const ttl = time.Second
	const many, few, after = 12, 4, 6
	eachFair(t, func(s *servertest.Scene, m servertest.Mode) {
		locks := s.Client(m.Set)
		l := s.Take(locks, "queue")
		q := &queue{Scene: s, said: make(chan string, 100)}
		s.Exec(s.Env.DB, `DELETE FROM {rowlock_queue}`)
		for range 3 {
			c := s.ChildIn(m, "tenants", "none", ttl)
			c.Expect("ready")
			q.children = append(q.children, c)
		}
		n := int64(0)
		wait := func(child int, tenant string, i int) {
			q.children[child].Send(fmt.Sprintf("%s %s/%d/%d", tenant, tenant, child, i))
			n++
			s.Eventually("the next ticket", func() bool { return tickets(s) >= n })
		}
		for i := range many {
			wait(i%2, "a", i)
		}
		for i := range few {
			wait(2, "b", i)
		}
		for _, c := range q.children {
			q.ends.Go(func() {
				for said := c.Receive(); said != "done" && said != "(nothing more)"; said = c.Receive() {
					q.said <- said
				}
			})
		}
		s.OK(l.Unlock(s.Context()))
		q.awaitServed(2 * few)
		names := q.names()
		if got, want := tenantsOf(names[:2*few]), strings.Repeat("ab", few); got != want {
			s.Errorf("tenants were served as %s, want %s: %v", got, want, names)
		}
		q.awaitServed(many + few)

		l = s.Take(locks, "queue")
		n = 0
		s.Exec(s.Env.DB, `DELETE FROM {rowlock_queue}`)
		for i := range after {
			wait(0, "a", many+i)
		}
		for i := range after {
			wait(1, "a", many+after+i)
		}
		for i := range few {
			wait(2, "b", few+i)
		}
		q.children[0].Kill() // the first in the queue, and all of those that others take turns with
		s.OK(l.Unlock(s.Context()))
		q.awaitServed(many + few + after + few)
		names = q.names()[many+few:]
		if i := lastOf(names, "b/"); i < 0 || i > 2*few {
			s.Errorf("the few waited for the many: %v", names)
		}
		q.end()
	})
}

// tenantsOf is the first letter of each name.
func tenantsOf(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name[:1])
	}
	return b.String()
}

// lastOf is where the last of the names with a prefix is.
func lastOf(names []string, prefix string) int {
	last := -1
	for i, name := range names {
		if strings.HasPrefix(name, prefix) {
			last = i
		}
	}
	return last
}
