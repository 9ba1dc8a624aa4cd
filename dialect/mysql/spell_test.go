package mysql

import (
	"context"
	"database/sql"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

func TestAParameterThatIsWrittenOutIsNoSQL(t *testing.T) {
	got := spell("a = ? AND b = ? AND c = ?", []any{[]byte("it's ?\\\x00"), []byte{}, int64(-7)})
	if want := `a = x'69742773203f5c00' AND b = x'' AND c = -7`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// library is a transaction of another library, which may prepare each text that it is given.
type library struct {
	*sql.Tx
	args []any
}

func (l *library) ExecContext(_ context.Context, _ string, args ...any) (sql.Result, error) {
	l.args = args
	return nil, sql.ErrTxDone
}

func TestATransactionOfAnotherLibraryGetsParameters(t *testing.T) {
	l := new(library)
	_, _ = sqlstore.Of(New()).InTx(l).Exec(t.Context(), "?", []any{int64(1)})
	if len(l.args) != 1 {
		t.Errorf("%d parameters, want 1", len(l.args))
	}
}
