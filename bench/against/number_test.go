package main

import "testing"

func TestNumbersShowThreeDigitsThatCount(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 0.954: "0.95", 4: "4", 9.999: "10.00", 12.34: "12.3", 123.4: "123", 999.6: "1,000", 1_234_567: "1,234,567", -1234.4: "-1,234",
	} {
		if got := number(f); got != want {
			t.Errorf("number(%v) is %q, not %q", f, got, want)
		}
	}
}

func TestASpreadOfTheSameIsOneNumber(t *testing.T) {
	for want, values := range map[string][]float64{"": nil, "2": {2}, "3": {3, 3}, "2 (1–4)": {4, 1, 2}, "2.50 (1–4)": {4, 1, 2, 3}} {
		if got := spread(values); got != want {
			t.Errorf("spread(%v) is %q, not %q", values, got, want)
		}
	}
}
