package corrupt

import (
	"bytes"
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
)

var ofOnces = []string{"rowlock_once"}

// ofOnce are the errors of package once.
var ofOnce = []error{once.ErrMismatch, once.ErrInFlight, once.ErrResultTooLarge}

// onceRun is one input.
type onceRun struct {
	*testing.T
	env *testdb.Env
	o   *once.Once
}

// FuzzOnce is FuzzRows for effects by key: a call either runs its function and keeps the result, or
// returns the result that a live row has.
func FuzzOnce(f *testing.F) {
	seed(f)
	e := loose(f)
	o := onces(f, e)
	f.Fuzz(func(t *testing.T, rows, calls []byte) {
		fresh(t, e, &draw{rows}, ofOnces)
		r := &onceRun{T: t, env: e, o: o}
		d := &draw{calls}
		for range min(len(calls), 6) {
			r.call(d)
		}
	})
}

func (r *onceRun) call(d *draw) {
	all := []func(context.Context, *draw) error{r.do, r.do, r.in, r.sweep}
	n := d.next(len(all))
	ctx, cancel := context.WithTimeout(r.Context(), bound)
	defer cancel()
	if err := all[n](ctx, d); !is(err, ofOnce) && !isTyped(err) {
		r.Errorf("call %d: %v", n, err)
	}
}

func (r *onceRun) request(d *draw) once.Request {
	q := once.Request{Key: d.key(), Tenant: []string{"", "x", "web-1\twhy"}[d.next(3)]}
	if d.next(3) == 2 {
		q.Fingerprint = once.Fingerprint([]byte("a"))
	}
	return q
}

func (r *onceRun) do(ctx context.Context, d *draw) error {
	return r.answered(r.request(d), func(q once.Request, f once.Func) (once.Result, error) {
		return r.o.Do(ctx, q, f)
	})
}

func (r *onceRun) in(ctx context.Context, d *draw) error {
	return r.answered(r.request(d), func(q once.Request, f once.Func) (once.Result, error) {
		tx, err := r.env.DB.BeginTx(ctx, nil)
		if err != nil {
			r.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		res, err := r.o.In(ctx, tx, q, f)
		if err == nil {
			err = tx.Commit()
		}
		return res, err
	})
}

// answered makes a call, and compares its answer with the row before and after it.
func (r *onceRun) answered(q once.Request, call func(once.Request, once.Func) (once.Result, error)) error {
	was, there := r.row(q)
	mine := []byte(lease.NewOwner().String())
	ran := 0
	got, err := call(q, func(context.Context, *sql.Tx) ([]byte, error) {
		ran++
		return mine, nil
	})
	now, _ := r.row(q)
	switch {
	case err != nil && ran > 0:
		r.Errorf("%+v: ran, and %v", q, err)
	case err != nil:
	case there && (!got.Replayed || ran > 0):
		r.Errorf("%+v: %+v was done again", q, was)
	case got.Replayed && (ran > 0 || !bytes.Equal(got.Value, was)):
		r.Errorf("%+v: replayed %x of %x, ran %d times", q, got.Value, was, ran)
	case !got.Replayed && (ran != 1 || !bytes.Equal(got.Value, mine) || !bytes.Equal(now, mine)):
		r.Errorf("%+v: %x is kept as %x, ran %d times", q, got.Value, now, ran)
	}
	return err
}

// row is the result of a request, and whether one is there that has not expired.
func (r *onceRun) row(q once.Request) (result []byte, live bool) {
	err := r.env.DB.QueryRow(r.env.SQL(`SELECT result, typeof(expires_at) = 'integer' AND expires_at > ?
		FROM {rowlock_once} WHERE tenant = ? AND key = ?`),
		time.Now().Add(time.Second).UnixMilli(), []byte(q.Tenant), []byte(q.Key)).Scan(&result, &live)
	if err != nil && err != sql.ErrNoRows {
		r.Fatal(err)
	}
	return result, live
}

func (r *onceRun) sweep(ctx context.Context, d *draw) error {
	_, err := r.o.Sweep(ctx, 1+d.next(2))
	return err
}
