package sqlstore_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// A restart or a failover resets connections: the same database may answer the next try.
func TestAnErrorOfTheConnectionIsNoOtherProduct(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, reset, fmt.Errorf("read: %w", reset), mysql.ErrInvalidConn,
		errors.New("anything"),
	} {
		if got := sqlstore.ProductError("x.New()", "X", err); got != err || errors.Is(got, lease.ErrWrongDialect) {
			t.Errorf("%v became %v", err, got)
		}
	}
	for _, err := range []error{
		&pgconn.PgError{Code: "42601"}, &mysql.MySQLError{Number: 1064}, fmt.Errorf("query: %w", &mysql.MySQLError{Number: 1064}),
	} {
		if got := sqlstore.ProductError("x.New()", "X", err); !errors.Is(got, lease.ErrWrongDialect) || !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
