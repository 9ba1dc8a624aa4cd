package mattn_test

import (
	"database/sql"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"github.com/rowlockdb/rowlock/internal/drivers/refused"
)

func TestMattnIsRefusedInWordsBeforeItWrites(t *testing.T) {
	refused.BeforeItWrites(t, "github.com/mattn/go-sqlite3", func(path string) (*sql.DB, error) {
		return sql.Open("sqlite3", "file:"+path+"?_busy_timeout=5000&_txlock=immediate")
	})
}
