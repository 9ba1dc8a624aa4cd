package failover

import (
	"database/sql"
	"testing"

	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A server that was cloned from a primary by MySQL's plugin has forgotten what the primary granted
// since. It is another server, and starts: an era begins.
func TestNoTokenRepeatsAfterMySQLWasCloned(t *testing.T) {
	k := testdb.Kinds[3]
	k.DSN(t) // skips
	donor, copied := standby.StartAlone(t, k.Name), standby.StartAlone(t, k.Name)
	putBack(t, k, donor.Source, func() (back func() string) {
		copied.Clone(t, donor)
		return func() string { return copied.Source }
	})
}

// mariadb-backup puts the server's files back as they were. The server has the same name and
// address as before, and has started: an era begins.
func TestNoTokenRepeatsAfterMariaDBWasRestoredFromItsBackup(t *testing.T) {
	k := testdb.Kinds[2]
	k.DSN(t) // skips
	server := standby.StartAlone(t, k.Name)
	putBack(t, k, server.Source, func() (back func() string) {
		restore := server.BackUp(t)
		return func() string { restore(t); return server.Source }
	})
}

// putBack has data kept, and put back after more was granted: back returns where it is then.
func putBack(t *testing.T, k testdb.Kind, source string, keep func() (back func() string)) {
	t.Helper()
	r := &restored{T: t, kind: k, source: source, d: sqlstore.Of(mysql.New())}
	r.migrate()
	r.grant(2)
	back := keep()
	forgotten := r.last
	r.grant(3)
	r.source = back()
	r.has(forgotten)
	r.grant(2)
	r.grant(2) // and the history is known from now on
}

// has fails the test unless the row's token is the one that was restored: else it proves nothing.
func (r *restored) has(token lease.Token) {
	r.Helper()
	r.do(func(db *sql.DB) {
		var got lease.Token
		if err := db.QueryRow("SELECT token FROM rowlock WHERE `key` = 'k'").Scan(&got); err != nil || got != token {
			r.Errorf("the copy has token %d, %v, want %d: it proves nothing", got, err, token)
		}
	})
}
