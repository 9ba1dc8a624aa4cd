package table

import (
	"context"
	"fmt"
	"math"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Mover = (*Store)(nil)

// Depart changes the placement in one statement, which names the holder.
func (s *Store) Depart(ctx context.Context, l lease.Lease, placement int) (
	epoch int64, ok bool, err error,
) {
	epoch = lease.Epoch(l.Token) + 1
	if err := s.checkMove("move", l.Key, placement, epoch); err != nil {
		return 0, false, err
	}
	if err := s.mayDepart(ctx, l.Key, epoch); err != nil {
		return 0, false, err
	}
	args := []any{placement, lease.EpochStart(epoch), []byte(l.Key), conn.Bytes(l.Owner), l.Token}
	ok, err = s.move(ctx, "depart", l.Key, args, sqlstore.Placement{Placement: placement, Epoch: epoch})
	return epoch, ok, err
}

// MayDepart asks with the epoch in which the key would be granted to its mover.
func (s *Store) MayDepart(ctx context.Context, key string) error {
	rows, err := s.Inspect(ctx, lease.Filter{Keys: []string{key}})
	if err != nil {
		return err
	}
	token := s.eras.Newest()
	for _, r := range rows {
		if r.Err != nil {
			return r.Err
		}
		token = max(token, r.Token)
	}
	return s.mayDepart(ctx, key, lease.Epoch(token)+1)
}

// mayDepart returns an error if a key that departs in this epoch could come home in one that is not
// over by the database's clock: the next, or the third if it is taken back by force. An era that
// begins after a failover is of the clock, and must be above every epoch in which the table has
// granted: those that the server has forgotten stand nowhere else.
func (s *Store) mayDepart(ctx context.Context, key string, epoch int64) error {
	now, err := ask(ctx, s.engine, about{conn.Release, "move", key}, s.eras.Clock)
	if err != nil || lease.EpochStart(epoch+3) <= era.Start(now) {
		return err
	}
	return fmt.Errorf("%w: %q has come home, or the server was started or the SQLite file opened, less "+
		"than %s ago by the database's clock: move it later, from a program that keeps the file open",
		lease.ErrBusy, key, 2*era.Step)
}

// Return names the placement and the epoch that it ends.
func (s *Store) Return(ctx context.Context, key string, placement int, epoch int64) (
	ok bool, err error,
) {
	if err := s.checkMove("return", key, placement, epoch+1); err != nil {
		return false, err
	}
	args := []any{
		lease.EpochStart(epoch + 1), []byte(key), placement, lease.EpochStart(epoch),
		lease.EpochStart(epoch + 1),
	}
	return s.move(ctx, "return", key, args,
		sqlstore.Placement{Placement: s.d.Names().Placement, Epoch: epoch + 1})
}

// Recall checks the epoch alone.
func (s *Store) Recall(ctx context.Context, key string, placement int, epoch int64) (
	ok bool, err error,
) {
	cluster := placement
	if placement == lease.PlacementTable {
		cluster = 1 // the only placement besides clusters' that a key can be called back to
	}
	if err := s.checkMove("recall", key, cluster, epoch); err != nil {
		return false, err
	}
	return s.move(ctx, "recall", key,
		[]any{[]byte(key), placement, lease.EpochStart(epoch), lease.Bucket(key)},
		sqlstore.Placement{Placement: placement, Epoch: epoch})
}

func (s *Store) checkMove(verb, key string, placement int, epoch int64) error {
	switch err := lease.CheckKey(key); {
	case err != nil:
		return err
	case placement < 1 || placement > math.MaxInt16:
		return fmt.Errorf("%w: %s %q: placement %d; a cluster's is 1 to %d", lease.ErrConfig, verb, key,
			placement, math.MaxInt16)
	case epoch < 1 || epoch > lease.Epoch(lease.MaxToken)-1:
		return fmt.Errorf("%w: %s %q: epoch %d", lease.ErrTokenExhausted, verb, key, epoch)
	}
	return nil
}

// Confirm writes to the row and counts: one row, if the key is there.
func (s *Store) Confirm(ctx context.Context, key string, placement int, epoch int64) (
	ok bool, err error,
) {
	return ask(ctx, s.engine, about{conn.Release, "confirm the placement of", key},
		func(ctx context.Context, session *conn.Session) (bool, error) {
			return sqlstore.ConfirmPlacement(ctx, session, s.d, key, sqlstore.Placement{Placement: placement, Epoch: epoch})
		})
}

// move runs one statement that brings a key to a placement. If an earlier try may have done so,
// the row says it: it is there in that epoch only if this move was made, by any client. move writes
// to the row instead of reading it, because what it reads may not be durable.
func (s *Store) move(
	ctx context.Context, section, key string, args []any, to sqlstore.Placement,
) (bool, error) {
	n, uncertain, err := askTwice(ctx, s.engine, about{conn.Release, section, key},
		func(ctx context.Context, session *conn.Session) (int64, error) {
			return session.Change(ctx, s.d.Text(section), args...)
		})
	if err != nil || n > 0 || !uncertain {
		return n > 0, err
	}
	ok, err := s.Confirm(ctx, key, to.Placement, to.Epoch)
	if err != nil {
		return false, fmt.Errorf("%w: %s %q: %w", lease.ErrUnknown, section, key, err)
	}
	return ok, nil
}

// FenceAt locks the row of a key that is at placement, and leaves the token in it.
func (s *Store) FenceAt(ctx context.Context, tx lease.Runner, placement int, l lease.Lease) error {
	var last int64
	args := []any{[]byte(l.Key), placement, int64(lease.EpochStart(lease.Epoch(l.Token))), int64(l.Token)}
	err := tx.QueryOne(ctx, s.d.Text("fence-at"), args, &last)
	if err == nil && last < int64(l.Token) {
		_, err = tx.Exec(ctx, s.d.Text("fence-at-token"), []any{int64(l.Token), []byte(l.Key)})
	}
	return s.inTx(ctx, tx, "fence", l, err)
}
