package shown

import (
	"regexp"
	"testing"

	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

var bounded = regexp.MustCompile(
	`^/\*M! SET STATEMENT max_statement_time = 5, [^*]* FOR \*/ SELECT /\*\+ MAX_EXECUTION_TIME\(5000\) [^*]*\*/ /\* rowlock `)

func TestMySQLAndMariaDBEndAStatementThemselves(t *testing.T) {
	read := 0
	for name, text := range statements(sqlstore.Of(mysql.New()), nil) {
		read++
		if !bounded.MatchString(text) {
			t.Errorf("%s is sent without a bound: %.120s", name, text)
		}
	}
	if read < 5 {
		t.Errorf("there are %d statements", read)
	}
	for name, text := range statements(sqlstore.Of(postgres.New()), nil) {
		if bounded.MatchString(text) {
			t.Errorf("PostgreSQL, which is told, is sent %s with a bound", name)
		}
	}
}
