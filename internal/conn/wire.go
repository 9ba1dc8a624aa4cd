package conn

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// Wire runs prepared statements in a driver's own protocol, below the interface that drivers have
// for database/sql, whose rows and parameters take a third of the time of a short statement in the
// client. Only the goroutine that has the session uses it.
type Wire interface {
	// Prepare has the server prepare a statement for Put.
	Prepare(ctx context.Context, query string) (Plan, error)
	// Put encodes an execution of plan, which Send sends. Nothing reads args after it.
	Put(plan Plan, args []Arg) error
	// Forget drops what was put since the last Send.
	Forget()
	// Send sends what was put since the last Send, with one commit for all of it. It returns nil
	// when the server has acknowledged that commit, and not before: a row that was read earlier
	// says nothing. After an error of the server, nothing of it was applied.
	Send(ctx context.Context) error
	// Read calls scan for each row that the nth execution returned, and returns how many rows it
	// returned or changed. It may be called until the next Put.
	Read(n int, scan func(Columns) error) (rows int64, err error)
}

// Plan is a statement that a Wire has prepared.
type Plan any

// Arg is a parameter. As an any, each would be an allocation.
type Arg struct {
	Kind  ArgKind
	Text  string
	Owner lease.Owner
	Int   int64
	Value any
}

// ArgKind says which field of an Arg has the parameter.
type ArgKind uint8

const (
	ArgValue ArgKind = iota // Value: what a driver takes
	ArgKey                  // Text, as bytes
	ArgText                 // Text
	ArgOwner                // Owner, as bytes
	ArgInt                  // Int
)

// value is the parameter as a driver of database/sql takes it.
func (a *Arg) value() any {
	switch a.Kind {
	case ArgKey:
		return []byte(a.Text)
	case ArgText:
		return a.Text
	case ArgOwner:
		return Bytes(a.Owner)
	case ArgInt:
		return a.Int
	}
	return a.Value
}

// runWired runs the session's job on its wire.
func (s *Session) runWired(c any) error {
	j := &s.job
	st, err := s.prepared(j.ctx, c, j.query)
	if err == nil {
		err = s.Wire.Put(st.plan, j.args)
	}
	if err != nil {
		s.Wire.Forget()
		return NotSent{err}
	}
	if err := s.Wire.Send(j.ctx); err != nil {
		return err
	}
	rows, err := s.Wire.Read(0, j.scan)
	if j.scan == nil {
		j.result = driver.RowsAffected(rows)
	}
	return err
}

// Pipe sends n statements together, as one transaction of the server, and calls scan with each row
// of the ith. It returns nil only if their commit was acknowledged, and calls scan for nothing
// before that. After an error of one of them, none was applied. The outcome after an error of scan
// is unknown, because the commit came before it. It must not be called within InTx. The session
// must have a Wire.
//
// Statements whose text sets how durable the commit is stand only with others of their kind, none
// of which grants, because the setting is the whole transaction's. Pipe sends nothing of a mixture.
func (s *Session) Pipe(ctx context.Context, n int, statement func(i int) (query string, args []Arg),
	scan func(i int, row Columns) error,
) error {
	if s.Sent != nil {
		s.Sent.Add(int64(n))
	}
	err := s.conn.Raw(func(c any) error { return s.pipe(ctx, c, n, statement, scan) })
	if err != nil {
		return err
	}
	return s.acknowledged(ctx)
}

func (s *Session) pipe(ctx context.Context, c any, n int,
	statement func(i int) (string, []Arg), scan func(int, Columns) error,
) error {
	if err := s.put(ctx, c, n, statement); err != nil {
		s.Wire.Forget()
		return NotSent{err}
	}
	if err := s.Wire.Send(ctx); err != nil {
		return err
	}
	for i := range n {
		_, err := s.Wire.Read(i, func(row Columns) error { return scan(i, row) })
		if err != nil {
			return Unsettled{Err: err, Committing: true} // it was applied
		}
	}
	return nil
}

// put puts n statements for one Send. It asks whether the session may grant after all are prepared:
// each of them may have taken a round trip.
func (s *Session) put(ctx context.Context, c any, n int, statement func(i int) (string, []Arg)) error {
	grants, relaxing := false, 0
	for i := range n {
		query, args := statement(i)
		st, err := s.prepared(ctx, c, query)
		if err == nil {
			err = s.Wire.Put(st.plan, args)
		}
		if err != nil {
			return err
		}
		grants = grants || st.grants
		if st.relaxes {
			relaxing++
		}
	}
	if relaxing > 0 && (relaxing < n || grants) {
		return errMixed
	}
	return s.held(grants)
}

var errMixed = errors.New("a release whose commit need not be durable must not share it")

// relaxes reports whether a statement may set that its transaction's commit waits for no disk and
// no standby. The text tells it, so that a new statement is known without being listed. The word
// alone may also be in the name of a table.
func relaxes(query string) bool { return strings.Contains(query, "set_config('synchronous_commit'") }
