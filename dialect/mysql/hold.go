package mysql

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// maxSeconds is the longest limit that both servers accept.
const maxSeconds = 365 * 24 * 60 * 60

func seconds(d time.Duration) int64 {
	return min(maxSeconds, max(1, conn.RoundUp(d, time.Second)))
}

// silence sets MariaDB's idle_transaction_timeout, or MySQL's wait_timeout, which limits any
// silence. Both count in seconds.
func (d *database) silence(ctx context.Context, s *conn.Session, limit time.Duration) error {
	variable := "wait_timeout"
	if s.Flavor == mariaDB {
		variable = "idle_transaction_timeout"
	}
	_, err := s.Conn().ExecContext(ctx,
		fmt.Sprintf(`SET SESSION autocommit = 0, %s = %d`, variable, seconds(limit)))
	return err
}

// LockRows bounds the waiting of this statement alone, so that there is no setting to restore: with
// an optimizer hint of MySQL's, or with a setting of MariaDB's for one statement. Both bound the
// whole statement. MySQL's session also keeps its innodb_lock_wait_timeout, and the shorter limit
// counts. MariaDB's is raised out of the way.
//
// It looks for one row after the other, because MySQL 9 reads a small table from end to end for a
// list of values, whatever index it is told to use. At REPEATABLE READ every row that it reads
// stays locked.
func (d *database) LockRows(table, column string, n int, wait time.Duration) string {
	ms := max(1, conn.RoundUp(wait, time.Millisecond))
	return fmt.Sprintf(
		`/*M! SET STATEMENT max_statement_time = %d.%03d, innodb_lock_wait_timeout = %d FOR */ `,
		ms/1000, ms%1000, seconds(wait)+1) +
		each(n, fmt.Sprintf(
			`(SELECT /*+ MAX_EXECUTION_TIME(%d) */ %s FROM %s WHERE %s = ? FOR UPDATE)`, ms, column,
			table, column))
}

// AtOnce is 500, because the cost of a UNION grows with the square of its length: on MySQL 9.7 to 3
// s for 5,000 rows that are free.
func (d *database) AtOnce() int { return 500 }

// TryRows leaves out what is locked.
func (d *database) TryRows(table, column string, n int) string {
	return each(n, fmt.Sprintf(`(SELECT %s FROM %s WHERE %s = ? FOR UPDATE SKIP LOCKED)`, column,
		table, column))
}

func each(n int, query string) string {
	const and = ` UNION ALL `
	return strings.TrimSuffix(strings.Repeat(query+and, n), and)
}

// Skipping is FOR UPDATE SKIP LOCKED.
func (d *database) Skipping(query string) string { return query + ` FOR UPDATE SKIP LOCKED` }

// Patience does nothing: see LockRows. A setting of the session would stay if its transaction were
// rolled back at the wrong moment.
func (d *database) Patience(context.Context, lease.Runner, time.Duration) (
	restore func(context.Context) error, err error,
) {
	return nil, nil
}

// Waited knows the limits of both servers, on locks and on statements.
func (d *database) Waited(err error) sqlstore.Wait {
	for _, n := range []uint16{1205, 3024, 1969} {
		if isNumber(err, n) {
			return sqlstore.TooLong
		}
	}
	return sqlstore.NoWait
}
