package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

// opens does what rowlock.Open does, with the code of rowlock.Open: whatever a client is refused
// for is then found, whether or not another check knows it.
func opens(ctx context.Context, x *examiner) (f Finding, err error) {
	x.leave() // the pool may have no connection to spare
	s, facts, err := table.Open(ctx, x.pool, x.d, table.Options{
		Connections: 1, Strategy: adapter.Update, Timeout: x.o.Limit, Limit: x.o.Limit,
	})
	if !isnil.Value(s) && err == nil {
		err = s.Close()
	}
	f.saw("server", facts.Server, "rowlock.Open")
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		f.raise(Critical, fmt.Sprintf("rowlock.Open does not end within %s", x.o.Limit),
			"see what its statements wait for, or examine with a longer limit")
	case err != nil:
		f.saw("refusal", keytext.Error(err), "rowlock.Open")
		f.raise(Critical, "rowlock.Open refuses this database: "+keytext.Error(err), cureOf(err))
	}
	f.fine("rowlock.Open takes this database: every kind of statement was run on a key of its own")
	return f, nil
}

// cureOf is for an error that does not name its cure itself.
func cureOf(err error) string {
	switch {
	case errors.Is(err, lease.ErrPrivilege):
		return "see the check privileges"
	case errors.Is(err, lease.ErrNoSchema), errors.Is(err, lease.ErrSchemaVersion):
		return "see the checks schema and tables"
	}
	return "do what the refusal says"
}
