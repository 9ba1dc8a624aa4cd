package testdb_test

import (
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestADrawnRunLeavesOutMariaDBOrMySQLAndAWholeOneNothing(t *testing.T) {
	t.Setenv("ROWLOCK_TEST_DRAW", "1")
	t.Setenv("ROWLOCK_TEST_WHOLE", "")
	leftOut := map[string]int{}
	for range 64 {
		kinds := testdb.Drawn(t, testdb.Kinds)
		for _, k := range testdb.Kinds {
			if !slices.ContainsFunc(kinds, func(of testdb.Kind) bool { return of.Name == k.Name }) {
				leftOut[k.Name]++
			}
		}
	}
	if leftOut["mariadb"] == 0 || leftOut["mysql"] == 0 || leftOut["mariadb"]+leftOut["mysql"] != 64 || len(leftOut) != 2 {
		t.Errorf("of 64 draws left out: %v", leftOut)
	}
	if kinds := testdb.Drawn(t, testdb.Kinds[:3]); len(kinds) != 3 {
		t.Errorf("where there is no choice, %d kinds of 3 are left", len(kinds))
	}
	t.Setenv("ROWLOCK_TEST_WHOLE", "1")
	if kinds := testdb.Drawn(t, testdb.Kinds); len(kinds) != len(testdb.Kinds) {
		t.Errorf("a whole run has %d kinds of %d", len(kinds), len(testdb.Kinds))
	}
}
