package dialect

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// Row is what a batch is told of a key's row by a consistent read, which locks nothing and waits for nobody.
type Row struct {
	// Exists says that there is one; nothing else is set if not.
	Exists bool
	// Home says that it is of the dialect's home.
	Home  bool
	Owner lease.Owner // zero: it is free
	Token int64
	// Holder has the note, and what remains of the lease; nothing or less if it has expired.
	Holder lease.Holder
	// Changed is when it was granted, or given up if it is free, in µs of the database's clock.
	Changed int64
}

// ReadRows runs a dialect's rows section, which returns for each key that has a row its number from 1 on, whether it is of this home,
// owner, token, note, the µs remaining and when it changed.
func ReadRows(ctx context.Context, s *Session, d Dialect, keys []string) ([]Row, error) {
	rows := make([]Row, len(keys))
	err := s.Query(ctx, d.Text("rows"), []any{d.List(keys)}, func(r Columns) error { return scanRow(r, rows) })
	return rows, err
}

func scanRow(r Columns, rows []Row) error {
	var n, remaining int64
	var owner, note sql.RawBytes
	row := Row{Exists: true}
	if err := r.Scan(&n, &row.Home, &owner, &row.Token, &note, &remaining, &row.Changed); err != nil {
		return err
	}
	if n < 1 || n > int64(len(rows)) {
		return fmt.Errorf("rows: an answer to key %d of %d", n, len(rows))
	}
	if len(owner) != 0 && len(owner) != len(row.Owner) {
		return fmt.Errorf("%w: an owner is called %x", lease.ErrCorrupt, owner)
	}
	copy(row.Owner[:], owner)
	row.Holder = lease.Holder{Note: string(note), Remaining: Duration(remaining)}
	rows[n-1] = row
	return nil
}
