//go:build linux

package main

const (
	sectionGo = "dotx.go"
	commitGo  = "internal/table/dotx.go"
	inTxGo    = "internal/queue/intx.go"
	localGo   = "internal/queue/local.go"
	handGo    = "internal/queue/handover.go"
	ticketsGo = "internal/queue/tickets.go"
	passesGo  = "internal/adapter/intx.go"
	eraGo     = "internal/era/intx.go"
)

// passed are the guards of a hand-over by the COMMIT of a DoTx. An attack finds those without which
// a caller is told of a lock that it has not.
var passed = []control{
	{mutant: mutant{
		name: "the next caller is told before the COMMIT", file: commitGo,
		old: "\terr := tx.Commit(ctx)\n", new: "\ts.Ended(ctx, true)\n\terr := tx.Commit(ctx)\n",
		on: onPostgres, phase: "sections",
	}},
	{mutant: mutant{
		name: "the next caller is told after a COMMIT that was refused, or not answered", file: sectionGo,
		old: "\tif !committed {\n\t\tnext.TakeBack()", new: "\tif false {\n\t\tnext.TakeBack()",
		on: onPostgres, phase: "sections",
	}},
	{mutant: mutant{
		name: "an unknown COMMIT is taken for one that was acknowledged", file: commitGo,
		old: "if *committed = err == nil; *committed {\n\t\treturn nil",
		new: "if *committed = err == nil || sqlstore.Judge(s.d, err).Class == sqlstore.Unknown; *committed {\n\t\treturn err",
		on:  onPostgres, phase: "sections",
	}},
	{
		mutant: mutant{
			name: "the next caller gets the same token", file: "internal/table/tx.go",
			old: "return max(h.From.Token, start) + 1, err", new: "return h.From.Token + min(start, 0), err",
			on: onPostgres, phase: "sections",
		},
		also: []mutant{{
			name: "the row keeps it", file: postgresSQL, section: "hand-over",
			old: "token = greatest(r.token, @era) + 1", new: "token = greatest(r.token, @era)",
		}},
	},
	{mutant: mutant{
		name: "the row keeps the token, which is not the one told", file: postgresSQL, section: "hand-over",
		old: "token = greatest(r.token, @era) + 1", new: "token = greatest(r.token, @era)",
		on: onPostgres, phase: "sections",
	}},
	{mutant: mutant{
		name: "the next caller is told another owner than the row", file: inTxGo,
		old: "lease.HandOver{From: l, To: to}", new: "lease.HandOver{From: l, To: p.next.call.Want.Request(p.next.key)}",
		on: onPostgres, phase: "sections",
	}},
}

