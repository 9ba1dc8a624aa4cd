package shown

import (
	"fmt"
	"strings"
	"time"
)

// Patience bounds a statement. The caller's context does too.
const Patience = 5 * time.Second

// bound has MySQL and MariaDB end a statement after Patience: both go on with one whose connection
// was closed, which is how an ended context reaches them. PostgreSQL and SQLite are told. The
// session is the application's, and keeps settings that would cut the page short or stop its clock:
// they are made for the statement. A timestamp of 0 is the clock's.
//
// MySQL reads a hint right after the verb, before any other comment. MariaDB executes what is
// inside /*M! … */.
func bound(statement string) string {
	const limits = `/*M! SET STATEMENT max_statement_time = %d, sql_select_limit = 18446744073709551615, ` +
		`timestamp = 0 FOR */ SELECT /*+ MAX_EXECUTION_TIME(%d) ` +
		`SET_VAR(sql_select_limit=18446744073709551615) SET_VAR(timestamp=0) */`
	body, found := strings.CutPrefix(statement, "SELECT")
	if !found {
		return statement
	}
	return fmt.Sprintf(limits, int(Patience.Seconds()), Patience.Milliseconds()) + body
}
