package schema

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// explain turns a database's error into one of rowlock's, as Open does.
func (s *session) explain(ctx context.Context, db DB, verb string, err error) error {
	if err == nil || sqlstore.IsRefusal(err) || errors.Is(err, lease.ErrHeld) {
		return err
	}
	v := sqlstore.Judge(s.dialect, err)
	if cure := s.cure(v.As); cure != "" {
		return fmt.Errorf("%w: %s: %w; %s", v.As, verb, err, cure)
	}
	if refusal := s.server(ctx, db); refusal != nil {
		return refusal
	}
	return v.Explain(verb, err)
}

// cure is what helps against an error that says enough by itself.
func (s *session) cure(as error) string {
	switch {
	case errors.Is(as, lease.ErrNoSchema):
		return fmt.Sprintf("make the schema or database first, because a migration makes only tables "+
			"in it (dialect.Schema is %q)", s.dialect.Names().Schema)
	case errors.Is(as, lease.ErrPrivilege):
		return "migrate as a user who may create, alter, lock and drop tables there"
	}
	return ""
}

// server is why the server is of no use, if it is another product or takes no writes. What else a
// client would refuse is no obstacle to a migration.
func (s *session) server(ctx context.Context, db DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil // as the error that is to be explained says
	}
	defer conn.Close()
	_, err = s.dialect.Server(ctx, conn)
	// It may be in a state in which the migration failed.
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	if errors.Is(err, lease.ErrWrongDialect) || errors.Is(err, lease.ErrReadOnly) {
		return err
	}
	return nil
}
