package paper

import (
	"slices"
	"testing"

	"gonum.org/v1/plot"
)

func valuesOf(ticks plot.ConstantTicks) (values []float64) {
	for _, t := range ticks {
		values = append(values, t.Value)
	}
	return values
}

func TestALogarithmicAxisBeginsAndEndsAtATick(t *testing.T) {
	for _, c := range []struct {
		least, most float64
		want        []float64
	}{
		{1200, 27_000, []float64{1000, 2000, 5000, 10_000, 20_000, 50_000}},
		{3000, 4000, []float64{2000, 5000}},
		{100, 100, []float64{100, 200}},
		{0.3, 1.5, []float64{0.2, 0.5, 1, 2}},
	} {
		got := valuesOf(decades(c.least, c.most))
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return a > b*0.999 && a < b*1.001 }) {
			t.Errorf("the ticks from %v to %v are %v, not %v", c.least, c.most, got, c.want)
		}
	}
}

func TestALinearAxisHasAFewRoundTicks(t *testing.T) {
	for most := 0.7; most < 1e6; most *= 1.7 {
		ticks := evenly(most)
		if n := len(ticks); n < 4 || n > 12 || ticks[0].Value != 0 || ticks[n-1].Value < most {
			t.Errorf("the ticks up to %v are %v", most, valuesOf(ticks))
		}
		for i := range len(ticks) - 1 {
			if ticks[i].Label == ticks[i+1].Label {
				t.Errorf("two ticks up to %v are labeled %s", most, ticks[i].Label)
			}
		}
	}
}
