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
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// TTL is that of the workers' locks.
const TTL = time.Second

const variable = "ROWLOCK_ADAPTER_WORKER"

// Main runs the tests, unless this process is a worker: that one works until its input ends. After
// the tests it removes folders.
func Main(m *testing.M, work func(ctx context.Context, w *Worker) error, folders ...*string) {
	what := strings.Split(os.Getenv(variable), "\n")
	if len(what) != 4 {
		if race.Enabled {
			runtime.GOMAXPROCS(1) // see bubbles.Main
		}
		code := m.Run()
		for _, f := range folders {
			_ = os.RemoveAll(*f)
		}
		os.Exit(code)
	}
	for in := bufio.NewScanner(os.Stdin); ; {
		switch err := serve(what, in, work); {
		case err == nil:
			return
		case !Passes(err):
			fmt.Println("worker: failed", err)
			os.Exit(1)
		}
	}
}

// Passes reports whether err is one that a process meets without a fault of anybody's: another was
// killed, or the machine is slow and a lease short. It begins anew.
func Passes(err error) bool {
	return oneline.Is(err, rowlock.ErrFenced, rowlock.ErrLost, rowlock.ErrBusy, rowlock.ErrUnknown,
		adapter.ErrLate, context.DeadlineExceeded)
}

// Worker is a process that takes one key again and again.
type Worker struct {
	Kind    string // of the database, as testdb names it
	Role    string // as Go was given it
	Locks   *rowlock.Client
	DB      *sql.DB
	Dialect dialect.Dialect

	env *testdb.Env
	in  *bufio.Scanner
	end context.CancelFunc
}

func serve(what []string, in *bufio.Scanner, work func(context.Context, *Worker) error) error {
	kind, prefix, source, role := what[0], what[1], what[2], what[3]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &Worker{Kind: kind, Role: role, in: in, end: cancel}
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
	return w.section(ctx, l.Token().String(), func(n int) error { return w.write(ctx, l, n) })
}

// Unfenced is Section under a lock without a token, if it is held until the section has waited.
func (w *Worker) Unfenced(ctx context.Context, held func() error) error {
	return w.section(ctx, "0", func(n int) error {
		if err := held(); err != nil {
			return err
		}
		_, err := w.DB.ExecContext(ctx, w.insert(), n, 0, os.Getpid())
		return err
	})
}

func (w *Worker) section(ctx context.Context, token string, write func(n int) error) error {
	n := 0
	last := `SELECT coalesce(max(n), 0) FROM ` + w.counter()
	if err := w.DB.QueryRowContext(ctx, last).Scan(&n); err != nil {
		return err
	}
	w.say("in", token)
	if !w.in.Scan() {
		w.end()
		return errors.New("the test has ended")
	}
	err := write(n + 1)
	switch {
	case err == nil:
		w.say("out", strconv.Itoa(n+1))
	case Passes(err):
		w.say("refused", err.Error())
	default:
		w.say("failed", err.Error())
	}
	return err
}

// write writes a number, with the token under which it is written.
func (w *Worker) write(ctx context.Context, l *rowlock.Lock, n int) error {
	return l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, w.insert(), n, int64(l.Token()), os.Getpid())
		return err
	})
}

func (w *Worker) insert() string {
	return w.env.SQL(`INSERT INTO ` + w.counter() + ` (n, token, by_process) VALUES (?, ?, ?)`)
}

func (w *Worker) counter() string { return counter(w.env) }

func counter(e *testdb.Env) string { return sqlstore.Of(e.Dialect).Names().Prefix + "counter" }

func (*Worker) say(what, more string) {
	fmt.Printf("worker: %s %s\n", what, strings.ReplaceAll(more, "\n", " "))
}
