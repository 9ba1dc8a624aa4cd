package postgres

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// defaults gives a transaction of the application's the settings that a new session has. The role
// and the search_path stay, because a pooler may have made them for this client (connect_query,
// track_extra_parameters), and the application's tables are found by them; a wrong one is an error,
// and what the others do is silent. It returns what must be right from the beginning.
var defaults = `SELECT /* rowlock defaults */ num_nulls(` + meaning(true) + `,
		set_config('synchronous_commit', NULL, true), set_config('lock_timeout', NULL, true),
		set_config('statement_timeout', NULL, true),
		set_config('idle_in_transaction_session_timeout', NULL, true),
		(SELECT set_config('transaction_timeout', NULL, true)
		 WHERE current_setting('server_version_num')::int >= 170000)),
	current_setting('transaction_isolation'), set_config('default_transaction_isolation', NULL, true),
	current_setting('transaction_read_only')::bool,
	set_config('default_transaction_read_only', NULL, true)::bool`

var levels = map[string]sql.IsolationLevel{
	"read uncommitted": sql.LevelReadUncommitted, "read committed": sql.LevelReadCommitted,
	"repeatable read": sql.LevelRepeatableRead, "serializable": sql.LevelSerializable,
}

// pinShared is Features.PinShared. It mostly takes one round trip. A session with the defaults of
// another client takes a transaction more, because a query, which alone can read the database's
// default, fixes the isolation.
func pinShared(
	ctx context.Context, tx lease.Runner, want *sql.TxOptions, begins *sqlstore.SharedTx,
) (bool, error) {
	for first, needed := range map[string]bool{
		`SET LOCAL statement_timeout TO DEFAULT`: begins.Hurried,
		`SET TRANSACTION READ WRITE`:             begins.ReadOnly,
	} {
		if !needed {
			continue
		}
		if _, err := tx.Exec(ctx, first, nil); err != nil {
			return false, err
		}
	}
	var nulls int
	var has, byDefault string
	var cannot, mayNot bool
	err := tx.QueryOne(ctx, defaults, nil, &nulls, &has, &byDefault, &cannot, &mayNot)
	switch {
	case isState(err, "57014") && !begins.Hurried:
		begins.Hurried = true
		return false, nil
	case err != nil:
		return false, err
	case want.Isolation == sql.LevelDefault && has != byDefault:
		want.Isolation = levels[byDefault]
		return false, nil
	case cannot && !mayNot && !want.ReadOnly:
		begins.ReadOnly = true
		return false, nil
	}
	return true, nil
}
