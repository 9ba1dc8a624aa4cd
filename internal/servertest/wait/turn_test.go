package wait

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
)

// turning takes the turn of a key as a process does, and does nothing with it. It is told the kind
// of database, the prefix of the tables and the key.
func turning(c *servertest.Worker) error {
	var kind, prefix, key string
	if !scans(c.Next(), &kind, &prefix, &key) {
		return fmt.Errorf("no kind, prefix and key")
	}
	s, err := turns(context.Background(), c.DB, servertest.KindNamed(kind).New(dialect.Prefix(prefix)))
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Turns(context.Background(), key, func() bool {
		fmt.Println("child: turn")
		c.Next()
		return false
	})
}

func turns(ctx context.Context, db rowlock.DB, d dialect.Dialect) (*table.Store, error) {
	s, _, err := table.Open(ctx, db, sqlstore.Of(d),
		table.Options{Lanes: 1, Timeout: 5 * time.Second, Turns: true})
	return s, err
}

// during is how many grants each had while f ran.
func during(all []*contender, f func()) (grants []int64) {
	for _, c := range all {
		grants = append(grants, -c.grants.Load())
	}
	f()
	for i, c := range all {
		grants[i] += c.grants.Load()
	}
	return grants
}

// A process that is killed or stopped in its turn does not take the key, and no other waits for it.
func TestAProcessThatEndsInItsTurnKeepsTheKeyFromNoOther(t *testing.T) {
	for name, end := range map[string]func(c *servertest.Child){
		"killed": (*servertest.Child).Kill, "stopped": (*servertest.Child).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			eachWaking(t, func(s *servertest.Scene) {
				all, stop := contend(s, "busy", s.Client(), s.Client(), s.Client())
				defer stop()
				s.Eventually("turns", func() bool { return inTurns(s, "busy") >= 2 })
				child := s.Child("turn", "none", time.Minute)
				defer child.Kill()
				child.Send(fmt.Sprint(s.Env.Name, " ", s.Env.Dialect.Names().Prefix, " busy"))
				child.Expect("turn")
				end(child)
				again := make(chan error, 1)
				grants := during(all, func() {
					next, err := turns(s.Context(), s.Env.DB, s.Env.Kind.New(
						dialect.Prefix(s.Env.Dialect.Names().Prefix)))
					s.OK(err)
					defer func() { s.OK(next.Close()) }()
					began := time.Now()
					go func() { again <- next.Turns(s.Context(), "busy", func() bool { return false }) }()
					s.OK(servertest.Await(s, 20*time.Second, again, "the next turn"))
					s.Logf("the turn went on after %s", time.Since(began).Round(time.Millisecond))
					for _, c := range all {
						had := c.grants.Load()
						s.Eventually("a grant", func() bool { return c.grants.Load() > had })
					}
				})
				s.Logf("grants meanwhile: %v", grants)
				if slices.Min(grants) == 0 {
					s.Errorf("a process was starved: %v", grants)
				}
			})
		})
	}
}
