package dropped

import (
	"context"
	"testing"

	"github.com/rowlockdb/rowlock"
)

func TestASecondCallerIsRefused(t *testing.T) {
	var locks *rowlock.Client
	_, err := locks.TryLock(context.Background(), "k")
	if err == nil {
		t.Error("two have it")
	}
	go func() { _, _ = locks.Lock(context.Background(), "k") }()
	locks.Lock(context.Background(), "k") // want `the result of Lock is dropped`
}
