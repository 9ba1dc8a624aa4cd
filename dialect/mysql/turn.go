package mysql

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// turnWait is for how many seconds a session waits for a turn. Turns are short, and the server ends
// the session of a client that was stopped within its turn.
const turnWait = 4

var errTurnStuck = errors.New("the turn was not passed on")

// PrepareTurns makes the settings of a session that listens, because it waits in the same way. The
// server ends it sooner, because the others wait for its turn.
func (d *database) PrepareTurns(ctx context.Context, s *sqlstore.Session) error {
	if err := setup(ctx, s); err != nil {
		return err
	}
	_, err := s.Conn().ExecContext(ctx, `SET SESSION wait_timeout = 2`)
	return err
}

// AwaitTurn waits for a user lock, for which the server keeps a queue. IF fixes the order of
// the two calls, and locks nothing where a proxy has changed the session.
func (d *database) AwaitTurn(
	ctx context.Context, s *sqlstore.Session, channel, key string, again bool,
) error {
	name := turnOf(channel, key)
	query := fmt.Sprintf(`COALESCE(GET_LOCK('%s', %d), 0)`, name, turnWait)
	if again {
		query = fmt.Sprintf(`IF(RELEASE_LOCK('%s') = 1, %s, -1)`, name, query)
	}
	var got int64
	err := s.Conn().QueryRowContext(ctx, `SELECT `+query).Scan(&got)
	switch {
	case err != nil:
		return err
	case got < 0:
		return errShared
	case got != 1:
		return errTurnStuck
	}
	return nil
}

// EndTurn releases it.
func (d *database) EndTurn(
	ctx context.Context, s *sqlstore.Session, channel, key string,
) error {
	var had int64
	err := s.Conn().QueryRowContext(ctx, fmt.Sprintf(
		`SELECT COALESCE(RELEASE_LOCK('%s'), 0)`, turnOf(channel, key))).Scan(&had)
	if err == nil && had != 1 {
		err = errShared
	}
	return err
}

// turnOf is the name of a key's turns, within the 64 characters of a user lock's name. It needs no
// quotes, and no process has it for an address: that is followed by capitals.
func turnOf(channel, key string) string {
	sum := sha256.Sum256([]byte(key))
	return channel + "_t" + hex.EncodeToString(sum[:8])
}
