package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
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

// slowest is how long a lock and an unlock may take while a table changes: the wait of one attempt.
// A busy machine adds what it adds to those on tables that do not change. The reader goes on for
// longer. A third of the TTL, which is longer, bounds each statement.
const slowest = 5 * time.Second

// replica is a service of this version whose tables change, and what it has met.
type replica struct {
	*testing.T
	server
	db                        *sql.DB
	elsewhere                 *servertest.Pulse
	pairs, renewals, restarts atomic.Int64
	took                      atomic.Int64 // by the slowest pair
}

// open opens a client, whose renewals and releases must all succeed.
func (r *replica) open() *rowlock.Client {
	c, err := rowlock.Open(r.db, r.dialect(), &rowlock.Config{
		TTL: 6 * slowest, RenewEvery: 500 * time.Millisecond,
		Hooks: rowlock.Hooks{
			Renewed:      func(context.Context, int, time.Duration) { r.renewals.Add(1) },
			RenewFailed:  func(_ context.Context, err error, _ int) { r.Errorf("a renewal failed: %v", err) },
			UnlockFailed: func(_ context.Context, key string, _ rowlock.Token, err error) { r.Errorf("%q: %v", key, err) },
			Lost:         func(_ context.Context, key string, _ rowlock.Token, err error) { r.Errorf("%q: %v", key, err) },
		},
	})
	if err != nil {
		r.Errorf("a process that starts is refused: %v", err)
	}
	return c
}

// pulseOf is that of tables on the same server that no process migrates.
func pulseOf(t *testing.T, s server) *servertest.Pulse {
	t.Helper()
	k := testdb.Kinds[slices.IndexFunc(testdb.Kinds, func(k testdb.Kind) bool { return k.Name == s.name })]
	return (&servertest.Scene{T: t, Env: k.Open(t)}).Pulse()
}

// pair locks a key and unlocks it.
func (r *replica) pair(c *rowlock.Client, key string) bool {
	began := time.Now()
	l, err := c.Lock(context.Background(), key)
	if err == nil {
		err = l.Unlock(context.Background())
	}
	took := time.Since(began)
	if err != nil || took > r.elsewhere.Allow(slowest) {
		r.Errorf("a lock and an unlock took %s: %v", took, err)
		return false
	}
	r.pairs.Add(1)
	for longest := r.took.Load(); int64(took) > longest && !r.took.CompareAndSwap(longest, int64(took)); {
		longest = r.took.Load()
	}
	return true
}

// restart has processes start and end, one after the other, until ctx ends.
func (r *replica) restart(ctx context.Context) {
	for ctx.Err() == nil {
		c := r.open()
		if c == nil || !r.pair(c, "key 0") {
			return
		}
		if err := c.Close(); err != nil {
			r.Error(err)
		}
		r.restarts.Add(1)
	}
}

// long is how long the reader goes on in any case.
func long() time.Duration {
	if os.Getenv("ROWLOCK_TEST_WHOLE") != "" {
		return 30 * time.Second
	}
	return 0
}

// A change of a table waits for every transaction that has read it, and all later statements wait
// for the change. A migration to the next version must not make them wait for as long as the reader
// goes on: two attempts, and with ROWLOCK_TEST_WHOLE 30 s.
func TestALongReaderHoldsUpNoClient(t *testing.T) {
	told := tellAttempts(t)
	for _, s := range []server{onPostgres, onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) {
			r := &replica{T: t, server: s, db: s.open(t), elsewhere: pulseOf(t, s)}
			migrate(t, s, r.db)
			c := r.open()
			if c == nil {
				return
			}
			renewed, err := c.Lock(t.Context(), "renewed")
			if err != nil {
				t.Fatal(err)
			}
			end, began := reading(t, r.db), time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var workers sync.WaitGroup
			for worker := range 4 {
				workers.Go(func() {
					for ctx.Err() == nil && r.pair(c, fmt.Sprintf("key %d", worker)) {
					}
				})
			}
			workers.Go(func() { r.restart(ctx) })
			verb := "change for " + s.name
			again, changed := told.of(verb), make(chan error)
			go func() {
				changed <- schema.Run(t.Context(), r.db, s.dialect(), verb,
					"ALTER TABLE rowlock ADD COLUMN extra INTEGER NULL;\n"+fmt.Sprintf(versions, schema.Version, schema.Version+1))
			}()
			attempts := 0
			for ; attempts < 2 || time.Since(began) < long(); attempts++ {
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
			open := time.Since(began)
			end()
			if err := <-changed; err != nil {
				t.Error(err)
			}
			for before := r.restarts.Load(); r.restarts.Load() < before+2 && !t.Failed(); {
				time.Sleep(time.Millisecond)
			}
			cancel()
			workers.Wait()
			if err := errors.Join(renewed.Unlock(t.Context()), c.Close()); err != nil {
				t.Error(err)
			}
			one[int](t, r.db, "SELECT COUNT(extra) FROM rowlock")
			t.Logf("a reader of %s, %d attempts: %d pairs, the slowest %s, %d renewals, %d restarts", open.Round(time.Second),
				attempts, r.pairs.Load(), time.Duration(r.took.Load()), r.renewals.Load(), r.restarts.Load())
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
			var err error
			// On a busy machine the first may be over before an attempt is.
			for lasts := 4 * time.Second; lasts < 2*time.Minute; lasts *= 2 {
				ctx, cancel := context.WithTimeout(t.Context(), lasts)
				err = schema.Down(ctx, db, s.dialect())
				cancel()
				if err == nil || strings.Contains(err.Error(), "by session ") {
					break
				}
			}
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
