package forupdate

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// pageRows is how many rows one statement of the walk looks at.
const pageRows = 1000

// Sweep removes dead rows as every store does, and then the rows to be locked of keys that have no other row and are older than the
// retention: those are not counted. A row that somebody has locked stays.
func (s *Store) Sweep(ctx context.Context, o lease.SweepOptions) (removed int64, err error) {
	removed, err = s.rows.Sweep(ctx, o)
	if err != nil {
		return removed, err
	}
	if o.Batch <= 0 {
		o.Batch = 200
	}
	for after, more := []byte{}, true; more && err == nil; {
		var dead []string
		if dead, after, more, err = s.page(ctx, after, o.Retention); err == nil {
			err = s.dropAll(ctx, dead, o)
		}
	}
	return removed, err
}

// page looks at the next rows and returns the keys of the dead ones.
func (s *Store) page(ctx context.Context, after []byte, retention time.Duration) (dead []string, last []byte, more bool, err error) {
	type line struct {
		key  []byte
		dead bool
	}
	var lines []line
	args := []any{after, pageRows, dialect.Micros(retention), pageRows}
	err = s.rows.OnLane(ctx, "sweep", "", func(ctx context.Context, session *dialect.Session) error {
		lines = nil
		return session.Query(ctx, s.d.Text("hold-dead"), args, func(row dialect.Columns) error {
			var l line
			err := row.Scan(&l.key, &l.dead)
			lines = append(lines, l)
			return err
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

func (s *Store) dropAll(ctx context.Context, dead []string, o lease.SweepOptions) error {
	for len(dead) > 0 {
		n := min(len(dead), o.Batch)
		if _, err := s.drop(ctx, dead[:n]); err != nil {
			return err
		}
		dead = dead[n:]
		select {
		case <-time.After(o.Pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
