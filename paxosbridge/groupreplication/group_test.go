package groupreplication

import (
	"database/sql"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	driving "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A clock that is set back by an hour had no member checked for that hour, in which the last one
// left could acknowledge writes alone.
func TestAGroupIsCheckedAfterAClockWasSetBack(t *testing.T) {
	now := time.Now().UnixNano()
	for ago, want := range map[time.Duration]bool{
		0: true, watchEvery - 1: true, watchEvery: false, time.Hour: false, -time.Hour: false,
	} {
		if got := isFresh(now-int64(ago), now); got != want {
			t.Errorf("checked %v ago: %v", ago, got)
		}
	}
}

func TestSettingsAreRefusedByName(t *testing.T) {
	good := settings{
		"group_replication_group_name":          "6f3b1a52-0000-4000-8000-000000000001",
		"group_replication_single_primary_mode": "ON",
		"group_replication_exit_state_action":   "READ_ONLY",
		"innodb_flush_log_at_trx_commit":        "1",
		"sync_binlog":                           "1",
		"binlog_error_action":                   "ABORT_SERVER",
	}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"group_replication_single_primary_mode": "OFF",
		"group_replication_exit_state_action":   "STAY_WRITABLE",
		"innodb_flush_log_at_trx_commit":        "2",
		"sync_binlog":                           "1000", "binlog_error_action": "IGNORE_ERROR",
	} {
		for _, value := range []string{bad, ""} { // or the server does not know the setting
			s := maps.Clone(good)
			s[name] = value
			if err := s.check(); !errors.Is(err, lease.ErrTopology) ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("%s = %q: %v", name, value, err)
			}
		}
	}
	if err := (settings{}).check(); !errors.Is(err, lease.ErrTopology) {
		t.Errorf("a server without the plugin: %v", err)
	}
}

func TestAPrimaryNeedsTheMajority(t *testing.T) {
	for _, c := range []struct {
		view
		least int
		want  error
	}{
		{view{"ONLINE", "PRIMARY", 3, 3}, 3, nil},
		{view{"ONLINE", "PRIMARY", 3, 2}, 3, nil},
		{view{"ONLINE", "PRIMARY", 2, 2}, 2, nil},
		{view{"ONLINE", "PRIMARY", 3, 1}, 2, errNotPrimary},
		{view{"ONLINE", "PRIMARY", 2, 1}, 2, errNotPrimary},
		{view{"ONLINE", "PRIMARY", 4, 2}, 2, errNotPrimary},
		{view{"ONLINE", "SECONDARY", 3, 3}, 2, errNotPrimary},
		{view{"RECOVERING", "PRIMARY", 3, 3}, 2, errNotPrimary},
		{view{"ERROR", "", 3, 3}, 2, errNotPrimary},
		{view{"ONLINE", "PRIMARY", 1, 1}, 2, lease.ErrTopology},
		{view{"ONLINE", "PRIMARY", 2, 2}, 3, lease.ErrTopology},
	} {
		if err := c.leads(c.least); !errors.Is(err, c.want) {
			t.Errorf("%+v, at least %d: %v, want %v", c.view, c.least, err, c.want)
		}
	}
}

// A server that was told to roll back what it has sent does not know whether the others commit it.
func TestARollbackOfTheGroupHasAnUnknownOutcome(t *testing.T) {
	g := &group{sqlstore.Of(mysql.New())}
	for number, want := range map[uint16]sqlstore.Class{
		3100: sqlstore.Unknown, 3101: sqlstore.Unknown, 1180: sqlstore.Unknown,
		1290: sqlstore.Unfit, 1836: sqlstore.Unfit, 3796: sqlstore.Unfit,
		3797: sqlstore.Unfit, 3098: sqlstore.Refused,
	} {
		if v := g.Classify(&driving.MySQLError{Number: number}); v.Class != want {
			t.Errorf("%d is %s, want %s", number, v.Class, want)
		}
	}
}

func TestASessionWaitsForTheBacklogWithAnyServerDefault(t *testing.T) {
	for _, dsn := range testdb.Group(t) {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var before string
		row := db.QueryRow(`SELECT @@GLOBAL.group_replication_consistency`)
		if err := row.Scan(&before); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ global, want string }{
			{eventual, afterFailover}, {afterFailover, afterFailover}, {"BEFORE", "BEFORE"},
		} {
			_, err := db.Exec(`SET GLOBAL group_replication_consistency = '` + c.global + `'`)
			if err != nil {
				t.Fatal(err)
			}
			if got := session(t, dsn); got != c.want {
				t.Errorf("where the server says %s a session has %s", c.global, got)
			}
		}
		_, err = db.Exec(`SET GLOBAL group_replication_consistency = '` + before + `'`)
		if err != nil {
			t.Error(err)
		}
	}
}

// session returns the settings of a new session of the cluster.
func session(t *testing.T, dsn string) (consistency string) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	pinned, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := conn.NewSession(pinned)
	s.EraAt(0)
	defer s.Discard()
	if err := (&group{sqlstore.Of(mysql.New())}).Setup(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	query := `SELECT @@SESSION.group_replication_consistency`
	if err := pinned.QueryRowContext(t.Context(), query).Scan(&consistency); err != nil {
		t.Fatal(err)
	}
	return consistency
}

func TestASessionWithoutBinaryLogIsRefused(t *testing.T) {
	db, err := sql.Open("mysql", testdb.Group(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	pinned, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := conn.NewSession(pinned)
	s.EraAt(0)
	defer s.Discard()
	if _, err := pinned.ExecContext(t.Context(), `SET SESSION sql_log_bin = 0`); err != nil {
		t.Fatal(err)
	}
	err = (&group{sqlstore.Of(mysql.New())}).Setup(t.Context(), s)
	if !errors.Is(err, lease.ErrTopology) || !strings.Contains(err.Error(), "sql_log_bin") {
		t.Error(err)
	}
}
