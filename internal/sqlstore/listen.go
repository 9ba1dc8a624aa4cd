package sqlstore

import (
	"context"

	"github.com/rowlockdb/rowlock/lease"
)

// A dialect may have one of the two abilities below, by which a store hears that keys have come free. A client can do without.

// Listener is a Dialect of a server that delivers messages.
type Listener interface {
	// Listen hears what is announced on channel over a connection of its own: to the DSN it was told of, or else taken from
	// pool, which is nil if none can be spared. It calls heard with "" as soon as it listens and returns when ctx ends, or when
	// the connection is lost, which it finds out within 10 s even if the network says nothing. It does not begin anew.
	//
	// An error that is lease.ErrUnsupported or lease.ErrConfig says that another try is in vain.
	// It hears too what Wake sends to process, unless that is zero; chosen is then process, and otherwise zero.
	Listen(ctx context.Context, pool Pool, channel string, process lease.Owner, heard func(key string, chosen lease.Owner)) error
	// Announce sends a message for each key, in one statement that commits at once.
	Announce(ctx context.Context, s *Session, channel string, keys []string) error
	// Wake is Announce for one process each: see lease.Waker. Its section "await-hearing" notes a process that it can choose.
	Wake(ctx context.Context, s *Session, channel string, process lease.Owner, keys []string) error
}

// Watcher is a Dialect of a database that can be asked, for next to nothing, whether it has changed.
type Watcher interface {
	// Version is another number whenever another connection than the session's has committed. Numbers of different sessions
	// have nothing to do with each other.
	Version(ctx context.Context, s *Session) (int64, error)
}
