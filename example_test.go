package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"expvar"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/schema"

	_ "modernc.org/sqlite"
)

// open makes a database with rowlock's tables and a client on it.
func open() (db *sql.DB, locks *rowlock.Client, done func()) {
	dir, err := os.MkdirTemp("", "rowlock")
	if err != nil {
		log.Fatal(err)
	}
	db, err = sqlite.Open(filepath.Join(dir, "app.db"))
	if err != nil {
		log.Fatal(err)
	}
	if err := schema.Migrate(context.Background(), db, sqlite.New()); err != nil {
		log.Fatal(err)
	}
	locks, err = rowlock.Open(db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	return db, locks, func() {
		_ = locks.Close()
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}
}

func ExampleClient_Do() {
	db, locks, done := open()
	defer done()

	err := locks.Do(context.Background(), "invoice/42", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := l.Fence(ctx, tx); err != nil {
			return err
		}
		fmt.Println("writing under a token:", l.Token() > 0) // the first is not always 1
		return tx.Commit()
	})
	fmt.Println(err)
	// Output:
	// writing under a token: true
	// <nil>
}

func ExampleClient_TryLock() {
	_, locks, done := open()
	defer done()
	ctx := context.Background()

	l, err := locks.TryLock(ctx, "report", rowlock.Note("nightly-report on web-3"), rowlock.TTL(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	defer l.Unlock(ctx)

	_, err = locks.TryLock(ctx, "report")
	var held *rowlock.HeldError
	if errors.As(err, &held) {
		fmt.Printf("held by %s for %s more\n", held.Note, held.Remaining.Round(time.Minute))
	}
	// Output:
	// held by nightly-report on web-3 for 1m0s more
}

// To ask for a lock and go on with other work, start a goroutine. A client has no other way to wait
// asynchronously, and needs none: however many goroutines wait, one statement polls for all.
func ExampleClient_Lock_asynchronous() {
	_, locks, done := open()
	defer done()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	nightly, err := locks.Lock(ctx, "report/0")
	if err != nil {
		log.Fatal(err)
	}

	waiting, ctx := errgroup.WithContext(ctx) // one that fails ends the others' waiting
	for range 10_000 {
		waiting.Go(func() error {
			return locks.Do(ctx, "report/0", func(context.Context, *rowlock.Lock) error {
				return errors.New("the first to get it has found nothing to report")
			})
		})
	}
	for locks.Stats().Waiting < 10_000 {
		time.Sleep(time.Millisecond) // … other work …
	}
	before := locks.Stats().Statements
	time.Sleep(time.Second) // some 5 polls, and 100 reads of SQLite's change counter
	fmt.Println("one poller:", locks.Stats().Statements-before < 200)
	_ = nightly.Unlock(ctx)
	fmt.Println(waiting.Wait())
	// Output:
	// one poller: true
	// the first to get it has found nothing to report
}

func ExampleClient_RLock() {
	db, locks, done := open()
	defer done()
	ctx := context.Background()

	for range 2 { // readers share the key
		r, err := locks.RLock(ctx, "prices")
		if err != nil {
			log.Fatal(err)
		}
		defer r.Unlock(ctx)
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			log.Fatal(err)
		}
		if err := r.Fence(ctx, tx); err != nil { // no writer comes between this and the commit
			log.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			log.Fatal(err)
		}
	}
	_, err := locks.TryLock(ctx, "prices")
	fmt.Println("a writer is refused:", errors.Is(err, rowlock.ErrHeld))
	// Output:
	// a writer is refused: true
}

func ExampleClient_LockAll() {
	db, locks, done := open()
	defer done()
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, `CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER);
		INSERT INTO account VALUES ('alice', 100), ('bob', 0)`); err != nil {
		log.Fatal(err)
	}

	transfer := func(from, to string, amount int) error {
		both, err := locks.LockAll(ctx, []string{"account/" + from, "account/" + to})
		if err != nil {
			return err
		}
		defer both.Unlock(ctx)
		tx, err := db.BeginTx(both.Context(), nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := both.Fence(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE account SET balance = balance + CASE name WHEN ? THEN ? ELSE ? END WHERE name IN (?, ?)`,
			to, amount, -amount, from, to); err != nil {
			return err
		}
		return tx.Commit()
	}
	fmt.Println(transfer("alice", "bob", 30), transfer("bob", "alice", 10))

	var alice, bob int
	if err := db.QueryRowContext(ctx, `SELECT a.balance, b.balance FROM account a, account b WHERE a.name < b.name`).Scan(&alice, &bob); err != nil {
		log.Fatal(err)
	}
	fmt.Println("alice has", alice, "and bob", bob)
	// Output:
	// <nil> <nil>
	// alice has 80 and bob 20
}

func ExampleClient_LockAny() {
	_, locks, done := open()
	defer done()
	ctx := context.Background()
	render := func(use func(slot string)) error {
		slot, err := locks.LockAny(ctx, []string{"gpu/0", "gpu/1", "gpu/2"})
		if err != nil {
			return err
		}
		defer slot.Unlock(ctx)
		use(slot.Key())
		return nil
	}
	err := render(func(first string) {
		_ = render(func(second string) { fmt.Println("two slots:", first != second) })
	})
	fmt.Println(err)
	// Output:
	// two slots: true
	// <nil>
}

func ExampleOnWait() {
	_, locks, done := open()
	defer done()
	nightly, err := locks.Lock(context.Background(), "report", rowlock.Note("nightly-report on web-3"))
	if err != nil {
		log.Fatal(err)
	}
	defer nightly.Unlock(context.Background())

	ctx, giveUp := context.WithCancel(context.Background())
	l, err := locks.Lock(ctx, "report", rowlock.OnWait(func(w rowlock.Waiting) {
		fmt.Printf("waiting behind %s, %d ahead of you\n", w.Holder, w.Ahead)
		giveUp()
	}))
	fmt.Println(l, errors.Is(err, rowlock.ErrHeld))
	// Output:
	// waiting behind nightly-report on web-3, 0 ahead of you
	// <nil> true
}

// expvar shows the numbers under /debug/vars. A collector for Prometheus is in examples/metrics.
func ExampleClient_Stats() {
	_, locks, done := open()
	defer done()
	expvar.Publish("rowlock", expvar.Func(func() any { return locks.Stats() }))

	l, err := locks.Lock(context.Background(), "report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held:", locks.Stats().Held)
	_ = l.Unlock(context.Background())
	fmt.Println("held:", locks.Stats().Held, "acquired:", locks.Stats().Acquired)
	// Output:
	// held: 1
	// held: 0 acquired: 1
}

// A dashboard shows who holds which report.
// A client writes its trace in batches; Close writes what is left.
func ExampleClient_Trace() {
	db, ops, done := open()
	defer done()
	ctx := context.Background()
	locks, err := rowlock.Open(db, sqlite.New(), &rowlock.Config{
		Trace: rowlock.TraceConfig{On: true, Retention: 7 * 24 * time.Hour},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, note := range []string{"monday", "tuesday"} {
		l, err := locks.Lock(ctx, "nightly", rowlock.Note(note))
		if err != nil {
			log.Fatal(err)
		}
		_ = l.Unlock(ctx)
	}
	_ = locks.Close()

	events, err := ops.Trace(ctx, rowlock.TraceFilter{Key: "nightly", Limit: 100})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range events { // latest first
		fmt.Println(e.Kind, e.Token, e.Note)
	}
	// Output:
	// granted 2 tuesday
	// granted 1 monday
}

func ExampleClient_Watch() {
	_, locks, done := open()
	defer done()
	ctx := context.Background()

	l, err := locks.Lock(ctx, "report/2026-11", rowlock.Note("monthly"))
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range locks.Watch(ctx, "report/") {
		if err != nil {
			log.Print(err) // the database is away; the iteration goes on
			continue
		}
		fmt.Println(e.Key, e.Kind, e.Note)
		if e.Kind == rowlock.EventReleased {
			break
		}
		_ = l.Unlock(ctx)
	}
	// Output:
	// report/2026-11 granted monthly
	// report/2026-11 released monthly
}

// An operator takes a key from a holder that is stuck. The holder may still run, and can write no
// more.
func ExampleClient_ForceRelease() {
	db, locks, done := open()
	defer done()
	ctx := context.Background()
	stuck, err := locks.Lock(ctx, "nightly")
	if err != nil {
		log.Fatal(err)
	}
	ops, err := rowlock.Open(db, sqlite.New(), &rowlock.Config{
		Identity: "ada@ops", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer ops.Close()

	took, err := ops.ForceRelease(ctx, "nightly", rowlock.Force{Reason: "stuck since Friday"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s took it: %s\n", took.By, took.Reason)

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	fmt.Println("the holder is fenced:", errors.Is(stuck.Fence(ctx, tx), rowlock.ErrFenced))
	// Output:
	// ada@ops took it: stuck since Friday
	// the holder is fenced: true
}

func ExampleClient_Namespace() {
	_, locks, done := open()
	defer done()
	ctx := context.Background()

	billing, err := locks.Namespace("billing", rowlock.Quota{Held: 100, Waiting: 20})
	if err != nil {
		log.Fatal(err)
	}
	month, err := billing.Lock(ctx, "month") // the key "billing/month"
	if err != nil {
		log.Fatal(err)
	}
	_, err = locks.TryLock(ctx, "billing/month")
	fmt.Println(month.Key(), errors.Is(err, rowlock.ErrHeld))
	if err := month.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: month true
}

func ExampleClient_DoTx() {
	_, locks, done := open()
	defer done()
	ctx := context.Background()

	err := locks.DoTx(ctx, "order/7", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `CREATE TABLE paid (id INTEGER PRIMARY KEY)`); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO paid VALUES (7)`)
		return err
	})
	fmt.Println(err) // the order is paid, and the lock is free
	// Output: <nil>
}

