package paper

import "testing"

func TestNumbersShowThreeDigitsThatCount(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 0.954: "0.95", 4: "4", 9.999: "10.00", 12.34: "12.3", 123.4: "123", 999.6: "1,000", 1_234_567: "1,234,567", -1234.4: "-1,234",
	} {
		if got := Number(f); got != want {
			t.Errorf("Number(%v) is %q, not %q", f, got, want)
		}
	}
}
