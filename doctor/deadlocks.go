package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/ring"
	"github.com/rowlockdb/rowlock/lease"
)

// edge is a chain of calls that waits for a key which another chain holds.
type edge struct {
	from, to, key, note string
	// process says that the chains stand for whole processes: one call of it waits, and perhaps
	// another one holds.
	process bool
	waited  time.Duration
}

func (e edge) ends() (from, to string) { return e.from, e.to }

// deadlocks finds chains of calls that wait for each other. rowlock ends one of them within
// seconds; a cycle that stays is of processes that are stuck, or that cannot reach the database.
func deadlocks(ctx context.Context, x *examiner) (f Finding, err error) {
	rows, err := x.scanText(ctx, x.d.Text("doctor-waits"), many)
	if err != nil {
		return f, err
	}
	var edges []edge
	for _, r := range rows {
		e := edge{r[0], r[1], r[2], r[3], r[4] != "0", conn.Duration(number(r[5]))}
		if !e.process || e.from != e.to { // the call of the process that holds the key may go on
			edges = append(edges, e)
		}
	}
	f.saw("calls that wait while they hold a key", len(rows), x.d.Names().Prefix+"rowlock_wait")
	for _, cycle := range ring.Of(edges, edge.ends) {
		x.tell(&f, cycle)
	}
	f.fine("no calls wait for each other")
	return f, nil
}

func (x *examiner) tell(f *Finding, cycle []edge) {
	var words []string
	var longest time.Duration
	for _, e := range cycle {
		identity, note := lease.SplitNote(e.note)
		name := cmp.Or(lease.Describe(identity, note), "a client without a name")
		words = append(words, fmt.Sprintf("%s waits for %q", name, e.key))
		longest = max(longest, e.waited)
	}
	f.saw("cycle", strings.Join(words, ", "), x.d.Names().Prefix+"rowlock_wait")
	if cycle[0].process {
		f.raise(Info, fmt.Sprintf("calls of %d processes wait for keys of each other for up to %s, perhaps in "+
			"a cycle", len(cycle), longest.Round(time.Millisecond)), "pass the ctx of the lock that is held "+
			"to the call that waits, so that rowlock sees a cycle and ends it")
		return
	}
	f.raise(Warning, fmt.Sprintf("%d calls have waited for each other for up to %s; rowlock ends one of them "+
		"with ErrDeadlock within seconds", len(cycle), longest.Round(time.Millisecond)),
		"lock several keys with LockAll, or always in the same order",
		"if it stays: rowlock release --force --reason deadlock -- "+shell(keytext.Show(cycle[0].key)))
}

// shell quotes a word, so that a shell hands it on as it is: keys may come from strangers.
func shell(word string) string { return `'` + strings.ReplaceAll(word, `'`, `'\''`) + `'` }
