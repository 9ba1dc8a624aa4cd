//go:build linux

package main

const (
	sectionGo = "dotx.go"
	inTxGo    = "internal/queue/intx.go"
)

// passed are the guards of a hand-over by the COMMIT of a DoTx. An attack finds those without which
// a caller is told of a lock that it has not.
var passed = []control{
	{mutant: mutant{
		name: "the next caller is told before the COMMIT", file: sectionGo,
		old: "\terr := tx.Commit(ctx)\n", new: "\ts.committed = true\n\ts.passOn(ctx)\n\terr := tx.Commit(ctx)\n",
		on: onPostgres, phase: "sections",
	}},
	{mutant: mutant{
		name: "the next caller is told after a COMMIT that was refused, or not answered", file: sectionGo,
		old: "\tif !s.committed {\n\t\tnext.TakeBack()", new: "\tif false {\n\t\tnext.TakeBack()",
		on: onPostgres, phase: "sections",
	}},
	{mutant: mutant{
		name: "an unknown COMMIT is taken for one that was acknowledged", file: sectionGo,
		old: "if s.committed = err == nil; s.committed {\n\t\treturn nil",
		new: "if s.committed = err == nil || sqlstore.Judge(s.d, err).Class == sqlstore.Unknown; s.committed {\n\t\treturn err",
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
