//go:build linux

package main

// control is what make chaos must find: a mutant that needs a fault to show, or a server that does
// not keep what it has acknowledged.
type control struct {
	mutant
	// also are guards that stand beside the first.
	also []mutant
	// faults are those of make chaos, and server the settings of its server.
	faults, server string
	// test finds it in place of an attack: a package of the repository's, and the name of its test.
	test string
}

var controls = []control{
	{
		mutant: mutant{
			name: "a fence asks for no owner, and does not look at the clock", file: postgresSQL, section: "fence",
			old: "WHERE key = $1 AND owner = $2 AND token = $3 AND placement = @placement",
			new: "WHERE key = $1 AND $2::bytea IS NOT NULL AND $3::bigint > 0 AND placement = @placement", on: onPostgres,
		},
		also:   []mutant{{name: "the clock", file: "lock.go", old: "case cause == nil:", new: `case cause == nil || what == "Fence":`}},
		faults: "stop-worker",
	},
	{
		mutant: mutant{
			name: "a COMMIT without an answer is told as done", file: "internal/sqlstore/transaction.go",
			old: "err := t.commit(end)",
			new: "err := t.commit(end)\n\tif end.Err() == nil {\n\t\terr = nil\n\t}", on: onPostgres,
		},
		faults: "reply",
	},
	{mutant: mutant{name: "a server acknowledges commits before they are written", on: onPostgres}, faults: "kill-server", server: "-c synchronous_commit=off"},
	{
		mutant: mutant{
			name: "no session learns of an era", file: "internal/era/era.go",
			old: "if e.d.OneHistory {\n\t\ts.EraAt(0)", new: "if true || e.d.OneHistory {\n\t\ts.EraAt(0)", on: onPostgres,
		},
		faults: "failover-lossy",
	},
}

// chosen are the controls, or the mutants that need no fault.
func chosen(chaos bool) (list []control) {
	if chaos {
		return controls
	}
	for _, m := range mutants {
		list = append(list, control{mutant: m})
	}
	return append(append(list, passed...), rare...)
}
