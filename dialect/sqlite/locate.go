package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// Locate returns the name of the file that the connection was opened with. Without it a temporary
// table of a session, which comes first, would stand for ours. It is asked before all else, and
// refuses a driver whose errors Classify does not know: a busy file would be an unknown outcome.
func (d *database) Locate(ctx context.Context, conn *sql.Conn, _ string) (string, error) {
	_, err := conn.ExecContext(ctx, `SELECT sqlite_version(0)`) // an argument too many
	if err != nil && !d.Native(err) && strings.Contains(err.Error(), "wrong number of arguments") {
		return "", fmt.Errorf("%w: the pool's driver has errors of %s, and rowlock knows those of "+
			"modernc.org/sqlite alone; open the file with sqlite.Open(path), or import _ "+
			"\"modernc.org/sqlite\" and use sql.Open(\"sqlite\", …): %w", lease.ErrConfig,
			reflect.Indirect(reflect.ValueOf(err)).Type().PkgPath(), err)
	}
	return "main", nil
}
