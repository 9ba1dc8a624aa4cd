package groupreplication

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/internal/request"
)

const (
	// placementSealed is the placement of the row of a sealed record. None grants a key there.
	placementSealed = -2
	// lastEpoch is the last epoch in which all tokens can be granted.
	lastEpoch = int64(lease.MaxToken>>lease.EpochShift) - 1
)

// spent reports whether the epoch has no token after this one.
func spent(token lease.Token) bool {
	return lease.Epoch(token+1) != lease.Epoch(token) || token >= lease.MaxToken-1
}

// checkRecord refuses a token that no record has: a bridge would take its epoch for one before all.
func checkRecord(key string, token lease.Token) error {
	if token < 0 {
		return fmt.Errorf("%w: the record of %q has the token %d", lease.ErrCorrupt, key, token)
	}
	return nil
}

// other is why a request is not granted: the row is sealed, absent, or of another epoch than the
// request names.
func other(r lease.AcquireRequest, placement int, token lease.Token) error {
	record := paxosbridge.Record{Key: r.Key, Epoch: lease.Epoch(token), Sealed: placement == placementSealed}
	err := error(&paxosbridge.RecordError{Record: record, Asked: r.Epoch})
	if placement != lease.PlacementTable && placement != placementSealed {
		err = fmt.Errorf("%w: acquire %q: placement %d", lease.ErrMoved, r.Key, placement)
	}
	return err
}

// Open raises the key's row to the epoch, in one statement.
func (c *Cluster) Open(ctx context.Context, key string, epoch int64) error {
	return c.raise(ctx, "open", key, lease.PlacementTable, epoch)
}

// Supersede raises the key's row to the epoch, sealed, in one statement.
func (c *Cluster) Supersede(ctx context.Context, key string, epoch int64) error {
	return c.raise(ctx, "supersede", key, placementSealed, epoch)
}

// raise may be repeated, because the second time the row's epoch is not older.
func (c *Cluster) raise(ctx context.Context, verb, key string, placement int, epoch int64) error {
	if err := request.CheckEpoch(verb, key, epoch, lastEpoch); err != nil {
		return err
	}
	_, err := c.write(ctx, verb, key, func(ctx context.Context, s *conn.Session, _ bool) error {
		_, err := s.Exec(
			ctx, c.group.Text("group-raise"), []byte(key), placement, lease.EpochStart(epoch),
		)
		return err
	})
	return err
}

// Seal changes the row's placement in one statement, which names the holder. If an earlier try may
// have done so, it reads the row: only its holder can have sealed it with this token.
func (c *Cluster) Seal(ctx context.Context, l lease.Lease) (ok bool, err error) {
	var sealed bool
	_, err = c.write(
		ctx, "seal", l.Key,
		func(ctx context.Context, s *conn.Session, uncertain bool) (err error) {
			sealed, err = c.seal(ctx, s, l, uncertain)
			return err
		},
	)
	if err != nil {
		return false, err // sealed may still be written to
	}
	return sealed, nil
}

func (c *Cluster) seal(
	ctx context.Context, s *conn.Session, l lease.Lease, uncertain bool,
) (bool, error) {
	res, err := s.Exec(
		ctx, c.group.Text("group-seal"), []byte(l.Key), conn.Bytes(l.Owner), l.Token,
	)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	if err != nil || n > 0 || !uncertain {
		return n > 0, err
	}
	var placement int
	var token lease.Token
	err = s.QueryRow(ctx, c.group.Text("group-record"), []any{[]byte(l.Key)}, &placement, &token)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return placement == placementSealed && token == l.Token, err
}

// Records lists the rows as the primary knows them. What it returns of an epoch stays true, because
// epochs only grow.
func (c *Cluster) Records(ctx context.Context, after string, limit int) ([]paxosbridge.Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	args := []any{[]byte(after), limit}
	var found []paxosbridge.Record
	err := c.store.OnPinned(
		ctx, "records", after,
		func(ctx context.Context, s *conn.Session) error {
			found = nil
			return s.Query(
				ctx, c.group.Text("group-records"), args,
				func(columns conn.Columns) error {
					r, err := scanRecord(columns)
					found = append(found, r)
					return err
				},
			)
		},
	)
	if err != nil {
		return nil, err // found may still be written to
	}
	return found, nil
}

// scanRecord reads a line of the group-records section. A bad row is no error of the line, because
// the others of the statement are about other keys.
func scanRecord(columns conn.Columns) (r paxosbridge.Record, err error) {
	var key []byte
	var placement int
	var token lease.Token
	err = columns.Scan(&key, &placement, &token)
	if err == nil {
		err = checkRecord(string(key), token)
	}
	if err != nil {
		return paxosbridge.Record{Key: string(key), Err: err}, conn.UnlessBad(err)
	}
	return paxosbridge.Record{Key: string(key), Epoch: lease.Epoch(token), Sealed: placement == placementSealed}, nil
}
