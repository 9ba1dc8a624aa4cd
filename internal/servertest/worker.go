package servertest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// Job is what a child does. It has no test that it could fail: it prints its error.
type Job func(c *Worker) error

// ChildPoll is the PollMax of every child.
const ChildPoll = 50 * time.Millisecond

// Worker is the child's own view.
type Worker struct {
	DB    *sql.DB
	Locks *rowlock.Client
	SQL   func(string) string
	Table string
	lines *bufio.Scanner
}

// AtWork makes the test that calls it the child process, which does one of jobs. Other runs of
// the test are skipped.
func AtWork(t *testing.T, jobs map[string]Job) {
	t.Helper()
	what := strings.Split(os.Getenv("ROWLOCK_CHILD"), "\n")
	if len(what) != 7 {
		t.Skip("only for a child process")
	}
	defer driversEnd()
	k := KindNamed(what[1])
	ttl, _ := time.ParseDuration(what[4])
	db, err := sql.Open(k.Driver, what[5])
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d := k.New(dialect.Prefix(what[2]))
	locks, err := opened(func() (*rowlock.Client, error) {
		return rowlock.Open(db, d,
			Config(WithTTL(ttl), WithPoll(ChildPoll), modeNamed(what[6]).Set))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	env := &testdb.Env{Kind: k, Dialect: d}
	c := &Worker{db, locks, env.SQL, what[3], bufio.NewScanner(os.Stdin)}
	if err := jobs[what[0]](c); err != nil {
		fmt.Println("child:", err)
		return
	}
	fmt.Println("child: done")
}

// driversEnd waits for what drivers do after Close: pgx closes a connection whose statement it has
// interrupted beside its callers, for up to 15 s where a busy server takes its time.
func driversEnd() {
	for began := time.Now(); goleak.Find() != nil && time.Since(began) < Patience; {
	}
}

// opened opens again while the database is too busy to answer. The test shows what a child says on
// its standard error.
func opened(open func() (*rowlock.Client, error)) (locks *rowlock.Client, err error) {
	for began := time.Now(); time.Since(began) < Patience; {
		locks, err = open()
		if !errors.Is(err, rowlock.ErrBusy) && !errors.Is(err, rowlock.ErrUnknown) &&
			!errors.Is(err, context.DeadlineExceeded) {
			break
		}
		fmt.Fprintln(os.Stderr, "a child opens again:", err)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "a child cannot begin:", err)
	}
	return locks, err
}

// Next returns the next line that the test sends, "" at the end.
func (c *Worker) Next() string {
	c.lines.Scan()
	return c.lines.Text()
}

// Run runs SQL as testdb.Env.Exec takes it.
func (c *Worker) Run(tx execer, query string, args ...any) error {
	_, err := tx.ExecContext(context.Background(), c.SQL(query), args...)
	return err
}

// Hold locks each key that it receives and keeps all of them until the process ends.
func Hold(c *Worker) error {
	var held []*rowlock.Lock // or the locks would be released as forgotten
	defer func() { runtime.KeepAlive(held) }()
	for key := c.Next(); key != ""; key = c.Next() {
		l, err := c.Locks.Lock(context.Background(), key)
		if err != nil {
			return err
		}
		held = append(held, l)
		fmt.Println("child: held")
	}
	return nil
}

// KindNamed is the kind of database of that name.
func KindNamed(name string) testdb.Kind {
	for _, k := range testdb.Kinds {
		if k.Name == name {
			return k
		}
	}
	panic(name)
}
