//go:build linux

package main

// control is what make chaos must find: a mutant that needs a fault to show, or a server that does not keep what it has
// acknowledged.
type control struct {
	mutant
	// faults are those of make chaos, and server the settings of its server.
	faults, server string
}

var controls = []control{
	{
		mutant: mutant{
			name: "a fence asks for no owner", file: postgresSQL, section: "fence",
			old: "WHERE key = $1 AND owner = $2 AND token = $3 AND home = @home",
			new: "WHERE key = $1 AND $2::bytea IS NOT NULL AND $3::bigint > 0 AND home = @home", on: onPostgres,
		},
		faults: "stop-session,one-way,stop-worker",
	},
	{
		mutant: mutant{
			name: "a hand-over without an answer takes any holder for the next", file: "internal/table/handover.go",
			old: "rows[0].Held && rows[0].Owner == r.Owner {", new: "rows[0].Held {", on: onPostgres,
		},
		faults: "reply",
	},
	{mutant: mutant{name: "a server acknowledges commits before they are written", on: onPostgres}, faults: "kill-server", server: "-c synchronous_commit=off"},
	{mutant: mutant{name: "a standby lacks what was acknowledged", on: onPostgres}, faults: "promote-lossy"},
}

// chosen are the controls, or the mutants that need no fault.
func chosen(chaos bool) (list []control) {
	if chaos {
		return controls
	}
	for _, m := range mutants {
		list = append(list, control{mutant: m})
	}
	return list
}
