package faultdb

// Kind says what an operation asks of the driver.
type Kind int

// The operations an injector is asked about. Closing a statement, rows or a connection is none of them: it has no
// outcome anybody could be in doubt about.
const (
	Connect Kind = iota + 1
	Begin
	Prepare
	Exec
	Query
	Commit
	Rollback
	Ping
)

var kindNames = [...]string{"unknown", "connect", "begin", "prepare", "exec", "query", "commit", "rollback", "ping"}

// String returns the kind in lower case.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		k = 0
	}
	return kindNames[k]
}

// Op is one call to the driver, about to be made. A driver may turn it into several messages, or several round trips
// (pgx prepares a statement it has not seen before), which is its own affair.
type Op struct {
	Kind Kind

	// Query is the SQL text of a Prepare, Exec or Query, the executions of a prepared statement included.
	Query string

	// Prepared is set on the executions of an sql.Stmt, and of the statement database/sql makes for a driver that cannot
	// execute without one.
	Prepared bool

	// N numbers the operations of one wrapped connector in the order they were begun, from 1.
	N int64

	// Conn numbers the connections of one wrapped connector in the order they were dialled, from 1.
	Conn int64
}

// Executes reports whether the operation runs a statement of the caller's, rather than preparing one or opening and
// closing transactions.
func (o Op) Executes() bool { return o.Kind == Exec || o.Kind == Query }
