package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Features says what a database can do or needs that another does not. False or nil: it does not.
type Features struct {
	// OneWriter says that one connection writes at a time, so that a second pinned connection is
	// useless.
	OneWriter bool
	// OneHistory says that no server of these forgets what another has granted, so that there is one
	// era, from 0 on.
	OneHistory bool
	Statements
	OpenChecks
	OwnTx
	Instead
	Sessions
	Listener Listener
	// Apart says that to send a message may wait for the session that hears it. The store sends on
	// a session of its own, so that no statement of a lock waits for a message.
	Apart   bool
	Evictor Evictor
}

// Statements is how its statements are written, and what they answer and lock.
type Statements struct {
	// Dollars says that parameters are written $1, $2 and so on, instead of ?.
	Dollars bool
	// AsStored encodes text as a parameter: as bytes where it is compared and stored as bytes.
	AsStored func(text string) any
	// Clamps says that a column may store another value than was written to it: the largest integer
	// for one that is too large, or a text or a float for an integer.
	Clamps bool
	// ReadsLock says that every read of a SERIALIZABLE transaction locks what it reads, and waits.
	ReadsLock bool
	// CountsOnly says that a statement that writes returns a count, and no rows.
	CountsOnly bool
	// Expects says that Apply reads the row of an acquire first, in a round trip of its own, if it
	// is not told which token to expect.
	Expects bool
	// Spell writes parameters into a statement, where the driver would prepare it for them, in a
	// round trip of its own each time. nil: it does not.
	Spell func(query string, args []any) string
	// ShareLock is the clause with which a SELECT returns a row as it is committed now.
	ShareLock string
}

// OpenChecks is what Open refuses, or warns of.
type OpenChecks struct {
	// RowSecurity says of which of tables the server may hide rows from this user, with the cure; ""
	// if of none.
	RowSecurity func(ctx context.Context, conn *sql.Conn, tables []string) (string, error)
	// CheckNames refuses names that are no names of tables in this database.
	CheckNames func(Names) error
	// ProbePool refuses settings of a pool's connections under which the application's own
	// transactions fail. The connection is one that the application could have got.
	ProbePool func(ctx context.Context, conn *sql.Conn) error
	// Synchronous returns an error that wraps lease.ErrNotSynchronous if a commit of the session
	// would be acknowledged before another server has it, and lease.ErrPrivilege if the user may not
	// see that. Warnings are what can make it so later. If it is nil, a commit waits for no other
	// server, or a session says nothing about the next.
	Synchronous func(ctx context.Context, conn *sql.Conn) (warnings []string, err error)
}

// OwnTx is how the application's own transactions are begun and ended.
type OwnTx struct {
	// Abandon rolls back what an application has left open on a connection that its pool lends.
	Abandon func(ctx context.Context, conn *sql.Conn) error
	// UnwatchedTx says that the driver waits for the answer to the COMMIT or ROLLBACK of a
	// *sql.Tx whatever context ends. It watches the context of a statement.
	UnwatchedTx bool
	// Forgets says that an error of a statement can end the transaction, and that what is sent
	// afterwards is committed statement by statement.
	Forgets bool
	// Over is a sql.ErrTxDone if the server has said last that no transaction is open. It may be nil.
	Over func(driverConn any) error
	// Pin makes the settings that change what statements mean, for the transaction that has begun on
	// conn. PinsSession says that the session keeps them, and must be discarded.
	Pin         func(ctx context.Context, conn *sql.Conn) error
	PinsSession bool
	// Plain is the statement without which answers to a session of the pool's may be cut or garbled.
	Plain string
	// EraInTx is EraText for a transaction of the application's own, whose COMMIT it makes as durable
	// as that of a grant. nil: such a transaction must not grant, because nothing tells in it whether
	// the server is the one that has told of the era.
	EraInTx func(h History) string
	// PinShared makes the settings of a transaction that has just begun with want, in a session that
	// other clients share: what want leaves open is what the database, the role and the server have,
	// and not what another client has left. What can no longer be set in this transaction it notes
	// in want and begins; it then returns false, and the next transaction is begun so. nil: a
	// session is the application's own, and so are its settings.
	PinShared func(ctx context.Context, tx lease.Runner, want *sql.TxOptions, begins *SharedTx) (bool, error)
}

