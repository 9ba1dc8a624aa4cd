package table_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// A silence that is no more than that is borne.
func TestNothingIsMadeOfAServerThatHasNothingToSay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some 5 s")
	}
	e := on(t, "postgres")
	named(t, e)
	s := openOn(t, e, e.Dialect, true)
	ear := listen(t, s)
	var asked bool
	for began := time.Now(); !asked; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("the listener never asked whether the server is there")
		}
		err := e.DB.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE application_name = $1 AND query LIKE '-- rowlock listens%' AND state = 'idle')`, t.Name()).Scan(&asked)
		if err != nil {
			t.Fatal(err)
		}
	}
	announce(t, s, "key")
	ear.wants("key", patience)
}

func TestAConnectionThatIsCutInSilenceIsReplacedInTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some 10 s")
	}
	for _, name := range []string{"of the pool", "of its own"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := on(t, "postgres")
			clean := openOn(t, e, e.Dialect, false)
			d := e.Dialect
			h, holed := e.Holed(t)
			if name == "of the pool" {
				e.Source = holed
			} else {
				d = sqlstore.Of(postgres.New(dialect.Prefix(d.Names().Prefix), postgres.Listen(holed)))
			}
			s := openOn(t, e, d, true)
			ear := listen(t, s)
			announce(t, clean, "before")
			ear.wants("before", patience)
			servertest.AtOnce(t, 10*time.Second, "that any key may be free", func() time.Duration {
				h.Cut()
				began := time.Now()
				announce(t, clean, "while nobody hears")
				ear.wants("", patience)
				return time.Since(began)
			})
			announce(t, clean, "after")
			ear.wants("after", patience)
		})
	}
}
