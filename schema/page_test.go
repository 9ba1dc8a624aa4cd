package schema_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/schema"
)

func TestThePageSaysHowManyTablesThereAre(t *testing.T) {
	text, err := os.ReadFile("../docs/schema.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("There are %d tables in %d sets. A program that only locks has %d of them",
		len(tablesOf(sqlstore.AllSets[1:]...)), len(sqlstore.AllSets), len(tablesOf()))
	if sqlstore.AllSets[0] != schema.Core || !strings.Contains(string(text), want) {
		t.Errorf("docs/schema.md does not say: %s", want)
	}
}
