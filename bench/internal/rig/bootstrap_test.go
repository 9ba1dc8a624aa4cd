package rig

import (
	"math/rand/v2"
	"testing"
)

// A slow round slows both, so the interval of their ratio is far narrower than those of the rates.
func TestTheIntervalOfARatioLeavesOutWhatSlowsWholeRounds(t *testing.T) {
	var a, b []float64
	for round := range 9 {
		load := 1 + float64(round%3)
		a, b = append(a, 3000/load), append(b, 1000/load)
	}
	if got := RatioOfMedians(a, b); got != (Interval{3, 3, 3}) {
		t.Errorf("the ratio is %v, not 3 [3, 3]", got)
	}
	if alone := MedianOf(a); alone.High/alone.Low < 1.5 {
		t.Errorf("the median alone is as sure: %v", alone)
	}
}

func TestTheIntervalHoldsTheTrueRatioNearlyAlways(t *testing.T) {
	const runs, rounds, ratio = 400, 9, 2.0
	random := rand.New(rand.NewPCG(7, 7))
	held := 0
	for range runs {
		var a, b []float64
		for range rounds {
			a = append(a, ratio*(100+10*random.NormFloat64()))
			b = append(b, 100+10*random.NormFloat64())
		}
		if got := RatioOfMedians(a, b); got.Low <= ratio && ratio <= got.High {
			held++
		}
	}
	if share := float64(held) / runs; share < 0.9 {
		t.Errorf("the true ratio lies in %.3f of the intervals", share)
	}
}

func TestARunHasOneIntervalAndOneRoundIsItsOwn(t *testing.T) {
	a, b := []float64{5, 9, 7, 6, 8, 4, 7}, []float64{2, 3, 2, 4, 3, 2, 2}
	if one, again := RatioOfMedians(a, b), RatioOfMedians(a, b); one != again {
		t.Errorf("%v, and then %v", one, again)
	}
	if got := RatioOfMedians(a[:1], b[:1]); got != (Interval{2.5, 2.5, 2.5}) {
		t.Errorf("one round: %v", got)
	}
	if a[0] != 5 || a[6] != 7 {
		t.Errorf("the rounds were sorted: %v", a)
	}
}
