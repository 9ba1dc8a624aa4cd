package main

import (
	"errors"
	"fmt"
	"strings"
)

// total is what the counters have, and what the workers have counted each for itself.
type total struct{ counters, counted int64 }

// check compares them key by key when all workers have gone: one too few here and one too many
// there must not pass.
func (l *load) check() (t total, err error) {
	var wrong []string
	for key, a := range l.accounts {
		has, want := a.value.Load(), l.counted[key]
		t.counters += has
		t.counted += want
		if has != want {
			wrong = append(wrong, fmt.Sprintf("%s has %d, but was counted up %d times", key, has, want))
		}
	}
	switch {
	case len(wrong) > 0:
		return t, fmt.Errorf("PROMISE BROKEN: two had the lock at once: %s", strings.Join(wrong, "; "))
	case len(l.fell) > 0:
		return t, fmt.Errorf("PROMISE BROKEN: tokens did not grow: %s", strings.Join(l.fell[:min(len(l.fell), 5)], "; "))
	case t.counted == 0:
		return t, errors.New("nothing was locked at all")
	}
	return t, nil
}
