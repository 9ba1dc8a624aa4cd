package faultdb

import (
	"cmp"
	"fmt"
	"io"
	"time"
)

// ErrCut is what a fault reports unless told otherwise. It wraps io.ErrUnexpectedEOF, as drivers report a connection
// that ended in the middle of a reply, and it says nothing about whether the server did the work: nothing a real
// client receives would.
var ErrCut = fmt.Errorf("faultdb: connection cut: %w", io.ErrUnexpectedEOF)

// Fault is what happens to one operation. The parts take place in this order: hold back, cut before sending, run,
// hold the reply back, cut before replying.
type Fault struct {
	before waiter // holds the operation back before it is sent
	cut    cut
	after  waiter // holds the reply back
	err    error  // reported by a cut in place of ErrCut
	late   *Gate  // releases an operation sent late
}

// cut is the point at which the connection is closed.
type cut int

const (
	uncut cut = iota
	cutBeforeSend
	cutBeforeReply
	cutSentLate
)

// None leaves the operation alone.
var None = Fault{}

// FailBeforeSend closes the connection in place of sending: the server never sees the operation. On Commit the
// server rolls back; on Connect nothing is dialled.
func FailBeforeSend() Fault { return Fault{cut: cutBeforeSend} }

// LoseReply runs the operation to its end on the server and then closes the connection. The rows of a query are read
// to the last one first, so that the server has executed all of it. What the server replied, be it an error, is lost.
func LoseReply() Fault { return Fault{cut: cutBeforeReply} }

// SendLate closes the connection for the caller at once, while the operation is still on its way: the server executes
// it when g is released, on the old connection. That is a packet on a slow route, or a statement that MariaDB goes on
// executing after the client has hung up. [Gate.Wait] returns when it has been executed.
//
// The operation runs without the caller's deadline. A Connect sent late is dialled and closed.
func SendLate(g *Gate) Fault { return Fault{cut: cutSentLate, late: g} }

// Delay holds the operation back for d and then sends it. If the caller's context ends first, nothing is sent and the
// connection is closed: the caller cannot tell that from a reply that did not come, and drivers close it too.
func Delay(d time.Duration) Fault { return Fault{before: pause(d)} }

// DelayAfter runs the operation and holds its reply back for d. If the caller's context ends first, the reply is lost
// and the connection closed.
func DelayAfter(d time.Duration) Fault { return Fault{after: pause(d)} }

// Block is [Delay] until g is released.
func Block(g *Gate) Fault { return Fault{before: g} }

// BlockAfter is [DelayAfter] until g is released. An operation that has arrived at g has been executed.
func BlockAfter(g *Gate) Fault { return Fault{after: g} }

// Reporting returns the fault with err, unwrapped, as the error the caller gets from a cut. With driver.ErrBadConn it
// tempts database/sql to run the statement again on another connection, which (*sql.DB).Exec does even where the
// server has executed it already.
func (f Fault) Reporting(err error) Fault {
	f.err = err
	return f
}

// And returns a fault with the parts of both; where both have a part, g's is taken.
// BlockAfter(gate).And(LoseReply()) executes the operation, waits for the gate, and loses the reply.
func (f Fault) And(g Fault) Fault {
	return Fault{
		before: cmp.Or(g.before, f.before),
		cut:    cmp.Or(g.cut, f.cut),
		after:  cmp.Or(g.after, f.after),
		err:    cmp.Or(g.err, f.err),
		late:   cmp.Or(g.late, f.late),
	}
}

// IsNone reports whether the fault leaves the operation alone.
func (f Fault) IsNone() bool { return f.before == nil && f.cut == uncut && f.after == nil }

// keepsReply reports whether the server must have finished before the caller hears anything.
func (f Fault) keepsReply() bool { return f.after != nil || f.cut == cutBeforeReply }

// report returns the error of a cut.
func (f Fault) report() error { return cmp.Or(f.err, ErrCut) }
