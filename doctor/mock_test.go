package doctor_test

import (
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/doctor"
)

// scripted is what a MySQL or MariaDB would say of its settings.
func scripted(t *testing.T, version string, vars ...string) doctor.Finding {
	t.Helper()
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mock.MatchExpectationsInOrder(false)
	mock.ExpectQuery("SELECT.* VERSION").WillReturnRows(
		sqlmock.NewRows([]string{"v", "n"}).AddRow(version, "'app'@'%'"))
	rows := sqlmock.NewRows([]string{"Variable_name", "Value"})
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		rows.AddRow(name, value)
	}
	mock.ExpectQuery("SHOW .*SESSION VARIABLES").WillReturnRows(rows)
	r, err := doctor.Examine(t.Context(), db, mysql.New(), quick("topology"))
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
