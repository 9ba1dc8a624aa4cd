package optimistic

import (
	"context"
	"reflect"
	"sync"

	"github.com/rowlockdb/rowlock/dialect"
)

// located has the quoted name of a table for each pool that it was used with.
type located struct {
	mu    sync.Mutex
	names map[dialect.Pool]string
}

// mostPools bounds what located remembers: an application may make a pool's wrapper for each call.
const mostPools = 64

// isSession reports whether ext is a transaction or a connection: each leads where its own session
// leads, and database/sql sends no statement on it again by itself.
func isSession(ext Ext) bool {
	switch ext.(type) {
	case interface{ Rollback() error }, interface{ Raw(f func(any) error) error }:
		return true
	}
	return false
}

// poolOf returns ext if rowlock takes a connection from it by itself. A transaction and a
// connection may have a method Conn too.
func poolOf(ext Ext) (dialect.Pool, bool) {
	if isSession(ext) {
		return nil, false
	}
	pool, ok := ext.(dialect.Pool)
	return pool, ok
}

// on returns t for statements on ext. Through a pool, a name without a schema would lead wherever
// the session that is lent leads: an application may have sent SET search_path or USE on it, so
// that the statement would change the row of another tenant.
func (t *Table[T]) on(ctx context.Context, ext Ext) (*Table[T], error) {
	pool, ok := poolOf(ext)
	if !ok {
		return t, nil
	}
	quoted, err := t.located.name(pool, func() (string, error) { return t.d.OwnIn(ctx, pool, t.name) })
	if err != nil {
		return nil, t.explain("find", err)
	}
	at := *t
	at.quoted = quoted
	return &at, nil
}

// forget has the names found anew: a table may have been made, or moved, to another schema of the
// search_path since.
func (l *located) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = nil
}

// name returns the table's name on a pool, and asks for it once. A pool that cannot be compared is
// asked each time.
func (l *located) name(pool dialect.Pool, ask func() (string, error)) (string, error) {
	if !reflect.ValueOf(pool).Comparable() {
		return ask()
	}
	l.mu.Lock()
	name, known := l.names[pool]
	l.mu.Unlock()
	if known {
		return name, nil
	}
	name, err := ask()
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil || len(l.names) >= mostPools {
		l.names = make(map[dialect.Pool]string)
	}
	l.names[pool] = name
	return name, nil
}
