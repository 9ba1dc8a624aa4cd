package shown

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Unasked is said of an expired lease where nothing tells whether its row is locked.
const Unasked = "free, unless a transaction still has its row locked"

// WhoLocks says whether an open transaction has the row of an expired lease: one that a process
// fenced before it was stopped, for example. flags are those of Flags.
func WhoLocks(ctx context.Context, table lease.Store, key, flags string) string {
	in, can := adapter.As[lease.Evictor](table)
	if !can {
		return Unasked
	}
	by, err := in.Evict(ctx, key, -1)
	switch {
	case err != nil:
		return Unasked
	case len(by) == 0:
		return "free for the next caller"
	}
	locked := "its row is still locked by " + by[0].String()
	if by[0].Prepared == "" {
		locked += fmt.Sprintf(" (a call of the same user that waits ends it after its EvictAfter; rowlock release%s %s "+
			"--force --evict --reason TEXT ends it now)", flags, Quote(keytext.Show(key)))
	}
	return locked
}

// Quote is a key's text as an argument in a shell, and no flag: keytext reads \x2d as the dash.
func Quote(text string) string {
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		text = `\x2d` + rest
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Flags name tables as those of a command do: " --prefix app_", or nothing.
func Flags(n sqlstore.Names) (flags string) {
	if n.Prefix != "" {
		flags += " --prefix " + n.Prefix
	}
	if n.Schema != "" && !n.Found {
		flags += " --schema " + n.Schema
	}
	return flags
}
