package settings_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/internal/servertest/settings"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMain(m *testing.M) {
	testdb.AtOnce(8)
	goleak.VerifyTestMain(m)
}

// What the other tests here find wrong comes from a setting.
func TestNothingIsWrongUnderUsualSettings(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if err := settings.Conform(t.Context(), e.Pool(t), e, e); err != nil {
			t.Error(err)
		}
	})
}
