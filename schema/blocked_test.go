package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// attempts counts what migrations tell of themselves, by their verb.
type attempts struct {
	slog.Handler
	mu   sync.Mutex
	seen map[string]chan string
}

func (a *attempts) Enabled(context.Context, slog.Level) bool { return true }

func (a *attempts) Handle(_ context.Context, r slog.Record) error {
	by := ""
	r.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "kept_by" {
			by = attr.Value.String()
		}
		return true
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	for verb, told := range a.seen {
		if strings.Contains(r.Message, verb) {
			told <- by
		}
	}
	return nil
}

// of returns a channel of the sessions that kept each attempt with this verb from running.
func (a *attempts) of(verb string) <-chan string {
	a.mu.Lock()
	defer a.mu.Unlock()
	told := make(chan string, 100)
	a.seen[verb] = told
	return told
}

func tellAttempts(t *testing.T) *attempts {
	a := &attempts{Handler: slog.DiscardHandler, seen: map[string]chan string{}}
	before := slog.Default()
	slog.SetDefault(slog.New(a))
	t.Cleanup(func() { slog.SetDefault(before) })
	return a
}

// reading is a transaction that has read the table of locks, as a backup does, until end is called.
func reading(t *testing.T, db *sql.DB) (end func()) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM rowlock").Scan(&n); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() { _ = tx.Rollback() })
	t.Cleanup(end)
	return end
}

// slowest is how long a lock and an unlock may take while a table changes: the wait of one attempt,
// and what a busy machine adds.
const slowest = 3 * time.Second

// work locks and unlocks a key until ctx ends.
func work(ctx context.Context, c *rowlock.Client, worker int) error {
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		l, err := c.Lock(context.WithoutCancel(ctx), fmt.Sprintf("key %d", worker))
		if err == nil {
			err = l.Unlock(context.WithoutCancel(ctx))
		}
		if err != nil {
			return err
		}
		if took := time.Since(began); took > slowest {
			return fmt.Errorf("a lock and an unlock took %s", took)
		}
	}
	return nil
}

// A change of a table waits for every transaction that has read it, and all later statements wait
// for the change. A migration must not make them wait for as long as the reader goes on.
func TestALongReaderHoldsUpNoClient(t *testing.T) {
	told := tellAttempts(t)
	for _, s := range []server{onPostgres, onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) {
			db := s.open(t)
			migrate(t, s, db)
			c, err := rowlock.Open(db, s.dialect(), &rowlock.Config{TTL: 6 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			renewed, err := c.Lock(t.Context(), "renewed")
			if err != nil {
				t.Fatal(err)
			}
			end := reading(t, db)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var workers sync.WaitGroup
			for worker := range 4 {
				workers.Go(func() {
					if err := work(ctx, c, worker); err != nil {
						t.Error(err)
					}
				})
			}
			verb := "change for " + s.name
			again, changed := told.of(verb), make(chan error)
			go func() {
				changed <- schema.Run(t.Context(), db, s.dialect(), verb,
					"ALTER TABLE rowlock ADD COLUMN extra INTEGER NULL;\n")
			}()
			for range 2 {
				select {
				case by := <-again:
					if !strings.Contains(by, "session") {
						t.Errorf("kept from running by %q", by)
					}
				case err := <-changed:
					t.Fatalf("the change has not waited for the reader: %v", err)
				case <-time.After(time.Minute):
					t.Fatal("the change waits for the reader, and every client for the change")
				}
			}
			end()
			if err := <-changed; err != nil {
				t.Error(err)
			}
			cancel()
			workers.Wait()
			if err := renewed.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			one[int](t, db, "SELECT COUNT(extra) FROM rowlock")
		})
	}
}

// With a deadline a migration says at its end which session kept it from running, and leaves no
// lock. Down waits in the same way.
func TestABlockedMigrationNamesTheSession(t *testing.T) {
	for _, s := range []server{onPostgres, onMySQL} {
		on(t, s, func(t *testing.T, s server) {
			t.Parallel()
			db := s.open(t)
			migrate(t, s, db)
			end := reading(t, db)
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			err := schema.Down(ctx, db, s.dialect())
			if !errors.Is(err, lease.ErrBusy) || !strings.Contains(err.Error(), "by session ") {
				t.Errorf("got %v, want ErrBusy that names the session", err)
			}
			end()
			if err := schema.Down(t.Context(), db, s.dialect()); err != nil {
				t.Error(err)
			}
		})
	}
}
