package figures

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t *testing.T, text string) *Budgets {
	t.Helper()
	file := filepath.Join(t.TempDir(), "budgets.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := ReadBudgets(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAFigureAboveItsBudgetIsAnError(t *testing.T) {
	b := read(t, "# why\nfits 10 5\nbroken 10 5\n")
	err := b.Check([]Figure{
		{Name: "fits", Value: 10}, {Name: "broken", Value: 11, Why: []string{"the largest"}},
	})
	if err == nil || strings.Contains(err.Error(), "fits") {
		t.Fatalf("got %v, want an error of broken alone", err)
	}
	for _, want := range []string{"broken is 11", "budget is 10", "the largest"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not say %q", err, want)
		}
	}
	if err := b.Check([]Figure{{Name: "unknown"}}); err == nil {
		t.Error("a figure without a budget passes")
	}
}

func TestBudgetsFallToTheirGoalsAndNeverRise(t *testing.T) {
	b := read(t, "# why\nfallen 10 5\nreached 10 5\nrisen 10 5\n")
	b.Lower([]Figure{{Name: "fallen", Value: 7}, {Name: "reached", Value: 3}, {Name: "risen", Value: 11}})
	if err := b.Write(); err != nil {
		t.Fatal(err)
	}
	again, err := ReadBudgets(b.file)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"fallen": 7, "reached": 5, "risen": 10} {
		if got, _ := again.Of(name); got.Most != want || got.Goal != 5 {
			t.Errorf("%s is %+v, want a budget of %d and a goal of 5", name, got, want)
		}
	}
	if again.lines[0] != "# why" {
		t.Errorf("the comment is now %q", again.lines[0])
	}
}

func TestALineThatIsNoBudgetIsAnError(t *testing.T) {
	for _, text := range []string{"name\n", "name 10\n", "name ten 5\n", "name 10 5\nname 10 5\n"} {
		file := filepath.Join(t.TempDir(), "budgets.txt")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadBudgets(file); err == nil {
			t.Errorf("%q is read without an error", text)
		}
	}
}
