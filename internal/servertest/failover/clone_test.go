package failover

import (
	"database/sql"
	"testing"

	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// A server that was cloned from a primary by MySQL's plugin has forgotten what the primary granted
// since. It is another server, and starts: an era begins.
func TestNoTokenRepeatsAfterMySQLWasCloned(t *testing.T) {
	k := testdb.Kinds[3]
	k.DSN(t) // skips
	donor, copied := standby.StartAlone(t, k.Name), standby.StartAlone(t, k.Name)
	r := &restored{T: t, kind: k, source: donor.Source, d: sqlstore.Of(mysql.New())}
	r.do(func(db *sql.DB) {
		if err := schema.Migrate(t.Context(), db, r.d); err != nil {
			t.Fatal(err)
		}
	})
	r.grant(2)
	copied.Clone(t, donor)
	forgotten := r.last
	r.grant(3)

	r.source = copied.Source
	r.do(func(db *sql.DB) {
		var token int64
		if err := db.QueryRow("SELECT token FROM rowlock WHERE `key` = 'k'").Scan(&token); err != nil || token != forgotten {
			t.Errorf("the copy has token %d, %v, want %d: it proves nothing", token, err, forgotten)
		}
	})
	r.grant(2)
	r.grant(2) // and the history is known from now on
}
