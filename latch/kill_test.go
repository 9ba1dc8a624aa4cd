package latch_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/latch"
)

// child is this program as another process, with a job.
type child struct {
	tb  testing.TB
	cmd *exec.Cmd
	out *bufio.Scanner
}

func (r *rig) child(tb testing.TB, job string) *child {
	tb.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildAtWork$")
	what := []string{r.Name, r.Dialect.Names().Prefix, r.Source, job}
	cmd.Env = append(os.Environ(), "ROWLOCK_LATCH_CHILD="+strings.Join(what, "\n"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ok(tb, err)
	ok(tb, cmd.Start())
	c := &child{tb, cmd, bufio.NewScanner(out)}
	tb.Cleanup(c.kill)
	return c
}

// said returns what the child says next, or "" if it has gone.
func (c *child) said() string {
	for c.out.Scan() {
		if said, ok := strings.CutPrefix(c.out.Text(), "child: "); ok {
			return said
		}
	}
	return ""
}

func (c *child) expect(what string) {
	c.tb.Helper()
	if said := c.said(); said != what {
		c.tb.Errorf("the child said %q, want %q", said, what)
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// TestChildAtWork is the child.
func TestChildAtWork(t *testing.T) {
	what := strings.Split(os.Getenv("ROWLOCK_LATCH_CHILD"), "\n")
	if len(what) != 4 {
		t.Skip("only for a child process")
	}
	kind := testdb.Kinds[slices.IndexFunc(testdb.Kinds, func(k testdb.Kind) bool { return k.Name == what[0] })]
	db, err := sql.Open(kind.Driver, what[2])
	ok(t, err)
	env := &testdb.Env{Kind: kind, DB: db, Dialect: kind.New(dialect.Prefix(what[1])), Source: what[2]}
	s := (&rig{env}).open(t, db, latch.Config{Sweep: -1, Connections: 1, Alive: 3 * time.Second})
	jobs[what[3]](t, s, db)
	select {}
}

func say(what ...any) { fmt.Println(append([]any{"child:"}, what...)...) }

const many = 1000

var jobs = map[string]func(t *testing.T, s *latch.Latches, db *sql.DB){
	// counts, and dies before it tells what it has done
	"counts": func(t *testing.T, s *latch.Latches, _ *sql.DB) {
		l := opened(t, s, "l", many)
		say("begins")
		for party := range many {
			ok(t, l.CountDown(context.Background(), fmt.Sprint(party)))
			say("counted", party)
		}
	},
	// counts in a transaction that is never committed
	"open": func(t *testing.T, s *latch.Latches, db *sql.DB) {
		l := opened(t, s, "l", 1)
		tx, err := db.Begin()
		ok(t, err)
		ok(t, l.CountDownTx(context.Background(), tx, "x"))
		say("counted")
	},
	"committed": func(t *testing.T, s *latch.Latches, db *sql.DB) {
		l := opened(t, s, "l", 1)
		tx, err := db.Begin()
		ok(t, err)
		ok(t, l.CountDownTx(context.Background(), tx, "x"))
		ok(t, tx.Commit())
		say("counted")
	},
	// enters a barrier
	"enters": func(t *testing.T, s *latch.Latches, _ *sql.DB) {
		b := barrier(t, s, 2)
		say("enters")
		err := b.Enter(context.Background(), "child")
		say("entered", err)
	},
}

// A process is killed anywhere between counting and telling. What it told is so, and its successor
// counts the same parties again, to the same end.
func TestAKilledProcessHasCountedWhatItTold(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		l := opened(t, r.process(t), "l", many)
		told, deadline := -1, 0
		for range 4 {
			c := r.child(t, "counts")
			c.expect("begins")
			deadline = min(told+1+rand.IntN(150), many-1) // a fast child may have told of all
			last := -1
			for last < deadline {
				if _, err := fmt.Sscanf(c.said(), "counted %d", &last); err != nil {
					t.Fatal(err)
				}
			}
			ok(t, c.cmd.Process.Kill())
			for said := c.said(); said != ""; said = c.said() {
				_, _ = fmt.Sscanf(said, "counted %d", &last)
			}
			told = max(told, last)
			if lacks, err := l.Count(t.Context()); err != nil || many-lacks < told+1 || many-lacks > told+2 {
				t.Errorf("%d have counted, and %d were told; %v", many-lacks, told+1, err)
			}
		}
		for party := range many {
			ok(t, l.CountDown(t.Context(), fmt.Sprint(party)))
		}
		wantCount(t, l, 0)
		ok(t, l.Await(soon(t)))
	})
}

func TestAKilledTransactionHasCountedIfItWasCommitted(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		l := opened(t, r.process(t), "l", 1)
		c := r.child(t, "open")
		c.expect("counted")
		c.kill()
		wantCount(t, l, 1)
		notOpen(t, l)
		c = r.child(t, "committed")
		c.expect("counted")
		c.kill()
		ok(t, l.Await(soon(t)))
	})
}

func TestAKilledPartyBreaksTheBarrierOfTheOthers(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		b := barrier(t, r.process(t), 2)
		for _, inside := range []bool{false, true} {
			c := r.child(t, "enters")
			c.expect("enters")
			if inside {
				ok(t, b.Enter(soon(t), "here"))
				c.expect("entered <nil>")
				c.kill()
				wantIs(t, b.Leave(soon(t), "here"), latch.ErrBroken)
				continue
			}
			r.entered(t, 1)
			c.kill()
			err := b.Enter(soon(t), "here") // two have entered, if the dead had not died
			if err == nil {
				err = b.Leave(soon(t), "here") // it died inside
			}
			wantIs(t, err, latch.ErrBroken)
			ok(t, b.Reset(t.Context()))
			r.Exec(t, `DELETE FROM {rowlock_party}`)
		}
	})
}
