package sqlstore

import "github.com/rowlockdb/rowlock/lease"

// History is what a session has learned of its server.
type History struct {
	// Name differs for each start of a server, and for each restore.
	Name string
	// Newest is the start of the newest era of the table, -1 if there is none.
	Newest lease.Token
	// Recorded is how many histories the table has. Known says that this is the newest of them; in
	// a file, which has several at once, that it is one of them.
	Recorded int64
	Known    bool
	// ReadOnly says that the server takes no writes.
	ReadOnly bool
	// From is the larger value of compatible_from: of Core, and of Shared if it is there.
	From []byte
}

// Dest returns the destinations of section era-look.
func (h *History) Dest() []any {
	return []any{&h.Name, &h.Newest, &h.Recorded, &h.Known, &h.ReadOnly, &h.From}
}
