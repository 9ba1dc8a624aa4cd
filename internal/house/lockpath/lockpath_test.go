package lockpath_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/internal/house/figures"
	"github.com/rowlockdb/rowlock/internal/house/lockpath"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

const root = "../../.."

func TestThePathOfALockIsWithinItsBudgets(t *testing.T) {
	postgres := testdb.Kinds[slices.IndexFunc(testdb.Kinds, func(k testdb.Kind) bool {
		return k.Name == "postgres"
	})]
	dsn := postgres.DSN(t)
	budgets, err := figures.ReadBudgets(filepath.Join(root, figures.File))
	if err != nil {
		t.Fatal(err)
	}
	// Of the source, because go test looks only at the files that the test itself has read: without
	// them it would repeat its last result.
	all, err := figures.OfSource(root)
	if err != nil {
		t.Fatal(err)
	}
	measured, err := lockpath.Within(budgets, root, dsn)
	if err != nil {
		t.Fatal(err)
	}
	if err := budgets.Check(measured); err != nil {
		t.Errorf("%v\nmake it smaller: a budget is raised only by a decision (docs/decisions)", err)
	}
	for _, name := range budgets.Names() {
		named := func(f figures.Figure) bool { return f.Name == name }
		if !slices.ContainsFunc(all, named) && !slices.ContainsFunc(measured, named) {
			t.Errorf("%s has a budget, and nothing measures it", name)
		}
	}
}
