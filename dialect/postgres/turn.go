package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// PrepareTurns has the server end the session if its client is stopped within its turn, from
// version 14 on. Before, the wait of the others ends, which is an ERROR line in the server's log
// for each. Without an end of waits vacuum would remove nothing that is younger than the longest: a
// session that waits has a snapshot. Keepalives find a client whose network is cut, which older
// servers would give the turn for two hours. A limit on transactions (version 17) would end waits
// with the session.
func (d *database) PrepareTurns(ctx context.Context, s *sqlstore.Session) error {
	s.HangUp = hangUpBelow
	_, err := s.Conn().ExecContext(ctx, `SELECT /* rowlock turns */ `+d.name()+`,
		set_config('lock_timeout', '4000', false), set_config('statement_timeout', '0', false),
		set_config('tcp_keepalives_idle', '2', false),
		set_config('tcp_keepalives_interval', '1', false),
		set_config('tcp_keepalives_count', '2', false),
		(SELECT set_config('transaction_timeout', '0', false)
		 WHERE current_setting('server_version_num')::int >= 170000),
		(SELECT set_config('idle_session_timeout', '2000', false)
		 WHERE current_setting('server_version_num')::int >= 140000)`)
	return err
}

// AwaitTurn waits for an advisory lock, for which the server keeps a queue. It wakes one session,
// and a NOTIFY would wake all that listen. Both calls are one statement, evaluated from left to
// right.
func (d *database) AwaitTurn(
	ctx context.Context, s *sqlstore.Session, channel, key string, again bool,
) error {
	if !again {
		_, err := s.Conn().ExecContext(ctx, `SELECT pg_advisory_lock($1)`, turnOf(channel, key))
		return err
	}
	var had bool
	err := s.Conn().QueryRowContext(ctx, `SELECT CASE WHEN pg_advisory_unlock($1)
		THEN pg_advisory_lock($1) IS NOT NULL ELSE false END`, turnOf(channel, key)).Scan(&had)
	return sameSession(had, err)
}

// EndTurn unlocks it.
func (d *database) EndTurn(
	ctx context.Context, s *sqlstore.Session, channel, key string,
) error {
	var had bool
	err := s.Conn().QueryRowContext(ctx, `SELECT pg_advisory_unlock($1)`,
		turnOf(channel, key)).Scan(&had)
	return sameSession(had, err)
}

// sameSession finds a pooler that has put another session of the server behind the connection.
func sameSession(had bool, err error) error {
	if err == nil && !had {
		err = fmt.Errorf("%w: the pool leads through a pooler that shares sessions: "+
			"give postgres.New postgres.Pooled", lease.ErrUnsupported)
	}
	return err
}

// turnOf is the number of a key's turns: 64 bits of a hash. An application whose own advisory lock
// has the same number makes waiters poll.
func turnOf(channel, key string) int64 {
	sum := sha256.Sum256([]byte(channel + "\x00" + key))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}
