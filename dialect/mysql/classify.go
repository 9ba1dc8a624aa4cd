package mysql

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// verdicts maps the servers' error numbers to what they mean for a single autocommitted statement,
// or for a transaction that is then rolled back.
// https://dev.mysql.com/doc/mysql-errors/9.0/en/server-error-reference.html. What is absent here is
// unknown: 1053 (shutdown in progress) or 1317 (interrupted) do not say what came first. Group
// Replication rolls back a transaction at COMMIT with 3100 and 3101, and these are unknown too: a
// member that is cut off gives up what it has sent already, and the others, which may have received
// it, commit it (seen with 9.7).
var verdicts = map[uint16]sqlstore.Verdict{
	1205: {Class: sqlstore.Conflict}, // lock wait timeout: rolls back the statement only
	1213: {Class: sqlstore.Conflict}, // deadlock, or a certification failure at COMMIT on Galera
	1020: {Class: sqlstore.Conflict}, // ER_CHECKREAD, MariaDB with innodb_snapshot_isolation
	3572: {Class: sqlstore.Conflict}, // NOWAIT
	1062: {Class: sqlstore.Conflict}, // duplicate key: another client created the row first
	1040: {Class: sqlstore.Unfit},    // too many connections
	1290: {Class: sqlstore.Unfit, As: lease.ErrReadOnly},
	1792: {Class: sqlstore.Unfit, As: lease.ErrReadOnly},
	1836: {Class: sqlstore.Unfit, As: lease.ErrReadOnly},
	1243: {Class: sqlstore.Unfit}, // unknown prepared statement
	1615: {Class: sqlstore.Unfit}, // prepared statement needs to be re-prepared
	1461: {Class: sqlstore.Unfit, As: errPrepared},
	1146: {Class: sqlstore.Refused, As: lease.ErrNoSchema},
	1049: {Class: sqlstore.Refused, As: lease.ErrNoSchema},
	1054: {Class: sqlstore.Refused, As: lease.ErrSchemaVersion},
	3098: {Class: sqlstore.Refused}, // a table that Group Replication does not take
	3796: {Class: sqlstore.Unfit},   // a member that is not ready; before the statement
	3797: {Class: sqlstore.Unfit},   // waited in vain for the backlog; before the statement
	3799: {Class: sqlstore.Unfit},   // a member that is leaving; before the statement
	1044: {Class: sqlstore.Refused, As: lease.ErrPrivilege},
	1227: {Class: sqlstore.Refused, As: lease.ErrPrivilege},
	1142: {Class: sqlstore.Refused, As: lease.ErrPrivilege},
	1419: {Class: sqlstore.Refused, As: lease.ErrPrivilege}, // a trigger, with a binary log
	1143: {Class: sqlstore.Refused, As: lease.ErrPrivilege},
	1690: {Class: sqlstore.Refused, As: lease.ErrTokenExhausted},
	3819: {Class: sqlstore.Refused, As: lease.ErrCorrupt},   // CHECK, MySQL
	4025: {Class: sqlstore.Refused, As: lease.ErrCorrupt},   // CHECK, MariaDB
	1406: {Class: sqlstore.Refused, As: lease.ErrCorrupt},   // data too long
	1048: {Class: sqlstore.Refused, As: lease.ErrCorrupt},   // NULL in a column that takes none
	1264: {Class: sqlstore.Refused, As: lease.ErrCorrupt},   // a number out of the column's range
	1292: {Class: sqlstore.Refused, As: lease.ErrCorrupt},   // no time, such as 0000-00-00
	1441: {Class: sqlstore.Refused, As: lease.ErrCorrupt},   // a time after the year 9999
	1644: {Class: sqlstore.Refused, As: sqlstore.ErrRaised}, // SIGNAL without a number
	1064: {Class: sqlstore.Refused},                         // syntax
	1305: {Class: sqlstore.Refused},                         // no such savepoint
	1153: {Class: sqlstore.Refused},                         // larger than max_allowed_packet
}

// errPrepared is for a client that may prepare no more. The driver prepares each statement that has
// parameters before it sends it.
var errPrepared = fmt.Errorf("%w: raise max_prepared_stmt_count (SET GLOBAL), or have the driver "+
	"prepare no statements (interpolateParams=true in the DSN)", lease.ErrConfig)

// errTemporary is for a temporary table of the server's own. MySQL 9.7 loses one of a query that
// needs several when they have outgrown temptable_max_ram, which it does not tell.
var errTemporary = fmt.Errorf("%w: the server lost a temporary table of its own: raise "+
	"temptable_max_ram (SET GLOBAL), which at 2 MiB is too little for one statement", lease.ErrConfig)

// unfenced is the state with which a protected table refuses: schema.Protect.
var unfenced = [5]byte([]byte("P0RLF"))

// signaled is the state that SIGNAL alone has. Its number can be any.
var signaled = [5]byte([]byte("45000"))

// Classify returns what err means.
func (d *database) Classify(err error) sqlstore.Verdict {
	var my *mysql.MySQLError
	switch {
	case errors.Is(err, errNotTaken):
		return sqlstore.Verdict{Class: sqlstore.Conflict}
	case errors.As(err, &my):
		return verdictOn(my)
	case errors.Is(err, mysql.ErrPktTooLarge): // before it was sent
		return sqlstore.Verdict{Class: sqlstore.Refused}
	}
	return sqlstore.Verdict{Class: sqlstore.Unknown}
}

func verdictOn(my *mysql.MySQLError) sqlstore.Verdict {
	v, known := verdicts[my.Number]
	switch {
	case my.Number == 1690 && strings.Contains(my.Message, overflows):
		return sqlstore.Verdict{Class: sqlstore.Unfit} // the era of another server
	case my.Number == 1146 && strings.Contains(my.Message, "/#sql"):
		return sqlstore.Verdict{Class: sqlstore.Refused, As: errTemporary} // none of rowlock's is missing
	case my.SQLState == unfenced:
		return sqlstore.Verdict{Class: sqlstore.Refused, As: lease.ErrFenced}
	case !known && my.SQLState == signaled:
		return verdicts[1644]
	}
	return v
}

func isDuplicate(err error) bool { return isNumber(err, 1062) }
func isLockWait(err error) bool  { return isNumber(err, 1205) }

func isNumber(err error, n uint16) bool {
	if err == nil {
		return false // most often, and errors.As would allocate
	}
	var my *mysql.MySQLError
	return errors.As(err, &my) && my.Number == n
}

// Native knows the servers' errors and the driver's own, such as that of a lost reply. 1046 (no
// database is selected) comes from another application's connection.
func (d *database) Native(err error) bool {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return my.Number != 1046
	}
	return oneline.Is(err, mysql.ErrInvalidConn, mysql.ErrMalformPkt, mysql.ErrPktSync,
		mysql.ErrPktSyncMul, mysql.ErrPktTooLarge, mysql.ErrBusyBuffer)
}

// errNotTaken: the row is not free, or not there, or another transaction has it locked.
var errNotTaken = errors.New("not taken")
