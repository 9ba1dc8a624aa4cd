package groupreplication

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// homeSealed is the home of the row of a record that is sealed: where nobody is granted anything.
const homeSealed = -2

// spent reports whether the next token would be of another epoch, or none at all.
func spent(token int64) bool {
	return lease.Epoch(token+1) != lease.Epoch(token) || token >= lease.MaxToken-1
}

func checkEpoch(verb, key string, epoch int64) error {
	if err := lease.CheckStoredKey(key); err != nil {
		return err
	}
	if epoch < 1 || epoch > lease.Epoch(lease.MaxToken)-1 {
		return fmt.Errorf("%w: %s %q: epoch %d; it is 1 to %d", lease.ErrConfig, verb, key, epoch, lease.Epoch(lease.MaxToken)-1)
	}
	return nil
}

// other is why a request is not granted: the row, if there is one, is of another epoch than it names, or sealed.
func other(r lease.AcquireRequest, home int, token int64) error {
	record := paxosbridge.Record{Key: r.Key, Epoch: lease.Epoch(token), Sealed: home == homeSealed}
	err := error(&paxosbridge.RecordError{Record: record, Asked: r.Epoch})
	if home != lease.HomeTable && home != homeSealed {
		err = fmt.Errorf("%w: acquire %q: home %d", lease.ErrMoved, r.Key, home)
	}
	return err
}

// Open raises the key's row to the epoch, in one statement.
func (c *Cluster) Open(ctx context.Context, key string, epoch int64) error {
	return c.raise(ctx, "open", key, lease.HomeTable, epoch)
}

// Supersede raises the key's row to the epoch, sealed, in one statement.
func (c *Cluster) Supersede(ctx context.Context, key string, epoch int64) error {
	return c.raise(ctx, "supersede", key, homeSealed, epoch)
}

// raise may be repeated: the second time the row's epoch is no longer older.
func (c *Cluster) raise(ctx context.Context, verb, key string, home int, epoch int64) error {
	if err := checkEpoch(verb, key, epoch); err != nil {
		return err
	}
	return c.store.OnLane(ctx, verb, key, func(ctx context.Context, s *sqlstore.Session) error {
		if err := c.watch(ctx, s); err != nil {
			return err
		}
		_, err := s.Exec(ctx, c.group.Text("group-raise"), []byte(key), home, lease.EpochStart(epoch))
		return err
	})
}

// Seal changes the row's home in one statement, which names the holder. Where an earlier try of it may have done so the row is looked
// at: only its holder can have sealed it with this token.
func (c *Cluster) Seal(ctx context.Context, l lease.Lease) (ok bool, err error) {
	var sealed, doubtful bool
	err = c.store.OnLane(ctx, "seal", l.Key, func(ctx context.Context, s *sqlstore.Session) (err error) {
		if err = c.watch(ctx, s); err == nil {
			sealed, err = c.seal(ctx, s, l, doubtful)
		}
		doubtful = doubtful || err != nil && sqlstore.Judge(c.group, err).Class == sqlstore.Unknown
		return err
	})
	if err != nil {
		return false, err // sealed may still be written to
	}
	return sealed, nil
}

func (c *Cluster) seal(ctx context.Context, s *sqlstore.Session, l lease.Lease, doubtful bool) (bool, error) {
	res, err := s.Exec(ctx, c.group.Text("group-seal"), []byte(l.Key), sqlstore.Bytes(l.Owner), l.Token)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	if err != nil || n > 0 || !doubtful {
		return n > 0, err
	}
	var home int
	var token int64
	err = s.QueryRow(ctx, c.group.Text("group-record"), []any{[]byte(l.Key)}, &home, &token)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return home == homeSealed && token == l.Token, err
}

// Records reads the rows as the primary knows them: what it says of an epoch stays true, because epochs only grow.
func (c *Cluster) Records(ctx context.Context, after string, limit int) ([]paxosbridge.Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	args := []any{[]byte(after), limit}
	var found []paxosbridge.Record
	err := c.store.OnLane(ctx, "records", after, func(ctx context.Context, s *sqlstore.Session) error {
		found = nil
		return s.Query(ctx, c.group.Text("group-records"), args, func(columns sqlstore.Columns) error {
			var key []byte
			var home int
			var token int64
			err := columns.Scan(&key, &home, &token)
			found = append(found, paxosbridge.Record{Key: string(key), Epoch: lease.Epoch(token), Sealed: home == homeSealed})
			return err
		})
	})
	if err != nil {
		return nil, err // found may still be written to
	}
	return found, nil
}
