package servertest

import (
	"database/sql"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// Storm is a database in bad weather, and what is random there.
type Storm struct {
	*testdb.Env
	*faultdb.Weather
	*rand.Rand
}

// InBadWeather runs n schedules, or as many as ROWLOCK_EVERY_CALL says, on each database. Each has
// tables of its own. The weather is fair until f has it turn.
func InBadWeather(t *testing.T, n int, f func(t *testing.T, s *Storm)) {
	t.Helper()
	n = FromEnvironment("ROWLOCK_EVERY_CALL", n)
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for range n {
			seed := rand.Uint64()
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(seed, 1))
				f(t, &Storm{e.Kind.Open(t), faultdb.NewWeather(rng.Uint64()), rng})
			})
		}
	})
}

// Exposed is a pool whose connections the weather breaks.
func (s *Storm) Exposed(tb testing.TB) *sql.DB {
	tb.Helper()
	db, err := faultdb.Open(s.Driver, s.Source, s.Weather)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// Branch is what is random for one of several goroutines.
func (s *Storm) Branch() *rand.Rand { return rand.New(rand.NewPCG(s.Uint64(), 2)) }
