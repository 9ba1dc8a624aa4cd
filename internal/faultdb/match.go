package faultdb

import (
	"slices"
	"strings"
)

// OnFunc asks inj about the operations that match reports true for.
func OnFunc(match func(Op) bool, inj Injector) Injector {
	return Func(func(op Op) Fault {
		if !match(op) {
			return None
		}
		return inj.Inject(op)
	})
}

// OnMatch asks inj about every execution of a statement whose SQL contains text. Preparing the statement is not one,
// or Nth(1, LoseReply()) would hit the preparation and the statement would never run.
func OnMatch(text string, inj Injector) Injector {
	return OnFunc(func(op Op) bool { return op.Executes() && strings.Contains(op.Query, text) }, inj)
}

// OnCommitText asks inj about every execution of COMMIT as a statement. OnMatch would find the word in the isolation
// level of a BEGIN too.
func OnCommitText(inj Injector) Injector {
	return OnFunc(func(op Op) bool { return op.Executes() && op.Query == "COMMIT" }, inj)
}

// OnKind asks inj about the operations of these kinds.
func OnKind(inj Injector, kinds ...Kind) Injector {
	return OnFunc(func(op Op) bool { return slices.Contains(kinds, op.Kind) }, inj)
}

// CutBeforeCommit closes the connection in place of the first Commit: the server rolls the transaction back.
func CutBeforeCommit() Injector { return OnKind(Nth(1, FailBeforeSend()), Commit) }

// LoseCommitReply commits the first transaction that asks for it, and loses the server's word that it did.
func LoseCommitReply() Injector { return OnKind(Nth(1, LoseReply()), Commit) }
