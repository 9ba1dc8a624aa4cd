package oncehttp

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Config says which requests are done once. nil and the zero value have the defaults.
type Config struct {
	// Optional passes a request without a key to the handler, which then has no transaction: Tx
	// returns nil. The default is to refuse it with 400.
	Optional bool
	// Tenant returns the owner of the key, so that one client cannot guess at another's: the
	// authenticated account, not the client's own claim. nil means that all share their keys. At
	// most 255 bytes.
	Tenant func(*http.Request) string
	// Keep decides by the status whether a response is kept and the handler's writes are committed.
	// Otherwise they are rolled back, the response is sent all the same, and the repeat runs the
	// handler again. nil means statuses below 500, but for 401, 407, 408, 425 and 429, which are
	// about the moment.
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

func (c *Config) withDefaults() (Config, error) {
	if c == nil {
		c = &Config{}
	}
	out := *c
	out.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	out.Finish = cmp.Or(c.Finish, 30*time.Second)
	if out.Keep == nil {
		out.Keep = lasting
	}
	out.Logger = cmp.Or(c.Logger, slog.Default())
	if out.MaxBody < 0 || out.Finish < 0 {
		return out, fmt.Errorf("%w: MaxBody is %d and Finish %s: neither can be negative", lease.ErrConfig, out.MaxBody, out.Finish)
	}
	return out, nil
}

func lasting(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < http.StatusInternalServerError
}
