package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// verdicts maps primary result codes to what they mean for a single statement.
// https://www.sqlite.org/rescode.html. What is absent here is unknown, above all SQLITE_IOERR,
// which can come from the commit.
var verdicts = map[int]sqlstore.Verdict{
	sqlite3.SQLITE_BUSY:       {Class: sqlstore.Conflict},
	sqlite3.SQLITE_LOCKED:     {Class: sqlstore.Conflict},
	sqlite3.SQLITE_INTERRUPT:  {Class: sqlstore.Conflict}, // rolled back before it returns
	sqlite3.SQLITE_FULL:       {Class: sqlstore.Conflict},
	sqlite3.SQLITE_PROTOCOL:   {Class: sqlstore.Conflict}, // no snapshot of the WAL was to be had
	sqlite3.SQLITE_READONLY:   {Class: sqlstore.Refused, As: lease.ErrReadOnly},
	sqlite3.SQLITE_PERM:       {Class: sqlstore.Refused, As: lease.ErrPrivilege},
	sqlite3.SQLITE_CANTOPEN:   {Class: sqlstore.Refused, As: errCannotOpen},
	sqlite3.SQLITE_CONSTRAINT: {Class: sqlstore.Refused, As: lease.ErrCorrupt},
	sqlite3.SQLITE_MISMATCH:   {Class: sqlstore.Refused, As: lease.ErrCorrupt},
	sqlite3.SQLITE_CORRUPT:    {Class: sqlstore.Refused, As: lease.ErrCorrupt},
	sqlite3.SQLITE_NOTADB:     {Class: sqlstore.Refused, As: lease.ErrWrongDialect},
	sqlite3.SQLITE_TOOBIG:     {Class: sqlstore.Refused},
}

// errCannotOpen is what SQLITE_CANTOPEN can mean. A pool does not say which file it opens.
var errCannotOpen = fmt.Errorf("%w: SQLite cannot open the file: its folder is missing, its path "+
	"is a folder, the user may not write there, or the process has too many files open; "+
	"sqlite.Open(path) says which", lease.ErrConfig)

// Classify returns what err means.
func (d *database) Classify(err error) sqlstore.Verdict {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return sqlstore.Verdict{Class: sqlstore.Unknown}
	}
	if e.Code()&0xff == sqlite3.SQLITE_ERROR {
		return generic(e.Error())
	}
	v := verdicts[e.Code()&0xff]
	if e.Code() == sqlite3.SQLITE_CONSTRAINT_TRIGGER {
		v.As = sqlstore.ErrRaised
	}
	return v
}

// generic distinguishes errors for which SQLite has no code. The statement did not compile, so
// nothing was applied.
func generic(text string) sqlstore.Verdict {
	switch {
	case strings.Contains(text, "no such table"):
		return sqlstore.Verdict{Class: sqlstore.Refused, As: lease.ErrNoSchema}
	case strings.Contains(text, "no transaction is active"): // a statement has ended it
		return sqlstore.Verdict{Class: sqlstore.Refused, As: sql.ErrTxDone}
	case strings.Contains(text, "no such column"), strings.Contains(text, "has no column named"):
		return sqlstore.Verdict{Class: sqlstore.Refused, As: lease.ErrSchemaVersion}
	}
	return sqlstore.Verdict{Class: sqlstore.Unknown}
}

func isBusy(err error) bool {
	return isCode(err, sqlite3.SQLITE_BUSY) || isCode(err, sqlite3.SQLITE_LOCKED)
}

func isReadOnly(err error) bool { return isCode(err, sqlite3.SQLITE_READONLY) }

func isCode(err error, primary int) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == primary
}

// Native knows SQLite's errors.
func (d *database) Native(err error) bool { return errors.As(err, new(*sqlite.Error)) }
