package sqlite

import (
	"errors"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// verdicts maps primary result codes to what they mean for a single statement. https://www.sqlite.org/rescode.html. What is
// not here is unknown, above all SQLITE_IOERR, which can come from the commit.
var verdicts = map[int]dialect.Verdict{
	sqlite3.SQLITE_BUSY:       {Class: dialect.Conflict},
	sqlite3.SQLITE_LOCKED:     {Class: dialect.Conflict},
	sqlite3.SQLITE_INTERRUPT:  {Class: dialect.Conflict}, // rolled back before it returns
	sqlite3.SQLITE_FULL:       {Class: dialect.Conflict},
	sqlite3.SQLITE_READONLY:   {Class: dialect.Refused, As: lease.ErrReadOnly},
	sqlite3.SQLITE_PERM:       {Class: dialect.Refused, As: lease.ErrPrivilege},
	sqlite3.SQLITE_CANTOPEN:   {Class: dialect.Refused, As: lease.ErrPrivilege},
	sqlite3.SQLITE_CONSTRAINT: {Class: dialect.Refused, As: lease.ErrCorrupt},
	sqlite3.SQLITE_MISMATCH:   {Class: dialect.Refused, As: lease.ErrCorrupt},
	sqlite3.SQLITE_CORRUPT:    {Class: dialect.Refused, As: lease.ErrCorrupt},
	sqlite3.SQLITE_NOTADB:     {Class: dialect.Refused, As: lease.ErrWrongDialect},
	sqlite3.SQLITE_TOOBIG:     {Class: dialect.Refused},
}

// Classify says what err means.
func (d *Dialect) Classify(err error) dialect.Verdict {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return dialect.Verdict{Class: dialect.Unknown}
	}
	if e.Code()&0xff == sqlite3.SQLITE_ERROR {
		return generic(e.Error())
	}
	return verdicts[e.Code()&0xff]
}

// generic tells apart what SQLite has no code for. It is a statement that did not compile, so nothing was applied.
func generic(text string) dialect.Verdict {
	switch {
	case strings.Contains(text, "no such table"):
		return dialect.Verdict{Class: dialect.Refused, As: lease.ErrNoSchema}
	case strings.Contains(text, "no such column"):
		return dialect.Verdict{Class: dialect.Refused, As: lease.ErrSchemaVersion}
	}
	return dialect.Verdict{Class: dialect.Unknown}
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
func (d *Dialect) Native(err error) bool { return errors.As(err, new(*sqlite.Error)) }
