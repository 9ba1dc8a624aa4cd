// Package pace measures locks on an operator's own server, beside the least statements that a lease
// in a row needs. Its tables are its own.
package pace

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed *.sql
var files embed.FS

// Raw are hand-written statements on a set of tables.
type Raw struct {
	db         *sql.DB
	statements sqlstore.Sections
}

// NewRaw returns the statements of a dialect.
func NewRaw(db *sql.DB, d *sqlstore.Dialect) *Raw {
	text, err := files.ReadFile(d.Name() + ".sql")
	if err != nil {
		panic(err)
	}
	return &Raw{db: db, statements: d.Parse(string(text))}
}

// errTaken says that a statement has changed no row.
var errTaken = errors.New("rowlock: bench: a row of its own was changed by another process")

// Pairs returns how many pairs of statements a second so many connections do, each with a row of
// its own, for d.
func (r *Raw) Pairs(ctx context.Context, connections int, d time.Duration) (float64, error) {
	return rate(ctx, connections, d, func(ctx context.Context, n int) (func() error, func(), error) {
		conn, err := r.db.Conn(ctx)
		if err != nil {
			return nil, nil, err
		}
		end := func() { _ = conn.Close() }
		key, owner := fmt.Appendf(nil, "raw/%d/%d", connections, n), lease.NewOwner()
		if _, err := conn.ExecContext(ctx, r.statements["make"], key); err != nil {
			return nil, end, err
		}
		take, err := conn.PrepareContext(ctx, r.statements["take"])
		if err != nil {
			return nil, end, err
		}
		clearing, err := conn.PrepareContext(ctx, r.statements["clear"])
		return func() error {
			return errors.Join(one(take.Exec(owner[:], key)), one(clearing.Exec(key, owner[:])))
		}, end, err
	})
}

func one(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(errTaken, err)
	}
	return nil
}

// Pairs returns how many pairs of Lock and Unlock a second so many goroutines do, each with a key
// of its own, for d.
func Pairs(ctx context.Context, c *rowlock.Client, goroutines int, d time.Duration) (float64, error) {
	return rate(ctx, goroutines, d, func(ctx context.Context, n int) (func() error, func(), error) {
		key := fmt.Sprintf("lock/%d/%d", goroutines, n)
		return func() error {
			l, err := c.Lock(ctx, key)
			if err != nil {
				return err
			}
			return l.Unlock(ctx)
		}, func() {}, nil
	})
}

// rate counts what so many goroutines do in d, each after its own preparation.
func rate(ctx context.Context, goroutines int, d time.Duration,
	prepare func(ctx context.Context, n int) (do func() error, end func(), err error),
) (float64, error) {
	var all sync.WaitGroup
	counts, errs := make([]int, goroutines), make([]error, goroutines)
	dos := make([]func() error, goroutines)
	for n := range goroutines {
		do, end, err := prepare(ctx, n)
		if end != nil {
			defer end()
		}
		if err != nil {
			return 0, err
		}
		dos[n] = do
	}
	start := time.Now()
	for n := range goroutines {
		all.Go(func() {
			for errs[n] == nil && ctx.Err() == nil && time.Since(start) < d {
				if errs[n] = dos[n](); errs[n] == nil {
					counts[n]++
				}
			}
		})
	}
	all.Wait()
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return float64(sum) / time.Since(start).Seconds(), errors.Join(append(errs, ctx.Err())...)
}

// HandOvers passes a key between two clients for d. It returns the times from the call of Unlock to
// the return of the other's Lock: their median and their 99th percentile.
func HandOvers(ctx context.Context, a, b *rowlock.Client, d time.Duration) (p50, p99 time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, d+time.Minute)
	defer cancel()
	var took []time.Duration
	holder, err := a.Lock(ctx, "hand-over")
	next, other := b, a
	for start := time.Now(); err == nil && time.Since(start) < d; next, other = other, next {
		waiting := make(chan struct{}, 1)
		granted := make(chan granted, 1)
		go await(ctx, next, waiting, granted)
		select {
		case <-waiting:
		case g := <-granted:
			return 0, 0, errors.Join(g.err, errTaken, holder.Unlock(ctx))
		}
		time.Sleep(20 * time.Millisecond) // it is held for a while, as a key is
		unlocked := time.Now()
		if err = holder.Unlock(ctx); err != nil {
			break
		}
		g := <-granted
		holder, err = g.lock, g.err
		took = append(took, g.at.Sub(unlocked))
	}
	if err != nil {
		return 0, 0, err
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], holder.Unlock(ctx)
}

type granted struct {
	lock *rowlock.Lock
	at   time.Time
	err  error
}

func await(ctx context.Context, c *rowlock.Client, waiting chan<- struct{}, to chan<- granted) {
	l, err := c.Lock(ctx, "hand-over", rowlock.OnWait(func(rowlock.Waiting) {
		select {
		case waiting <- struct{}{}:
		default:
		}
	}))
	to <- granted{l, time.Now(), err}
}
