// Package retry has the pauses between tries.
package retry

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Sleep reports whether ctx lasted for d.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Growing returns pauses of which each is twice the one before, from first to longest, and longer
// or shorter by a random part of up to jitter.
func Growing(first, longest time.Duration, jitter float64) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = first, longest, 2, jitter
	b.Reset()
	return b
}

// Pauses returns those between tries of one statement.
func Pauses() *backoff.ExponentialBackOff {
	return Growing(2*time.Millisecond, 200*time.Millisecond, 0.5)
}
