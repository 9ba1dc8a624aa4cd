package faultdb

import (
	"context"
	"database/sql/driver"
)

// database/sql keeps a connection after a cancelled transaction if its driver both resets sessions and validates
// connections, and closes it otherwise. A wrapper that had both methods for every driver would change that, so each
// real connection gets the wrapper that has what it has. One with neither gets IsValid, which changes nothing: without
// it, only driver.ErrBadConn from the next use would tell the pool about a cut. pgx has ResetSession only, and hears
// of a cut there.

// asDriver returns the connection with the pool methods of the real one.
func (c *conn) asDriver() driver.Conn {
	_, resets := c.inner.(driver.SessionResetter)
	_, validates := c.inner.(driver.Validator)
	switch {
	case resets && validates:
		return resettingValidator{c}
	case resets:
		return resetter{c}
	default:
		return validator{c}
	}
}

type (
	resetter           struct{ *conn }
	validator          struct{ *conn }
	resettingValidator struct{ *conn }
)

var (
	_ driver.SessionResetter = resetter{}
	_ driver.Validator       = validator{}
	_ driver.SessionResetter = resettingValidator{}
	_ driver.Validator       = resettingValidator{}
)

// ResetSession passes on, unless the connection is cut.
func (c resetter) ResetSession(ctx context.Context) error { return c.resetSession(ctx) }

// ResetSession passes on, unless the connection is cut.
func (c resettingValidator) ResetSession(ctx context.Context) error { return c.resetSession(ctx) }

// IsValid is false once the connection is cut, and otherwise the driver's word.
func (c validator) IsValid() bool { return c.isValid() }

// IsValid is false once the connection is cut, and otherwise the driver's word.
func (c resettingValidator) IsValid() bool { return c.isValid() }

func (c *conn) resetSession(ctx context.Context) error {
	if c.dead {
		return driver.ErrBadConn
	}
	return c.inner.(driver.SessionResetter).ResetSession(ctx)
}

func (c *conn) isValid() bool {
	if c.dead {
		return false
	}
	v, ok := c.inner.(driver.Validator)
	return !ok || v.IsValid()
}
