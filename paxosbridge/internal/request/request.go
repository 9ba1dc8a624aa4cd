// Package request has what every cluster does with a request: it checks the epoch, and returns the
// error of a batch of one as the call's own.
package request

import (
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// CheckEpoch returns an error for a key that no store keeps, and for an epoch outside 1 to most.
func CheckEpoch(verb, key string, epoch, most int64) error {
	if err := lease.CheckStoredKey(key); err != nil {
		return err
	}
	if epoch < 1 || epoch > most {
		return fmt.Errorf(
			"%w: %s %q: epoch %d; use 1 to %d", lease.ErrConfig, verb, key, epoch, most,
		)
	}
	return nil
}

// Check returns an error for a request that no store grants. Epoch 0 names none.
func Check(q lease.AcquireRequest, most int64) error {
	err := q.Check()
	if err == nil && q.Epoch != 0 {
		err = CheckEpoch("acquire", q.Key, q.Epoch, most)
	}
	return err
}

// Acquired returns the answers with the error of a batch of one as the call's own, because callers
// of a single operation look there. A record of another epoch is an answer and no failure, if the
// outcome is known.
func Acquired(answers []lease.Acquired) ([]lease.Acquired, error) {
	return Alone(answers, func(a lease.Acquired) error {
		if errors.Is(a.Err, paxosbridge.ErrRecord) && !errors.Is(a.Err, lease.ErrUnknown) {
			return nil
		}
		return a.Err
	})
}

// Alone returns the answers with the error of a batch of one.
func Alone[A any](answers []A, errorOf func(A) error) ([]A, error) {
	if len(answers) == 1 {
		return answers, errorOf(answers[0])
	}
	return answers, nil
}
