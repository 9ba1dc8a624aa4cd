package doctor_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/doctor"
)

// named leaves out the question for the schema of the tables.
var named = dialect.Schema("app")

// scripted is what a MySQL or MariaDB would say of its settings.
func scripted(t *testing.T, version string, vars ...string) doctor.Finding {
	t.Helper()
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mock.MatchExpectationsInOrder(false)
	mock.ExpectExec("ROLLBACK").WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectExec("SET SESSION sql_select_limit").WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectQuery("SELECT.* VERSION").WillReturnRows(
		sqlmock.NewRows([]string{"v", "n"}).AddRow(version, "'app'@'%'"))
	rows := sqlmock.NewRows([]string{"Variable_name", "Value"})
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		rows.AddRow(name, value)
	}
	mock.ExpectQuery("SHOW .*SESSION VARIABLES").WillReturnRows(rows)
	r, err := doctor.Examine(t.Context(), db, mysql.New(named), quick("topology"))
	if err != nil {
		t.Fatal(err)
	}
	return r.Findings[0]
}

// The answers are scripted: no Galera cluster and no group with several primaries is at hand.
func TestClustersWithSeveralWritersAreFound(t *testing.T) {
	judge(t, scripted(t, "10.11.19-MariaDB", "wsrep_on=ON"), doctor.Critical, "Galera", "certif", "1213",
		"wsrep_on = ON")
	judge(t, scripted(t, "10.11.19-MariaDB", "wsrep_on=OFF"), doctor.OK)
	const group = "group_replication_group_name=f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	judge(t, scripted(t, "9.7.4", group, "group_replication_single_primary_mode=OFF"), doctor.Critical,
		"several primaries", "group_replication_switch_to_single_primary_mode")
	judge(t, scripted(t, "9.7.4", group, "group_replication_single_primary_mode=ON"), doctor.OK)
}

// session is what a server would say of a connection.
func session(t *testing.T, d dialect.Dialect, peer string, state ...string) doctor.Finding {
	t.Helper()
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mock.MatchExpectationsInOrder(false)
	mock.ExpectExec("ROLLBACK").WillReturnResult(sqlmock.NewResult(0, 0))
	if d.Name() == "mysql" {
		mock.ExpectExec("SET SESSION sql_select_limit").WillReturnResult(sqlmock.NewResult(0, 0))
	}
	mock.ExpectQuery("(?i)VERSION").WillReturnRows(sqlmock.NewRows([]string{"v", "n"}).AddRow("17.1", "app"))
	mock.ExpectQuery("SHOW .*SESSION VARIABLES|pg_settings").WillReturnRows(sqlmock.NewRows([]string{"n", "v"}))
	rows := sqlmock.NewRows([]string{"name", "value"})
	for _, s := range state {
		name, value, _ := strings.Cut(s, "=")
		rows.AddRow(name, value)
	}
	mock.ExpectQuery("SESSION STATUS|pg_stat_ssl").WillReturnRows(rows)
	mock.ExpectQuery("SUBSTRING_INDEX|inet_client_addr").WillReturnRows(sqlmock.NewRows([]string{"host"}).AddRow(peer))
	r, err := doctor.Examine(t.Context(), db, d, quick("encryption"))
	if err != nil {
		t.Fatal(err)
	}
	return r.Findings[0]
}

// The answers are scripted: the servers of tests are on this machine.
func TestAConnectionInClearTextIsFound(t *testing.T) {
	judge(t, session(t, postgres.New(named), "10.0.0.7", "ssl=false", "version=", "cipher="), doctor.Warning,
		"10.0.0.7", "not encrypted", "sslmode=verify-full")
	judge(t, session(t, postgres.New(named), "10.0.0.7", "ssl=true", "version=TLSv1.3", "cipher=TLS_AES_256_GCM_SHA384"), doctor.OK)
	judge(t, session(t, postgres.New(named), "", "ssl=false", "version=", "cipher="), doctor.OK)
	judge(t, session(t, postgres.New(named), "::1", "ssl=false", "version=", "cipher="), doctor.OK)
	judge(t, session(t, mysql.New(named), "web-1", "Ssl_cipher=", "Ssl_version="), doctor.Warning, "web-1", "tls=true")
	judge(t, session(t, mysql.New(named), "web-1", "Ssl_cipher=TLS_AES_128_GCM_SHA256", "Ssl_version=TLSv1.3"), doctor.OK)
	judge(t, session(t, mysql.New(named), "localhost", "Ssl_cipher=", "Ssl_version="), doctor.OK)
}

// A user without the rights, or a server that is slow, is no reason to panic.
func TestACheckOfOtherSessionsMayFail(t *testing.T) {
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mock.MatchExpectationsInOrder(false)
	mock.ExpectExec("ROLLBACK").WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectQuery("(?i)VERSION").WillReturnRows(sqlmock.NewRows([]string{"v", "n"}).AddRow("PostgreSQL 17.1", "app"))
	mock.ExpectQuery("pg_settings").WillReturnRows(sqlmock.NewRows([]string{"n", "v"}))
	mock.ExpectExec("BEGIN").WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectExec("SET LOCAL").WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectQuery("pg_stat_activity").WillReturnError(errors.New("permission denied for view pg_stat_activity"))
	r, err := doctor.Examine(t.Context(), db, postgres.New(named), quick("horizon"))
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.Checked || !strings.Contains(f.Summary, "permission denied") {
		t.Errorf("%+v", f)
	}
}

// A name that is in no file would be a check that finds nothing.
func TestEachSectionIsOfADatabaseAndIsAskedFor(t *testing.T) {
	have, asked := make(map[string]bool), make(map[string]bool)
	collect(t, "*.sql", `(?m)^-- name: ([a-z-]+)`, have)
	collect(t, "*.go", `(?:\.rows|\.scan|\.others)\(ctx, "([a-z-]+)"|x\.text\["([a-z-]+)"\]`, asked)
	for name := range have {
		if !asked[strings.TrimSuffix(name, "-timed")] {
			t.Errorf("no check asks for %q", name)
		}
	}
	for name := range asked {
		if !have[name] {
			t.Errorf("no database has %q", name)
		}
	}
}

func collect(t *testing.T, files, pattern string, into map[string]bool) {
	t.Helper()
	paths, err := filepath.Glob(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			into[strings.Join(m[1:], "")] = true
		}
	}
}

// The statement_timeout of a role may leave no time to read even the settings. The server is no
// other product then.
func TestAStatementTimeoutThatLeavesNoTimeIsNamed(t *testing.T) {
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mock.MatchExpectationsInOrder(false)
	mock.ExpectExec("ROLLBACK").WillReturnResult(sqlmock.NewResult(0, 0))
	for range 6 {
		mock.ExpectQuery("version").WillReturnError(&pgconn.PgError{Code: "57014", Message: "canceling statement due to statement timeout"})
	}
	_, err = doctor.Examine(t.Context(), db, postgres.New(named), quick("server"))
	if err == nil || !strings.Contains(err.Error(), "SET statement_timeout = '5s'") || strings.Contains(err.Error(), "does not answer as") {
		t.Errorf("got %v", err)
	}
}
