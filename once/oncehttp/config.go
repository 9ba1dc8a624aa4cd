package oncehttp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
)

// Config says which requests are done once. Tenant must be set; the other fields have defaults.
type Config struct {
	// Tenant returns the account that a request belongs to: 1 to 255 bytes. Each account has keys
	// of its own, so that no account is answered with another's stored response. Return the account
	// that the server has authenticated, never what the client claims to be. A request for which
	// Tenant returns "" gets 403 and does nothing. The request is a copy, as Lock's is: both may parse
	// its form.
	//
	// [SharedKeys] is the Tenant of an API without accounts. New refuses nil.
	Tenant func(*http.Request) string
	// Lock takes the lock that a request needs, or returns nil if it needs none. It is fenced in the
	// request's transaction, and unlocked when that has ended: a handler that unlocks by itself does
	// so before the commit. An error is answered with 409 if it is lease.ErrHeld, or else with 503,
	// 400 or 500, by its kind.
	//
	//	Lock: func(ctx context.Context, r *http.Request) (oncehttp.Lock, error) {
	//		l, err := locks.Lock(ctx, "account/"+r.PathValue("account"))
	//		if err != nil {
	//			return nil, err
	//		}
	//		return l, nil
	//	},
	Lock func(ctx context.Context, r *http.Request) (Lock, error)
	// Optional passes a request without a key to the handler, which then has no transaction: Tx
	// returns nil. The default is to refuse it with 400.
	Optional bool
	// Keep decides by the status whether a response is kept and the handler's writes are committed.
	// Otherwise they are rolled back, the response is sent all the same, and the repeat runs the
	// handler again. nil means statuses below 500, with two exceptions: 401, 407, 408, 425 and 429,
	// which are about the moment; and any other 4xx of a handler that has not called Tx, because it
	// has changed nothing, and every such request would be stored. That of one that has called Tx and
	// has only read is kept: see the package comment.
	Keep func(status int) bool
	// MaxBody is the largest request body in bytes, which is read before the handler runs; 0 means
	// 1 MiB.
	MaxBody int64
	// Finish is how long the context of a handler lasts, whether its client waits or has gone; 0
	// means 30 s. What the handler has done when it returns is committed, and a repeat gets the
	// answer.
	Finish time.Duration
	// Logger gets the errors behind a 500 and a 503; nil means slog.Default().
	Logger *slog.Logger
}

// Lock is a *rowlock.Lock or *rowlock.Locks.
type Lock interface {
	once.Fencer
	Unlock(ctx context.Context) error
}

func (c *Config) withDefaults() (Config, error) {
	out := *cmp.Or(c, new(Config))
	if out.Tenant == nil {
		return Config{}, errNoTenant
	}
	out.MaxBody = cmp.Or(out.MaxBody, 1<<20)
	out.Finish = cmp.Or(out.Finish, 30*time.Second)
	out.Logger = cmp.Or(out.Logger, slog.Default())
	if out.MaxBody < 0 || out.Finish < 0 {
		return out, fmt.Errorf("%w: MaxBody is %d and Finish %s: neither can be negative",
			lease.ErrConfig, out.MaxBody, out.Finish)
	}
	return out, nil
}

// errNoTenant names both cures, because only the application knows whether it has accounts.
var errNoTenant = fmt.Errorf("%w: oncehttp: Config.Tenant is nil: return the authenticated account, so that no "+
	"account gets the stored response of another; an API without accounts says Tenant: oncehttp.SharedKeys",
	lease.ErrConfig)

func lasting(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < http.StatusInternalServerError
}
