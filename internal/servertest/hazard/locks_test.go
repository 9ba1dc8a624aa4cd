package hazard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func asItIs(*rowlock.Config) {}

// bank is balances that only the locks protect: what is written in between is lost, and the sum
// is wrong.
type bank struct {
	mu       sync.Mutex // for the race detector only: each access by itself
	balances []int
}

func (b *bank) read(i int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.balances[i]
}

func (b *bank) write(i, v int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.balances[i] = v
}

func (b *bank) move(from, to, amount int) {
	f, t := b.read(from), b.read(to)
	time.Sleep(100 * time.Microsecond)
	if from != to {
		b.write(from, f-amount)
		b.write(to, t+amount)
	}
}

// Clerks of two clients lock pairs of accounts in any order, beside clerks that lock one: all
// finish, and no money is lost.
func TestTransfersBetweenAccountsLoseNothingAndAllFinish(t *testing.T) {
	const accounts, clerks, each = 6, 8, 12
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		clients := []*rowlock.Client{
			servertest.Open(t, e.DB, e, asItIs), servertest.Open(t, e.Pool(t), e, asItIs),
		}
		b := &bank{balances: make([]int, accounts)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		var wg sync.WaitGroup
		for clerk := range clerks {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(3, uint64(clerk)))
				for range each {
					from, to := rng.IntN(accounts), rng.IntN(accounts)
					if clerk < 2 {
						to = from
					}
					if err := b.transfer(ctx, clients[clerk%2], from, to, clerk < 2); err != nil {
						t.Errorf("clerk %d from %d to %d: %v", clerk, from, to, err)
						return
					}
				}
			})
		}
		wg.Wait()
		sum := 0
		for _, v := range b.balances {
			sum += v
		}
		if sum != 2*each {
			t.Errorf("%d was paid in, and the accounts have %d", 2*each, sum)
		}
		t.Logf("%d transfers in %s", clerks*each, time.Since(began).Round(time.Millisecond))
	})
}

// transfer moves money between two accounts, or pays some into one.
func (b *bank) transfer(ctx context.Context, c *rowlock.Client, from, to int, pay bool) error {
	key := func(i int) string { return fmt.Sprint("account/", i) }
	if pay {
		return c.Do(ctx, key(from), func(context.Context, *rowlock.Lock) error {
			had := b.read(from)
			time.Sleep(100 * time.Microsecond)
			b.write(from, had+1)
			return nil
		})
	}
	both, err := c.LockAll(ctx, []string{key(from), key(to)})
	if err != nil {
		return err
	}
	b.move(from, to, 1)
	return both.Unlock(ctx)
}

// Ten keys cost one statement on a server whose dialect can lock them together, and a loser sends
// one statement too.
func TestTenKeysAreLockedInOneStatement(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		var log faultdb.Log
		db, err := faultdb.Open(e.Driver, e.Source, &log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		c := servertest.Open(t, db, e, func(c *rowlock.Config) { c.Hints = rowlock.HintsOff })
		keys := make([]string, 10)
		for i := range keys {
			keys[i] = fmt.Sprint("key", i)
		}
		for range 2 { // the first makes the rows, and has everything prepared
			clienttest.UnlockAll(t, clienttest.TakeAll(t, c, keys...))
		}
		log.Reset()
		l := clienttest.TakeAll(t, c, keys...)
		n := log.Count(faultdb.Op.Executes)
		if e.Dialect.Name() != "postgres" && n > 1 {
			t.Skipf("the dialect takes them one by one, in %d statements", n)
		}
		if n != 1 {
			t.Errorf("%d statements: %q", n, log.Queries())
		}
		log.Reset()
		before := rows(t, e)
		if _, err := c.TryLockAll(t.Context(), append(keys[5:], "another")); !errors.Is(err,
			rowlock.ErrHeld) {
			t.Errorf("got %v", err)
		}
		if n := log.Count(faultdb.Op.Executes); n != 1 || rows(t, e) != before {
			t.Errorf("a loser sent %d statements, and the rows were\n%s and are\n%s", n, before, rows(t, e))
		}
		clienttest.UnlockAll(t, l)
	})
}

// rows are all rows, with what would change if they were written.
func rows(t *testing.T, e *testdb.Env) string {
	t.Helper()
	version := map[string]string{"postgres": "xmin::text || ' ' || xmax::text"}[e.Dialect.Name()]
	if version == "" {
		version = "''"
	}
	found, err := e.DB.QueryContext(t.Context(),
		e.SQL(`SELECT {key}, owner, token, expires_at, `+version+` FROM {rowlock} ORDER BY {key}`))
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	var all strings.Builder
	for found.Next() {
		var key, owner, expires, version sql.RawBytes
		var token rowlock.Token
		if err := found.Scan(&key, &owner, &token, &expires, &version); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %x %d %s %s\n", key, owner, token, expires, version)
	}
	return all.String()
}
