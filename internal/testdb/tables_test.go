package testdb_test

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// A server that is left with the tables of thousands of tests has large catalogs, and is slow.
func TestTheTablesGoWithTheTest(t *testing.T) {
	for _, k := range testdb.Servers {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			var prefix string
			t.Run("a test", func(t *testing.T) { prefix = k.Open(t).Dialect.Names().Prefix })
			e := k.Open(t)
			rows, err := e.DB.QueryContext(t.Context(), `SELECT table_name FROM information_schema.tables`)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			own := 0
			for rows.Next() {
				var name string
				if err := rows.Scan(&name); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(name, prefix) {
					t.Errorf("%s is left", name)
				}
				if strings.HasPrefix(name, e.Dialect.Names().Prefix) {
					own++
				}
			}
			if err := rows.Err(); err != nil || own < 10 {
				t.Fatalf("%d tables are seen of a test that goes on, %v", own, err)
			}
		})
	}
}
