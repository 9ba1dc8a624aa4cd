package token

import (
	"testing"

	"github.com/rowlockdb/rowlock"
)

func TestTokensIncrease(t *testing.T) {
	var l *rowlock.Lock
	var before int64
	if int64(l.Token()) <= before {
		t.Error("a token fell")
	}
}
