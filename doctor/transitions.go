package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/notice"
	"github.com/rowlockdb/rowlock/lease"
)

// ages is how long ago each notice of a transition was made or renewed.
type ages map[string]time.Duration

var noticed = map[string]string{
	notice.Both: "first process with Both", notice.New: "first process with New", notice.Seen: "old process last met",
}

// transitions says how far each transition from another lock is. It reads the notices of package
// transition, and so knows of an old process only what a process with Both or New has met.
func transitions(ctx context.Context, x *examiner) (f Finding, err error) {
	after, last := lease.Range(notice.Prefix)
	rows, err := x.scanText(ctx, x.d.Text("inspect"), []byte(after), []byte(last), 1, many)
	if err != nil {
		return f, err
	}
	table := x.d.Names().Prefix + "rowlock"
	var names []string // in the order of keys
	all := make(map[string]ages)
	for _, r := range rows {
		name, what := notice.Parse(r[0])
		if noticed[what] == "" {
			continue // a key of the user's
		}
		if all[name] == nil {
			names, all[name] = append(names, name), make(ages)
		}
		all[name][what] = notice.Age(conn.Duration(number(r[5])))
		f.saw(keytext.Show(name)+": "+noticed[what], all[name][what].Round(time.Second).String()+" ago", table)
	}
	for _, name := range names {
		is, next := all[name].judge(name)
		f.raise(Info, fmt.Sprintf("transition %q: %s", name, is), fmt.Sprintf("transition %q: %s", name, next))
	}
	f.saw("transitions", len(names), table)
	f.fine("no transition from another lock is recorded")
	return f, nil
}

// judge returns what is so, and what to do.
func (a ages) judge(name string) (is, next string) {
	quiet := a[notice.Both] // before, no process looked
	is = "no old process was met at a lock for %s; one that has locked nothing meanwhile is not seen"
	seen, met := a[notice.Seen]
	if met {
		quiet, met = seen, seen < notice.Quiet
	}
	if met {
		is = "an old process held a lock %s ago: it takes the old lock alone"
	}
	is = fmt.Sprintf(is, quiet.Round(time.Second))
	forget := fmt.Sprintf("transition.Forget(ctx, store, %q)", name)
	switch {
	case a[notice.Both] == 0:
		return is + "; no process has begun with Both", "deploy Both, or call " + forget + " if it is over"
	case met && a[notice.New] > 0:
		return is + ", and does not keep out New, which is deployed", "end the old process, or go back to Both"
	case a[notice.New] > 0:
		return is, "once every process has New, leave package transition out and call " + forget
	case quiet < notice.Quiet:
		return is, fmt.Sprintf("wait: New is refused until none was met for Config.Quiet (default %s)", notice.Quiet)
	}
	return is, "deploy New, unless an old process may go for longer without a lock"
}
