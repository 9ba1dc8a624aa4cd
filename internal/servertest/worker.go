package servertest

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// job is what a child does. Its scene has no test behind it that could fail: what goes wrong, it says.
type Job func(c *Worker) error

// childPoll is the PollMax of every child.
const ChildPoll = 50 * time.Millisecond

// colleague is the child's own view.
type Worker struct {
	DB    *sql.DB
	Locks *rowlock.Client
	SQL   func(string) string
	Table string
	lines *bufio.Scanner
}

// atWork makes the test that calls it the child: it does one of jobs.
func AtWork(t *testing.T, jobs map[string]Job) {
	t.Helper()
	what := strings.Split(os.Getenv("ROWLOCK_CHILD"), "\n")
	if len(what) != 7 {
		t.Skip("only for a child process")
	}
	k := KindNamed(what[1])
	ttl, _ := time.ParseDuration(what[4])
	db, err := sql.Open(k.Driver, what[5])
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d := k.New(dialect.Prefix(what[2]))
	locks, err := rowlock.Open(db, d, Config(WithTTL(ttl), WithPoll(ChildPoll), modeNamed(what[6]).Set))
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

// next is the next line it is told, "" at the end.
func (c *Worker) Next() string {
	c.lines.Scan()
	return c.lines.Text()
}

func (c *Worker) Run(tx execer, query string, args ...any) error {
	_, err := tx.ExecContext(context.Background(), c.SQL(query), args...)
	return err
}

// holding holds the keys it is told, all at once, until it is no more.
func Hold(c *Worker) error {
	for key := c.Next(); key != ""; key = c.Next() {
		if _, err := c.Locks.Lock(context.Background(), key); err != nil {
			return err
		}
		fmt.Println("child: held")
	}
	return nil
}

func KindNamed(name string) testdb.Kind {
	for _, k := range testdb.Kinds {
		if k.Name == name {
			return k
		}
	}
	panic(name)
}

// tallyOnce reads, and then writes what it has made of it.
func (c *Worker) TallyOnce(ctx context.Context, l *rowlock.Lock) error {
	var n, token int64
	if err := c.DB.QueryRowContext(ctx, `SELECT n, token FROM `+c.Table).Scan(&n, &token); err != nil {
		return err
	}
	if token >= l.Token() {
		return fmt.Errorf("granted with token %d after %d", l.Token(), token)
	}
	return c.Run(c.DB, `UPDATE `+c.Table+` SET n = ?, token = ?`, n+1, l.Token())
}
