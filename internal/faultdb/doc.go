// Package faultdb breaks the connection between database/sql and a real driver at a chosen operation, for tests.
//
// A mock of a server answers what its author believes the server answers. Here the server is the real one and the
// statements really reach it; only the connection is unreliable, in exactly the place a test names:
//
//	inj := faultdb.OnMatch("UPDATE rowlock", faultdb.Nth(1, faultdb.LoseReply()))
//	db, err := faultdb.Open("pgx", dsn, inj)
//
// An [Injector] is asked before each [Op] and answers with a [Fault]: the statement is never sent, or it is executed
// and its reply lost, or it is held back, or it is executed long after the caller gave up. A fault that cuts closes
// the real connection; from then on the wrapped one answers driver.ErrBadConn, reports that it is no longer valid, and
// sends nothing.
//
// What the wrapper is not asked to break it passes on unchanged. Every optional interface of the real driver is there,
// and the two by whose mere presence database/sql changes its behaviour (SessionResetter and Validator) are not
// invented for a driver that lacks them.
package faultdb
