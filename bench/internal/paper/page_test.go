package paper

import "testing"

func TestATableHasARowForEachAndKeepsItsCells(t *testing.T) {
	var p Page
	p.Table("what|how many", [][]string{{"a|b", "1"}, {"two\nlines", "2"}})
	want := "| what | how many |\n|---|---|\n| a\\|b | 1 |\n| two lines | 2 |\n\n"
	if got := p.String(); got != want {
		t.Errorf("the table is\n%s, not\n%s", got, want)
	}
}
