package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

func TestADialectThatIsNilIsRefused(t *testing.T) {
	for name, d := range map[string]dialect.Dialect{"nil": nil, "a nil pointer": (*sqlstore.Dialect)(nil)} {
		_, files := schema.FS(d)
		_, _, text := schema.SQL(d)
		for _, err := range []error{files, text, schema.Migrate(context.Background(), new(sql.DB), d), schema.Down(context.Background(), new(sql.DB), d)} {
			if !errors.Is(err, lease.ErrConfig) {
				t.Errorf("%s: %v, want %v", name, err, lease.ErrConfig)
			}
		}
	}
}
