package cli

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// Exit codes of every command but run.
const (
	exitMissing     = 1 // show: there is no such key; release: it is not held
	exitUsage       = 2 // a flag, an argument or a key is wrong
	exitUnreachable = 3 // the database does not answer
	exitSchema      = 4 // no tables, or of another version
	exitPrivilege   = 5 // the user lacks a privilege, or the server is read-only
	exitRefused     = 6 // rowlock trusts no locks to this server or its settings
	exitOther       = 7
	exitWarning     = 8 // doctor: the worst that it found is a warning
	exitCritical    = 9 // doctor: it found something critical
)

// Exit codes of run that are not the command's. They are seldom used by programs, and the message
// on standard error begins with "rowlock:" for each.
const (
	exitHeld    = 120 // another owner had the key
	exitLost    = 121 // the lease could not be proved any more
	exitMaxHold = 122 // --max-hold was over
	exitWarden  = 123 // the supervising process was killed
	exitRun     = 125 // run failed before the command began
)

// codes are what a script can tell apart, in the order of what is looked for first.
var codes = []struct {
	code int
	errs []error
}{
	{exitSchema, []error{lease.ErrNoSchema, lease.ErrSchemaVersion}},
	{exitPrivilege, []error{lease.ErrPrivilege, lease.ErrReadOnly}},
	{
		exitRefused,
		[]error{lease.ErrTopology, lease.ErrNotDurable, lease.ErrPool, lease.ErrWrongDialect},
	},
	{exitUsage, []error{lease.ErrConfig, lease.ErrInvalidKey, lease.ErrTable}},
	{exitUnreachable, []error{
		driver.ErrBadConn, sql.ErrConnDone, mysql.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF,
		context.DeadlineExceeded, adapter.ErrLate, lease.ErrBusy, lease.ErrUnknown,
	}},
}

// exitError has an exit code of its own.
type exitError struct {
	code int
	err  error // nil: nothing is printed
}

func (e *exitError) Error() string { return fmt.Sprint(e.err) }
func (e *exitError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var own *exitError
	if errors.As(err, &own) {
		return own.code
	}
	for _, c := range codes {
		if oneline.Is(err, c.errs...) {
			return c.code
		}
	}
	if isNetwork(err) {
		return exitUnreachable
	}
	return exitOther
}

func isNetwork(err error) bool {
	var network net.Error
	found := errors.As(err, &network)
	_, bare := network.(syscall.Errno) // as that of a file
	return found && !bare || errors.As(err, new(*target.UnreachableError))
}

// oneLine is how an error is told: "rowlock: …" in one line.
func oneLine(err error) string {
	text := strings.TrimPrefix(keytext.Error(err), "rowlock: ")
	text = userInfo.ReplaceAllString(text, "://…@")
	return "rowlock: " + listing.Plain(text) // a server's message may have what a program has stored
}

// userInfo is a name and a password in a URL, such as one that was written where a command or a key
// belongs: an error about it would bring the password into a log.
var userInfo = regexp.MustCompile(`://[^\s/@]*:[^\s@]*@`)

func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}
