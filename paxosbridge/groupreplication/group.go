package groupreplication

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// group is MySQL's dialect for sessions on a group's primary.
type group struct{ sqlstore.Database }

func newGroup(tables []dialect.Option) *sqlstore.Dialect {
	return sqlstore.Of(mysql.New(tables...)).Wrapped(
		func(d sqlstore.Database, f sqlstore.Features) (sqlstore.Database, sqlstore.Features) {
			f.OneHistory = true
			return &group{d}, f
		})
}

// Server checks the member too.
func (g *group) Server(ctx context.Context, conn *sql.Conn) (sqlstore.Facts, error) {
	if err := g.check(ctx, conn); err != nil {
		return sqlstore.Facts{}, err
	}
	return g.Database.Server(ctx, conn)
}

// Setup checks the member as Server did the first, because a session is made on the primary of the
// moment. A primary that was just elected may not have applied what the group agreed on before.
// Under EVENTUAL it would answer before it has.
func (g *group) Setup(ctx context.Context, s *conn.Session) error {
	if err := g.Database.Setup(ctx, s); err != nil {
		return err
	}
	if err := g.check(ctx, s.Conn()); err != nil {
		return err
	}
	return g.raise(ctx, s.Conn())
}

func (g *group) check(ctx context.Context, conn *sql.Conn) error {
	s, err := readSettings(ctx, conn, g.Text("group-settings"))
	if err == nil {
		err = s.check()
	}
	return err
}

const eventual, afterFailover = "EVENTUAL", "BEFORE_ON_PRIMARY_FAILOVER"

// raise raises the session's consistency to what it must be at least. It also checks sql_log_bin,
// without which the session's writes do not reach the group.
func (g *group) raise(ctx context.Context, conn *sql.Conn) error {
	var consistency string
	var logged bool
	query := `SELECT @@SESSION.group_replication_consistency, @@SESSION.sql_log_bin`
	if err := conn.QueryRowContext(ctx, query).Scan(&consistency, &logged); err != nil {
		return err
	}
	if !logged {
		return fmt.Errorf(
			"%w: sql_log_bin is OFF, so that writes do not reach the group: check init_connect",
			lease.ErrTopology,
		)
	}
	if consistency != eventual {
		return nil // the other levels guarantee as much, or more
	}
	_, err := conn.ExecContext(
		ctx, `SET SESSION group_replication_consistency = '`+afterFailover+`'`,
	)
	if v := g.Classify(err); err != nil && v.Class == sqlstore.Refused {
		err = fmt.Errorf(
			"%w: group_replication_consistency is EVENTUAL, and the session may not raise it: "+
				"SET PERSIST group_replication_consistency = '%s' (%w)",
			lease.ErrTopology, afterFailover, err,
		)
	}
	return err
}

// Classify knows this package's refusals. A refused member is not asked again at once.
func (g *group) Classify(err error) sqlstore.Verdict {
	switch {
	case errors.Is(err, lease.ErrTopology):
		return sqlstore.Verdict{Class: sqlstore.Refused, As: lease.ErrTopology}
	case errors.Is(err, errNotPrimary):
		return sqlstore.Verdict{Class: sqlstore.Unfit}
	}
	return g.Database.Classify(err)
}
