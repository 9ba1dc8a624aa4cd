package ncruces_test

import (
	"database/sql"
	"testing"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/rowlockdb/rowlock/internal/drivers/refused"
)

func TestNcrucesIsRefusedInWordsBeforeItWrites(t *testing.T) {
	refused.BeforeItWrites(t, "github.com/ncruces/go-sqlite3", func(path string) (*sql.DB, error) {
		return sql.Open("sqlite3", "file:"+path+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	})
}
