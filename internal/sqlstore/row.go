package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Row is a key's row as a consistent read shows it, which locks nothing and waits for no lock.
type Row struct {
	// Exists says that there is a row; otherwise nothing else is set.
	Exists bool
	// Bad says that the row has values that rowlock cannot have written. The statements for one key
	// answer for it: they take it if it is free, and otherwise say what is wrong.
	Bad bool
	// Here says that it is of the dialect's placement.
	Here  bool
	Owner lease.Owner // zero: it is free
	Token lease.Token
	// Holder has the note, and what remains of the lease: 0 or less if it has expired.
	Holder lease.Holder
}

// Lists has the sections of a dialect and its way to send a list.
type Lists interface {
	Texts
	List(keys []string) any
}

// ReadRows runs the rows section, which returns a line for each key that has a row; see ScanRow.
func ReadRows(ctx context.Context, s *conn.Session, d Lists, keys []string) ([]Row, error) {
	rows := make([]Row, len(keys))
	err := s.Query(ctx, d.Text("rows"), []any{d.List(keys)}, func(r conn.Columns) error {
		n, row, err := ScanRow(r)
		if err != nil {
			return err
		}
		if n < 1 || n > int64(len(rows)) {
			return fmt.Errorf("rows: an answer to key %d of %d", n, len(rows))
		}
		rows[n-1] = row
		return nil
	})
	return rows, err
}

// ScanRow reads a line of the rows section: the key's number from 1 on, whether its row is of this
// placement, owner, token, note and the µs remaining. A row with other values than rowlock's is
// Bad, and the line no error, because the others of the statement are about other keys.
func ScanRow(r conn.Columns) (n int64, row Row, err error) {
	var remaining int64
	var owner, note sql.RawBytes
	row.Exists = true
	err = r.Scan(&n, &row.Here, &owner, &row.Token, &note, &remaining)
	if err != nil && !conn.IsBad(err) {
		return 0, Row{}, err
	}
	if err != nil || row.Token < 0 || len(owner) != 0 && len(owner) != len(row.Owner) {
		return n, Row{Exists: true, Bad: true}, nil
	}
	copy(row.Owner[:], owner)
	row.Holder = lease.Holder{Note: string(note), Remaining: conn.Duration(remaining)}
	return n, row, nil
}
