package mysql_test

import (
	"errors"
	"strings"
	"testing"

	driving "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/lease"
)

func TestIdentifyKeepsWhatIsInTheDSN(t *testing.T) {
	const dsn = "app:p@ss/w:o@tcp(db:3307)/shop?parseTime=true&tls=skip-verify&sql_mode=%27ANSI%27"
	for _, c := range []struct{ attributes, identity, want string }{
		{"", "web-1/7/orders", "program_name:web-1/7/orders"},
		{"team:red,x:y", "web-1", "team:red,x:y,program_name:web-1"},
		{"", "a,b:c d", "program_name:a_b:c d"},
		{"program_name:mine,x:y", "web-1", "program_name:mine,x:y"},
	} {
		before, err := driving.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		before.ConnectionAttributes = c.attributes
		got, err := mysql.Identify(before.FormatDSN(), c.identity)
		if err != nil {
			t.Fatal(err)
		}
		after, err := driving.ParseDSN(got)
		if err != nil {
			t.Fatal(err)
		}
		if after.ConnectionAttributes != c.want {
			t.Errorf("%q and %q are %q, want %q", c.attributes, c.identity, after.ConnectionAttributes, c.want)
		}
		before.ConnectionAttributes, after.ConnectionAttributes = "", ""
		if before.FormatDSN() != after.FormatDSN() {
			t.Errorf("%s became %s", before.FormatDSN(), after.FormatDSN())
		}
	}
	if got, err := mysql.Identify("/", ""); err != nil || !strings.Contains(got, "program_name") {
		t.Errorf("without an identity: %q, %v", got, err)
	}
}

func TestIdentifyRefusesByName(t *testing.T) {
	for _, c := range []struct{ dsn, identity, says string }{
		{"app:secret@tcp(db/shop", "a", "the DSN"},
		{"/", "a\nb", `Identity "a\nb"`},
	} {
		got, err := mysql.Identify(c.dsn, c.identity)
		if !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q, %q: %q, %v", c.dsn, c.identity, got, err)
		}
	}
}
