package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"
)

// RunNoText has a session of MySQL or MariaDB run a statement that is not valid in any character set,
// as those with bytes as parameters are, until the test ends.
func RunNoText(tb testing.TB, db *sql.DB) {
	tb.Helper()
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	var id int64
	if err := conn.QueryRowContext(ctx, `SELECT CONNECTION_ID()`).Scan(&id); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = conn.ExecContext(ctx, fmt.Sprintf("DO /* \xff\xfe */ GET_LOCK('no text %d', 0), SLEEP(600)", id))
	}()
	tb.Cleanup(func() {
		_, err := db.ExecContext(ctx, fmt.Sprintf(`KILL QUERY %d`, id))
		<-ended
		if bad := conn.Close(); err != nil || bad != nil {
			tb.Error(err, bad)
		}
	})
	for runs := false; !runs; time.Sleep(time.Millisecond) {
		query := fmt.Sprintf(`SELECT IS_USED_LOCK('no text %d') IS NOT NULL`, id)
		if err := db.QueryRowContext(ctx, query).Scan(&runs); err != nil {
			tb.Fatal(err)
		}
	}
}
