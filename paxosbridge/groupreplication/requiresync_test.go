package groupreplication_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock"
)

// A client with RequireSync may lock on a group, because a commit is a majority's. It is refused
// where a commit is not, and the error says why.
func TestRequireSyncTakesAGroup(t *testing.T) {
	r := newRig(t)
	primary, others := r.roles()
	opens := func(dsn string) error {
		t.Helper()
		c, err := rowlock.Open(r.pool(dsn), r.dialect, &rowlock.Config{RequireSync: true})
		if err != nil {
			return err
		}
		defer c.Close()
		l, err := c.TryLock(t.Context(), "k")
		if err != nil {
			return err
		}
		return l.Unlock(t.Context())
	}
	refuses := func(dsn string, want error, says string) {
		t.Helper()
		if err := opens(dsn); !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %v with %q", err, want, says)
		}
	}
	dsn := r.dsns[primary]
	if err := opens(dsn); err != nil {
		t.Fatalf("the primary of a whole group: %v", err)
	}
	refuses(r.dsns[others[0]], rowlock.ErrReadOnly, "")
	refuses(with(t, dsn, "", "group_replication_consistency", "'EVENTUAL'"), rowlock.ErrNotSynchronous, "EVENTUAL")
	refuses(with(t, dsn, "", "sql_log_bin", "0"), rowlock.ErrNotSynchronous, "sql_log_bin is OFF")
	r.at(primary, `CREATE USER IF NOT EXISTS plain@'127.0.0.1'`,
		`GRANT SELECT, INSERT, UPDATE, DELETE, DROP, CREATE ON rowlock_test.* TO plain@'127.0.0.1'`,
		`GRANT REPLICATION CLIENT ON *.* TO plain@'127.0.0.1'`)
	defer r.at(primary, `DROP USER plain@'127.0.0.1'`)
	plain := with(t, dsn, "plain", "", "")
	refuses(plain, rowlock.ErrPrivilege, "replication_group_members")
	r.at(primary, `GRANT SELECT ON performance_schema.replication_group_members TO plain@'127.0.0.1'`)
	if err := opens(plain); err != nil {
		t.Errorf("a user who may see the members: %v", err)
	}
	for _, i := range others {
		r.at(i, `STOP GROUP_REPLICATION`)
	}
	r.eventually("the primary knows that it is alone", func() bool {
		var online int
		err := r.dbs[primary].QueryRow(`SELECT COUNT(*) FROM performance_schema.replication_group_members
			WHERE member_state = 'ONLINE'`).Scan(&online)
		return err == nil && online == 1
	})
	refuses(dsn, rowlock.ErrNotSynchronous, "1 of 2 required members")
	for _, i := range others {
		r.at(i, `START GROUP_REPLICATION`)
	}
	r.whole()
	if err := opens(dsn); err != nil {
		t.Errorf("the group is whole again: %v", err)
	}
}

// with is a data source name for another user, or with another variable of the session.
func with(t *testing.T, dsn, user, variable, value string) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		cfg.User, cfg.Passwd = user, ""
	}
	if variable != "" {
		cfg.Params = map[string]string{variable: value}
	}
	return cfg.FormatDSN()
}

func (r *rig) at(member int, statements ...string) {
	r.Helper()
	for _, q := range statements {
		if _, err := r.dbs[member].Exec(q); err != nil {
			r.Fatalf("%s: %v", q, err)
		}
	}
}
