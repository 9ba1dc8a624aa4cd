package sqlstore_test

import (
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

func TestAFileIsCutAtItsNames(t *testing.T) {
	const file = "-- About the file.\n\n" +
		"-- name: a-b\n-- one\n-- two\n--\n-- three\nSELECT 1 -- why\nFROM t;\n\n" +
		"-- name: none\n-- Nothing.\n"
	type parts struct{ name, body, sql string }
	want := []parts{
		{name: "a-b", body: "-- one\n-- two\n--\n-- three\nSELECT 1 -- why\nFROM t;\n\n", sql: "SELECT 1\nFROM t"},
		{name: "none", body: "-- Nothing.\n"},
	}
	var got []parts
	for _, s := range sqlstore.CutSections(file) {
		got = append(got, parts{s.Name, s.Body, s.SQL})
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestALabelStandsAfterTheVerb(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT 1":                       "SELECT /* rowlock s */ 1",
		"BEGIN":                          "BEGIN /* rowlock s */",
		"WITH w AS (SELECT 1)\nUPDATE t": "WITH /* rowlock s */ w AS (SELECT 1)\nUPDATE t",
		"/*M! SET STATEMENT x = 0 FOR */ UPDATE t /*!80000 OF r */": "" +
			"/*M! SET STATEMENT x = 0 FOR */ UPDATE /* rowlock s */ t /*!80000 OF r */",
		"":             "",
		"rowlock_hold": "rowlock_hold",
		`"rowlock"`:    `"rowlock"`,
	} {
		if got := sqlstore.LabelSection("s", sql); got != want {
			t.Errorf("%q is labeled %q", sql, got)
		}
	}
}