// Instead is what several statements do instead of one section.
type Instead struct {
	// Fence does what the fence section does elsewhere. It returns sql.ErrNoRows if the row
	// does not name this owner and token. A TTL of 0 leaves the expiry as it is.
	Fence func(ctx context.Context, tx lease.Runner, r lease.RenewRequest) error
	// Reap removes those of keys, all of one bucket, that have been dead for the retention,
	// after it has raised the floor. It begins and ends its own transactions.
	Reap func(ctx context.Context, s *conn.Session, bucket int, keys []string, retention time.Duration) (
		removed int64, err error)
	// PeekOnce reports whether another transaction has the key's row locked, where a claim
	// cannot be told not to wait. Callers run it outside of any transaction, because its locks
	// on an absent row would block other keys.
	PeekOnce func(ctx context.Context, on lease.Runner, c OnceClaim) (inFlight bool, err error)
	// LargestValue is how many bytes a statement on this connection may have, as the server says.
	// One that sends more is cut off, which looks like any lost connection. nil: 1 GB or more.
	LargestValue func(ctx context.Context, on lease.Runner) (int64, error)
}

// Sessions is what its sessions can do.
type Sessions struct {
	// Silence prepares s for transactions that stay open. The server ends the session, and so
	// its transaction, after the client has been silent for limit, rounded up to the server's
	// unit. MySQL counts silence outside of a transaction too. If it is nil, an open
	// transaction is no lock on a single row.
	Silence func(ctx context.Context, s *conn.Session, limit time.Duration) error
	// Version returns another number after each commit of another connection than the
	// session's. Numbers of different sessions are unrelated.
	Version func(ctx context.Context, s *conn.Session) (int64, error)
	// Piper may be nil.
	Piper Piper
}

// HintConnections is how many connections hints take beside the pinned connections.
func (f Features) HintConnections() int {
	if f.Apart {
		return 3 // one sends, one hears, and one may be what the others wait for
	}
	return 1
}

// Listener is a server that delivers messages.
type Listener interface {
	// Listen hears what is announced on channel over a connection of its own: to the DSN it was
	// told of, or else taken from pool, which is nil if none can be spared. It calls heard with
	// "" as soon as it listens. It returns when ctx ends, or when the connection is lost, which
	// it notices within 10 s even if the network reports nothing. It does not reconnect.
	//
	// An error that is lease.ErrUnsupported or lease.ErrConfig says that another try is in
	// vain. It also hears what Wake sends to process, unless that is zero; chosen is then
	// process, and otherwise zero.
	Listen(ctx context.Context, pool adapter.Pool, channel string, process lease.Owner,
		heard func(key string, chosen lease.Owner)) error
	// Announce sends a message for each key, in one statement that commits at once.
	Announce(ctx context.Context, s *conn.Session, channel string, keys []string) error
	// Wake is Announce for one process: see lease.Waker.
	Wake(ctx context.Context, s *conn.Session, channel string, process lease.Owner, keys []string) error
}

// Evictor is a server that shows which session has the row of an expired key locked, and can end
// it.
type Evictor interface {
	// EndBlockers returns the sessions whose transactions make waiter wait for the row, if that is
	// still expired. It ends those of the same user whose transactions are at least
	// as old as least. It ends no session for anything but that row.
	EndBlockers(
		ctx context.Context, s *conn.Session, row Expired, waiter int64, least time.Duration,
	) ([]Blocker, error)
	// MayEvict returns the statement that grants this user what EndBlockers needs, or "" if it
	// has that already.
	MayEvict(ctx context.Context, conn *sql.Conn) (grant string, err error)
}
