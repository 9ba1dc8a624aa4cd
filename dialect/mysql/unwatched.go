package mysql

import "github.com/rowlockdb/rowlock/internal/sqlstore"

var _ sqlstore.UnwatchedTx = (*Dialect)(nil)

// UnwatchedTx says that go-sql-driver's Commit and Rollback have no end of their own: a COMMIT that was not answered was seen to keep its
// caller for 45 s beyond a context of 3 s.
func (d *Dialect) UnwatchedTx() {}
