package faultdb

import (
	"slices"
	"sync"
)

// Log is an injector that injects nothing and remembers every operation, so that a test can say how many an API call
// cost. The zero value is ready. Beside others it goes into [Any].
type Log struct {
	mu  sync.Mutex
	ops []Op
}

// Inject remembers the operation.
func (l *Log) Inject(op Op) Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = append(l.ops, op)
	return None
}

// Ops returns the operations since the last Reset, oldest first.
func (l *Log) Ops() []Op {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ops)
}

// Queries returns the SQL of every statement executed since the last Reset, oldest first.
func (l *Log) Queries() []string {
	var queries []string
	for _, op := range l.Ops() {
		if op.Executes() {
			queries = append(queries, op.Query)
		}
	}
	return queries
}

// Count returns how many operations since the last Reset match; a nil match counts all of them.
func (l *Log) Count(match func(Op) bool) int {
	n := 0
	for _, op := range l.Ops() {
		if match == nil || match(op) {
			n++
		}
	}
	return n
}

// Reset forgets everything.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = nil
}
