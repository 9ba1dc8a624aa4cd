package house

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// internal/house/lockpath tests the budgets that need a server.
func TestTheSourceIsWithinItsBudgets(t *testing.T) {
	t.Chdir(root)
	budgets, err := figures.ReadBudgets(figures.File)
	if err != nil {
		t.Fatal(err)
	}
	measured, err := figures.OfSource(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := budgets.Check(measured); err != nil {
		t.Errorf("%v\nmake it smaller: a budget is raised only by a decision (docs/decisions)", err)
	}
}
