package shown

import (
	"fmt"
	"strings"
	"time"
)

// Patience bounds a statement. The caller's context does too.
const Patience = 5 * time.Second

// bound has MySQL and MariaDB end a statement after Patience: both go on with one whose connection
// was closed, which is how an ended context reaches them. PostgreSQL and SQLite are told.
//
// MySQL reads a hint right after the verb, before any other comment. MariaDB executes what is
// inside /*M! … */.
func bound(statement string) string {
	const limits = `/*M! SET STATEMENT max_statement_time = %d FOR */ ` +
		`SELECT /*+ MAX_EXECUTION_TIME(%d) */`
	body, found := strings.CutPrefix(statement, "SELECT")
	if !found {
		return statement
	}
	return fmt.Sprintf(limits, int(Patience.Seconds()), Patience.Milliseconds()) + body
}
