package main

import "testing"

func TestASpreadOfTheSameIsOneNumber(t *testing.T) {
	for want, values := range map[string][]float64{"": nil, "2": {2}, "3": {3, 3}, "2 (1–4)": {4, 1, 2}, "2.50 (1–4)": {4, 1, 2, 3}} {
		if got := spread(values); got != want {
			t.Errorf("spread(%v) is %q, not %q", values, got, want)
		}
	}
}
