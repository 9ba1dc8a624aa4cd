package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/retry"
)

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if !retry.Sleep(ctx, 59*time.Second) {
			t.Error("a sleep that ctx outlasts reports that it did not")
		}
		if retry.Sleep(ctx, time.Hour) {
			t.Error("a sleep that ctx ends reports that it lasted")
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("%s, want a minute", took)
		}
	})
}

func TestPausesGrow(t *testing.T) {
	pauses := retry.Growing(10*time.Millisecond, 40*time.Millisecond, 0.5)
	for i, want := range []time.Duration{10, 20, 40, 40} {
		want *= time.Millisecond
		if got := pauses.NextBackOff(); got < want/2 || got > want*3/2 {
			t.Errorf("pause %d is %s, want %s ± 50 %%", i, got, want)
		}
	}
}
