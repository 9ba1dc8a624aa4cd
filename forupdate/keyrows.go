package forupdate

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

// keyRows are the rows of rowlock_hold, which have no data and exist to be locked. Statements on
// them go down a store's pinned connections.
type keyRows struct {
	rows *table.Store
	d    *sqlstore.Dialect
}

// make inserts the missing rows of keys, in a statement that commits at once. An insert inside a
// transaction, after a read that has found nothing, would deadlock with another that does the same.
func (k keyRows) make(ctx context.Context, verb string, keys []string) (made int64, err error) {
	return k.change(ctx, verb, keys[0], "hold-make", k.d.List(keys))
}

// drop removes the rows of keys that no transaction has locked.
func (k keyRows) drop(ctx context.Context, keys []string) (int64, error) {
	return k.change(ctx, "sweep", keys[0], "hold-drop", k.d.List(keys))
}

func (k keyRows) change(ctx context.Context, verb, key, section string, args ...any) (int64, error) {
	var n int64
	err := k.rows.OnPinned(ctx, verb, key, func(ctx context.Context, session *conn.Session) (err error) {
		n, err = session.Change(ctx, k.d.Text(section), args...)
		return err
	})
	if err != nil {
		return 0, err // n may still be written to
	}
	return n, nil
}

// free returns the keys whose row no transaction has locked. It locks those rows while its
// statement runs.
func (k keyRows) free(ctx context.Context, keys []string) (map[string]bool, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var free map[string]bool
	err := k.rows.OnPinned(ctx, "inspect", keys[0], func(ctx context.Context, session *conn.Session) error {
		free = make(map[string]bool)
		return session.Query(ctx, k.d.Text("hold-free"), []any{k.d.List(keys)}, func(row conn.Columns) error {
			var key []byte
			err := row.Scan(&key)
			free[string(key)] = err == nil
			return conn.UnlessBad(err)
		})
	})
	if err != nil {
		return nil, err // free may still be written to
	}
	return free, nil
}

// pageRows is how many rows one statement of the sweep reads.
const pageRows = 1000

// sweep removes the rows of keys that have no other row and are older than the retention. Locked
// rows stay.
func (k keyRows) sweep(ctx context.Context, o lease.SweepOptions) (removed int64, err error) {
	if o.Batch <= 0 {
		o.Batch = 200
	}
	for after, more := []byte{}, true; more && err == nil; {
		var dead []string
		if dead, after, more, err = k.page(ctx, after, o.Retention); err == nil {
			var n int64
			n, err = k.dropAll(ctx, dead, o)
			removed += n
		}
	}
	return removed, err
}

// page reads the next rows and returns the keys of the dead ones.
func (k keyRows) page(
	ctx context.Context, after []byte, retention time.Duration,
) (dead []string, last []byte, more bool, err error) {
	type line struct {
		key  []byte
		dead bool
	}
	var lines []line
	args := []any{after, pageRows, conn.Micros(retention), pageRows}
	err = k.rows.OnPinned(ctx, "sweep", "", func(ctx context.Context, session *conn.Session) error {
		lines = nil
		return session.Query(ctx, k.d.Text("hold-dead"), args, func(row conn.Columns) error {
			var l line
			err := row.Scan(&l.key, &l.dead)
			l.dead = l.dead && err == nil // what cannot be read is not dead
			lines = append(lines, l)
			return conn.UnlessBad(err)
		})
	})
	if err != nil || len(lines) == 0 {
		return nil, after, false, err
	}
	for _, l := range lines {
		if l.dead {
			dead = append(dead, string(l.key))
		}
	}
	return dead, lines[len(lines)-1].key, true, nil
}

func (k keyRows) dropAll(ctx context.Context, dead []string, o lease.SweepOptions) (removed int64, err error) {
	for len(dead) > 0 {
		n := min(len(dead), o.Batch)
		dropped, err := k.drop(ctx, dead[:n])
		removed += dropped
		if err != nil {
			return removed, err
		}
		dead = dead[n:]
		if !retry.Sleep(ctx, o.Pause) {
			return removed, ctx.Err()
		}
	}
	return removed, nil
}