func ExampleLock_UnlockTx() {
	db, locks, done := open()
	defer done()
	ctx := context.Background()

	l, err := locks.Lock(ctx, "order/7")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Unlock(ctx)

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	// … write the order …
	if err := l.UnlockTx(ctx, tx); err != nil { // checks what Fence checks
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil { // now the order is there, and the lock is free
		log.Fatal(err)
	}
	again, err := locks.TryLock(ctx, "order/7")
	fmt.Println(again.Token() > l.Token(), err)
	// Output:
	// true <nil>
}

func ExampleLock_Context() {
	_, locks, done := open()
	defer done()

	l, err := locks.Lock(context.Background(), "leader", rowlock.MaxHold(100*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	<-l.Context().Done() // give this context to whatever must stop with the lock
	fmt.Println(context.Cause(l.Context()))
	// Output:
	// rowlock: held for the longest time allowed
}

// A menu is a tree. raise locks each node on its way down. So does total, which is called by itself
// elsewhere. Without Reentrant, total would wait for the very lock that raise holds; with it, total
// gets another handle of that lock.
func ExampleReentrant() {
	locks, err := rowlock.New(memstore.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	below := map[string][]string{"menu": {"soup", "mains"}, "mains": {"pasta", "fish"}}
	price := map[string]int{"soup": 6, "pasta": 12, "fish": 18}

	var total func(ctx context.Context, node string) (int, error)
	total = func(ctx context.Context, node string) (sum int, err error) {
		l, err := locks.Lock(ctx, "menu/"+node, rowlock.Reentrant())
		if err != nil {
			return 0, err
		}
		defer l.Unlock(ctx)
		sum = price[node]
		for _, child := range below[node] {
			n, err := total(l.Context(), child) // this context carries the locks down
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	}
	var raise func(ctx context.Context, node string) error
	raise = func(ctx context.Context, node string) error {
		l, err := locks.Lock(ctx, "menu/"+node, rowlock.Reentrant())
		if err != nil {
			return err
		}
		defer l.Unlock(ctx)
		if price[node] > 0 {
			price[node]++
		}
		for _, child := range below[node] {
			if err := raise(l.Context(), child); err != nil {
				return err
			}
		}
		sum, err := total(l.Context(), node) // locks this node again
		fmt.Println(node, "costs", sum)
		return err
	}
	fmt.Println(raise(context.Background(), "menu"))
	// Output:
	// soup costs 7
	// pasta costs 13
	// fish costs 19
	// mains costs 32
	// menu costs 39
	// <nil>
}

// A call that would wait for itself is refused at once.
func ExampleDeadlockError() {
	locks, err := rowlock.New(memstore.New(), &rowlock.Config{Debug: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	l, err := locks.Lock(context.Background(), "menu/soup")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Unlock(context.Background())
	_, err = locks.Lock(l.Context(), "menu/soup")
	var deadlock *rowlock.DeadlockError
	if errors.As(err, &deadlock) {
		taken, _, _ := strings.Cut(deadlock.Where, " ")
		fmt.Println(deadlock.Key, "is held already, taken by", path.Base(taken))
	}
	// Output:
	// menu/soup is held already, taken by rowlock_test.ExampleDeadlockError
}

// Two processes lock two accounts, each in another order. One of them is told, unlocks what it
// holds and begins again.
func ExampleDeadlockError_cycle() {
	ctx, store := context.Background(), memstore.New()
	var both sync.WaitGroup // hold their first account
	both.Add(2)
	meet := func() func() { return sync.OnceFunc(func() { both.Done(); both.Wait() }) }
	move := func(c *rowlock.Client, from, to string, meet func()) error {
		l, err := c.Lock(ctx, from)
		if err != nil {
			return err
		}
		defer l.Unlock(ctx)
		meet()
		m, err := c.Lock(l.Context(), to)
		if err != nil {
			return err
		}
		return m.Unlock(ctx)
	}
	told := make(chan int, 2)
	process := func(name, from, to string) {
		c, err := rowlock.New(store, &rowlock.Config{Identity: name})
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		times, once := 0, meet()
		for err = move(c, from, to, once); errors.Is(err, rowlock.ErrDeadlock); times++ {
			err = move(c, from, to, once) // all is unlocked: begin again
		}
		told <- times
	}
	go process("web-1", "a", "b")
	go process("web-2", "b", "a")
	fmt.Println("both have moved, and", <-told+<-told, "was told")
	// Output:
	// both have moved, and 1 was told
}

// An import may take hours, but no row of it takes more than a moment.
func ExampleMaxIdle() {
	locks, err := rowlock.New(memstore.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()

	l, err := locks.Lock(ctx, "import", rowlock.MaxIdle(500*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	defer l.Unlock(ctx)
	for row := range 3 {
		// … import the row …
		if err := l.Progress(); err != nil { // cheap: nothing is sent
			log.Fatal(err)
		}
		fmt.Println("imported row", row)
	}
	<-l.Context().Done() // the next row hangs
	fmt.Println(context.Cause(l.Context()))
	// Output:
	// imported row 0
	// imported row 1
	// imported row 2
	// rowlock: no progress for the longest time allowed
}

// A job that runs once an hour, on whichever server comes first, and again at once if it has
// failed.
func ExampleLock_UnlockNow() {
	locks, err := rowlock.New(memstore.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()

	tick := func(job func() error) error {
		l, err := locks.TryLock(ctx, "hourly", rowlock.MinHold(50*time.Minute))
		if err != nil {
			return err // another server has run it, or does
		}
		defer l.Unlock(ctx) // leaves the key locked for the rest of the 50 minutes
		if err := job(); err != nil {
			_ = l.UnlockNow(ctx) // does not: another server may try
			return err
		}
		return nil
	}
	fmt.Println(tick(func() error { return errors.New("no disk space") }))
	fmt.Println(tick(func() error { return nil }))
	fmt.Println(errors.Is(tick(func() error { return nil }), rowlock.ErrHeld))
	// Output:
	// no disk space
	// <nil>
	// true
}

func Example_schemaForOtherTools() {
	d := postgres.New(dialect.Prefix("billing_"), dialect.Schema("locks"))
	up, down, err := schema.SQL(d)
	if err != nil {
		log.Fatal(err)
	}
	_ = os.WriteFile(filepath.Join(os.TempDir(), "0007_rowlock.up.sql"), []byte(up), 0o600)
	_ = os.WriteFile(filepath.Join(os.TempDir(), "0007_rowlock.down.sql"), []byte(down), 0o600)
}

// The calls that the documentation lists, for the compiler.
func Example_calls() {
	db, locks, done := open()
	defer done()
	ctx := context.Background()
	wait := func() {
		l, err := locks.Lock(ctx, "invoice/42")
		fmt.Println(l, err)
	}
	try := func(tx *sql.Tx, f func(context.Context, *sql.Tx) error) {
		l, err := locks.TryLock(ctx, "invoice/42")
		fmt.Println(err)
		defer l.Unlock(ctx)

		l.Token()
		l.Context()
		l.Fence(ctx, tx)
		l.DoTx(ctx, f)
		l.UnlockTx(ctx, tx)
	}
	tx, _ := db.Begin()
	wait()
	try(tx, nil)
}
