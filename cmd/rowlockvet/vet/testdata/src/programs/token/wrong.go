package token

import (
	"errors"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

type row struct {
	token int64
	typed lease.Token
}

var errOld = errors.New("old")

func wrong(l *rowlock.Lock, r row) error {
	if r.token > int64(l.Token()) { // want `a token is compared in Go, and a newer holder can write .*: let tokenfence compare it`
		return errOld
	}
	if l.Token() < r.typed { // want `a token is compared in Go`
		return errOld
	}
	mine := l.Token()
	if lease.Token(r.token) != mine { // want `a token is compared in Go`
		return errOld
	}
	return nil
}

func wrongDeclared(l *rowlock.Lock, r row) bool {
	var mine = int64(l.Token())
	return r.token > mine // want `a token is compared in Go`
}
