// Package adaptertest is for the tests of adapters: processes that contend for one key through a
// scheduler or another library, and that are killed in the middle.
package adaptertest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// TTL is that of the workers' locks.
const TTL = time.Second

const variable = "ROWLOCK_ADAPTER_WORKER"

// Main runs the tests, unless this process is a worker: that one works until its input ends.
func Main(m *testing.M, work func(ctx context.Context, w *Worker) error) {
	what := strings.Split(os.Getenv(variable), "\n")
	if len(what) != 3 {
		os.Exit(m.Run())
	}
	if err := serve(what[0], what[1], what[2], work); err != nil {
		fmt.Println("worker: failed", err)
		os.Exit(1)
	}
}

// Worker is a process that takes one key again and again.
type Worker struct {
	Kind    string // of the database, as testdb names it
	Locks   *rowlock.Client
	DB      *sql.DB
	Dialect dialect.Dialect

	env *testdb.Env
	in  *bufio.Scanner
	end context.CancelFunc
}

func serve(kind, prefix, source string, work func(context.Context, *Worker) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &Worker{Kind: kind, in: bufio.NewScanner(os.Stdin), end: cancel}
	for _, k := range testdb.Kinds {
		if k.Name == kind {
			w.env = &testdb.Env{Kind: k, Source: source, Dialect: k.New(dialect.Prefix(prefix))}
		}
	}
	db, err := sql.Open(w.env.Driver, source)
	if err != nil {
		return err
	}
	defer db.Close()
	w.DB, w.Dialect, w.env.DB = db, w.env.Dialect, db
	w.Locks, err = rowlock.Open(db, w.Dialect, &rowlock.Config{TTL: TTL})
	if err != nil {
		return err
	}
	defer w.Locks.Close()
	return work(ctx, w)
}

// Section is what the key protects. It reads a number, waits for the test, and writes the next one in
// a fenced transaction: a process that was beside it would write the same.
func (w *Worker) Section(ctx context.Context, l *rowlock.Lock) error {
	if l == nil {
		w.say("failed", "no lock reaches the section")
		return rowlock.ErrLost
	}
	n := 0
	last := `SELECT coalesce(max(n), 0) FROM ` + w.counter()
	if err := w.DB.QueryRowContext(ctx, last).Scan(&n); err != nil {
		return err
	}
	w.say("in", l.Token().String())
	if !w.in.Scan() {
		w.end()
		return errors.New("the test has ended")
	}
	err := w.write(ctx, l, n+1)
	switch {
	case err == nil:
		w.say("out", strconv.Itoa(n+1))
	case oneline.Is(err, rowlock.ErrFenced, rowlock.ErrLost, rowlock.ErrBusy, rowlock.ErrUnknown):
		w.say("refused", err.Error())
	default:
		w.say("failed", err.Error())
	}
	return err
}

// write writes a number, with the token under which it is written.
func (w *Worker) write(ctx context.Context, l *rowlock.Lock, n int) error {
	return l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, w.env.SQL(`INSERT INTO `+w.counter()+` (n, token, by_process) VALUES (?, ?, ?)`),
			n, int64(l.Token()), os.Getpid())
		return err
	})
}

func (w *Worker) counter() string { return counter(w.env) }

func counter(e *testdb.Env) string { return sqlstore.Of(e.Dialect).Names().Prefix + "counter" }

func (*Worker) say(what, more string) {
	fmt.Printf("worker: %s %s\n", what, strings.ReplaceAll(more, "\n", " "))
}
