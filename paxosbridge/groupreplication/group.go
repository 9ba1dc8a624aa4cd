package groupreplication

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// group is MySQL's dialect for sessions on a group's primary.
type group struct{ sqlstore.Database }

func newGroup(tables []dialect.Option) *sqlstore.Dialect {
	return sqlstore.Of(mysql.New(tables...)).Wrapped(
		func(d sqlstore.Database, f sqlstore.Features) (sqlstore.Database, sqlstore.Features) {
			return &group{d}, f
		})
}

// Probe looks at the member too.
func (g *group) Probe(ctx context.Context, conn *sql.Conn) (sqlstore.Facts, error) {
	if err := g.check(ctx, conn); err != nil {
		return sqlstore.Facts{}, err
	}
	return g.Database.Probe(ctx, conn)
}

// Setup looks at the member as Probe did at the first: a session is made on whoever is primary now. A primary that was elected a moment
// ago may not have applied yet what the group had agreed on before; under EVENTUAL it would answer all the same.
func (g *group) Setup(ctx context.Context, s *sqlstore.Session) error {
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

// raise makes the session's consistency what it must be at least. sql_log_bin is for the session too: without it nothing it writes goes
// to the group.
func (g *group) raise(ctx context.Context, conn *sql.Conn) error {
	var consistency string
	var logged bool
	query := `SELECT @@SESSION.group_replication_consistency, @@SESSION.sql_log_bin`
	if err := conn.QueryRowContext(ctx, query).Scan(&consistency, &logged); err != nil {
		return err
	}
	if !logged {
		return fmt.Errorf("%w: sql_log_bin is OFF: what the session writes is kept from the group; look for it in init_connect", lease.ErrTopology)
	}
	if consistency != eventual {
		return nil // the others ask for as much, or more
	}
	_, err := conn.ExecContext(ctx, `SET SESSION group_replication_consistency = '`+afterFailover+`'`)
	if v := g.Classify(err); err != nil && v.Class == sqlstore.Refused {
		err = fmt.Errorf("%w: group_replication_consistency is EVENTUAL, and the session cannot raise it: SET PERSIST group_replication_consistency = '%s' (%w)", lease.ErrTopology, afterFailover, err)
	}
	return err
}

// Classify knows our own refusals: a member that is not to be trusted is not asked again at once.
func (g *group) Classify(err error) sqlstore.Verdict {
	switch {
	case errors.Is(err, lease.ErrTopology):
		return sqlstore.Verdict{Class: sqlstore.Refused, As: lease.ErrTopology}
	case errors.Is(err, errNotPrimary):
		return sqlstore.Verdict{Class: sqlstore.Unfit}
	}
	return g.Database.Classify(err)
}