// rare are those that show in moments which an attack seldom meets, or as a wait. A test makes the
// moment. Not here is that a section which keeps its key takes no caller out of the queue: without
// that it sends no hand-over, and puts the caller back.
var rare = []control{
	{
		mutant: mutant{
			name: "a COMMIT of several keys hands one of them over", file: sectionGo,
			old: "if len(s.locks.locks) > 1 || s.terms.keeps ||",
			new: "if s.terms.keeps ||",
		},
		test: "./internal/clienttest TestASectionOfSeveralKeysHandsNothingOver",
	},
	{
		mutant: mutant{
			name: "a lock with another handle is handed over", file: sectionGo,
			old: "h.handles == 1 && !h.uncertain",
			new: "!h.uncertain",
		},
		test: "./internal/clienttest TestASectionWithAnotherHandleHandsNothingOver",
	},
	{
		mutant: mutant{
			name: "a lock whose request may come again is handed over", file: sectionGo,
			old: "h.handles == 1 && !h.uncertain",
			new: "h.handles == 1",
		},
		test: "./internal/clienttest TestASectionOfAnUncertainGrantHandsNothingOver",
	},
	{
		mutant: mutant{
			name: "the section releases what it has handed over", file: sectionGo,
			old: "h.freed, h.passed = true, true",
			new: "h.freed = true",
		},
		test: "./internal/clienttest TestTheCommitOfASectionHandsItsKeyOver",
	},
	{
		mutant: mutant{
			name: "a section at another server tries to hand over again", file: sectionGo,
			old: "\t\ts.next.Strayed()\n",
			new: "\t\t_ = s.next.Strayed\n",
		},
		test: "./internal/clienttest TestASectionAtAnotherServerReleases",
	},
	{
		mutant: mutant{
			name: "a section at another server does not run again", file: commitGo,
			old: "s.Strayed() {\n\t\ts.again = true\n",
			new: "s.Strayed() {\n",
		},
		test: "./internal/clienttest TestASectionAtAnotherServerReleases",
	},
	{
		mutant: mutant{
			name: "a lease that is half over is told", file: inTxGo,
			old: "if time.Since(p.grants.Sent) >= p.next.call.Want.TTL/2 {",
			new: "if false {",
		},
		test: "./internal/clienttest TestALeaseThatTheCommitHasUsedUpIsNotGranted",
	},
	{
		mutant: mutant{
			name: "a lease that a hand-over has used up is told", file: handGo,
			old: "case time.Since(g.Sent) >= next.TTL/2:", new: "case false:",
		},
		test: "./internal/clienttest TestALeaseThatAHandOverHasUsedUpIsNotGranted",
	},
	{
		mutant: mutant{
			name: "a lease that may be half over is told to the first of the queue", file: ticketsGo,
			old: "if time.Since(sent) >= t.TTL/2 {", new: "if false {",
		},
		test: "./internal/clienttest TestALeaseThatAHandOverHasUsedUpIsNotGranted",
	},
	{
		mutant: mutant{
			name: "what the next caller has left behind is not released", file: inTxGo,
			old: "\t\treturn\n\t}\n\tp.returns.Leases(ctx, p.grants.Leases())\n",
			new: "\t\treturn\n\t}\n",
		},
		test: "./internal/clienttest TestAHandOverToACallerThatHasLeftIsPassedOn",
	},
	{
		mutant: mutant{
			name: "what an unknown COMMIT may have handed over is not cleaned up", file: inTxGo,
			old: "\tp.returns.Orphans.AddLeases(p.grants.Leases()...)\n",
			new: "",
		},
		test: "./internal/clienttest TestAnUnknownCommitGrantsNothingByAGuess",
	},
	{
		mutant: mutant{
			name: "the next caller is not put back", file: inTxGo,
			old: "AddLeases(p.grants.Leases()...)\n\tp.queue.keys.giveBack(p.next)\n",
			new: "AddLeases(p.grants.Leases()...)\n",
		},
		test: "./internal/clienttest TestARolledBackHandOverIsNone",
	},
	{
		mutant: mutant{
			name: "sections keep a key from other processes", file: localGo,
			old: "\tif had.spent(&s.policy, now) || !alone && had.over(now, 3*s.slice) {\n\t\treturn nil\n\t}\n\tw := k.head()\n",
			new: "\t_, _ = had, now\n\tw := k.head()\n",
		},
		test: "./internal/clienttest TestSectionsLeaveAKeyToOtherProcesses",
	},
	{
		mutant: mutant{
			name: "a caller that asks by itself is told, too", file: localGo,
			old: "if w == nil || k.attempting != nil || k.holding ||",
			new: "if w == nil || k.holding ||",
		},
		test: "./internal/clienttest TestACallerThatAsksIsNotHandedTheKey",
	},
	{
		mutant: mutant{
			name: "a key is handed to a LockAny", file: localGo,
			old: "|| k.holding || w.any != nil || w.asksOnly() ||",
			new: "|| k.holding || w.asksOnly() ||",
		},
		test: "./internal/clienttest TestASectionHandsItsKeyToPlainCallersOnly",
	},
	{
		mutant: mutant{
			name: "a key is handed to a LockAll", file: localGo,
			old: "|| w.any != nil || w.asksOnly() || w.call",
			new: "|| w.any != nil || w.call",
		},
		test: "./internal/clienttest TestASectionHandsItsKeyToPlainCallersOnly",
	},
	{
		mutant: mutant{
			name: "a key is handed to a reader", file: localGo,
			old: "|| w.call.Want.Shared {\n\t\treturn nil\n\t}\n\tk.remove(w)\n\treturn w\n",
			new: "{\n\t\treturn nil\n\t}\n\tk.remove(w)\n\treturn w\n",
		},
		test: "./internal/clienttest TestASectionHandsItsKeyToPlainCallersOnly",
	},
	{
		mutant: mutant{
			name: "a reader hands its key over", file: passesGo,
			old: "l.Shared || l.Token",
			new: "l.Token",
		},
		test: "./internal/adapter TestAReaderHandsNothingOver",
	},
	{
		mutant: mutant{
			name: "the last token is handed over", file: passesGo,
			old: "|| l.Token >= lease.MaxToken-1 {",
			new: "{",
		},
		test: "./internal/adapter TestTheLastTokenIsNotHandedOver",
	},
	{
		mutant: mutant{
			name: "an era that another session has passed is granted in", file: eraGo,
			old: "|| h.Newest < e.Newest() ",
			new: "",
		},
		test: "./internal/era TestWhenATransactionMayGrant",
	},
	{
		mutant: mutant{
			name: "an era that a bridge has not admitted is granted in", file: eraGo,
			old: " || int64(h.Newest) > e.bounds.Last.Load()",
			new: "",
		},
		test: "./internal/era TestWhenATransactionMayGrant",
	},
	{
		mutant: mutant{
			name: "a history that was strayed from is believed", file: eraGo,
			old: "e.learned.Store(nil)",
			new: "",
		},
		test: "./internal/era TestWhenATransactionMayGrant",
	},
	{
		mutant: mutant{
			name: "the next caller's lease counts from the answer to the COMMIT", file: inTxGo,
			old: "} else if p.queue.keys.give(p.next, p.grants) {",
			new: "} else if p.grants.Sent = time.Now(); p.queue.keys.give(p.next, p.grants) {",
		},
		test: "./internal/clienttest TestALeaseOfACommitCountsFromBeforeItsStatement",
	},
	{
		mutant: mutant{
			name: "Close does not wait for the COMMIT", file: sectionGo,
			old: "if s.next == nil {\n\t\th.k.calls.Leave()", new: "if true {\n\t\th.k.calls.Leave()",
		},
		test: "./internal/clienttest TestCloseWaitsForAHandOverInItsCommit",
	},
}
