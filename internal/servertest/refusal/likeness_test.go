package refusal

import (
	"errors"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// Databases that speak PostgreSQL's protocol and are not PostgreSQL. docs/compatibility.md says how
// their answers were learned.
func TestOpenRefusesWhatOnlyResemblesPostgreSQL(t *testing.T) {
	s := &servertest.Scene{T: t}
	for _, answer := range []string{
		"PostgreSQL 15.12-YB-2025.2.3.2-b0 on x86_64-pc-linux-gnu, compiled by clang version 19.1.0, 64-bit",
		"PostgreSQL 11.2-YB-2.18.0.1-b0 on x86_64-pc-linux-gnu, compiled by clang version 15.0.3, 64-bit",
		"PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2 20041017 (Red Hat 3.4.2-6.fc3), Redshift 1.0.12103",
		"PostgreSQL 12.12 (Greenplum Database 7.1.0 build) on x86_64-pc-linux-gnu, compiled by gcc, 64-bit",
		"PostgreSQL 12.3, compiled by Visual C++ build 1914, 64-bit, QuestDB",
		"PostgreSQL 16",
		"PostgreSQL 14.1",
		"CockroachDB CCL v26.2.5 (x86_64-pc-linux-gnu, built 2026/05/04 17:12:20, go1.26.2)",
		"",
	} {
		refused(s, answers(s, answer), postgres.New(), rowlock.ErrWrongDialect, answer, "a PostgreSQL server")
	}
}

// Each is a build of PostgreSQL itself, or of a service that keeps its storage elsewhere and its
// row locks as they are. What comes next asks for what the mock does not answer.
func TestOpenTakesEveryBuildOfPostgreSQL(t *testing.T) {
	s := &servertest.Scene{T: t}
	for _, answer := range []string{
		"PostgreSQL 13.23 on x86_64-pc-linux-gnu, compiled by gcc (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0, 64-bit",
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit",
		"PostgreSQL 16.4, compiled by Visual C++ build 1940, 64-bit",
		"PostgreSQL 18beta1 on x86_64-linux, compiled by gcc-14.2.0, 64-bit",
		"PostgreSQL 17.5 (6bc9ef8) on aarch64-unknown-linux-gnu, compiled by gcc (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit",
	} {
		_, err := rowlock.Open(answers(s, answer), postgres.New(), servertest.Config())
		if err == nil || errors.Is(err, rowlock.ErrWrongDialect) {
			t.Errorf("%q is refused as another product: %v", answer, err)
		}
	}
}

// answers scripts a server's version.
func answers(s *servertest.Scene, version string) rowlock.DB {
	db, mock, err := sqlmock.New()
	s.OK(err)
	s.Cleanup(func() { _ = db.Close() })
	mock.ExpectQuery("version").WillReturnRows(sqlmock.NewRows([]string{"version"}).AddRow(version))
	return db
}

func TestOpenRefusesWhatOnlyResemblesMySQL(t *testing.T) {
	s := &servertest.Scene{T: t}
	for _, vars := range [][]string{
		{"version=8.0.11-TiDB-v8.5.1", "version_comment=TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible"},
		{"version=8.0.30-Vitess", "version_comment=Version: 20.0.0"},
		{"version=5.7.25-OceanBase-v4.3.5.0", "version_comment=OceanBase 4.3.5.0"},
		{"version=5.7.32", "version_comment=SingleStoreDB source distribution (compatible; MySQL Enterprise & MySQL Commercial)"},
	} {
		refused(s, variables(s, vars...), mysql.New(), rowlock.ErrWrongDialect,
			vars[0][len("version="):], "a MySQL or MariaDB server")
	}
}

// Vitess may show the variables of the MySQL beneath it. Each session asks again.
func TestASessionOnVitessIsRefused(t *testing.T) {
	s := &servertest.Scene{T: t}
	db, mock, err := sqlmock.New()
	s.OK(err)
	defer db.Close()
	mock.ExpectExec("SET SESSION sql_select_limit").WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectQuery("SELECT VERSION").WillReturnRows(
		sqlmock.NewRows([]string{"version", "id"}).AddRow("8.0.30-Vitess", 7))
	pinned, err := db.Conn(t.Context())
	s.OK(err)
	defer pinned.Close()
	err = sqlstore.Of(mysql.New()).Setup(t.Context(), conn.NewSession(pinned))
	s.WantErr(err, rowlock.ErrWrongDialect)
}
