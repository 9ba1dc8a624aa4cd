package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// situation is what may be so of the key "k", and what an operator's tools say of it.
type situation struct {
	name    string
	happens func(*stage)
	on      string // the databases that have it; "" are all
	says    []saying
}

// saying is what a tool must say and what it must not, each a list with | between. {process} is the
// other process. on is as in a situation.
type saying struct{ tool, has, lacks, on string }

const servers = "postgres mariadb mysql"

// noWaiter is what is said where no call waits.
var noWaiter = []saying{
	{"waiters", "no key is waited for", "k ", ""},
	{"waiters k", "no waiters for k", "POS", ""},
	{"console waits", "No key is waited for", ">k<", ""},
}

// noCycle is what is said where no call can be in a cycle.
var noCycle = []saying{
	{"doctor", "no calls wait for each other", "have waited for each other|perhaps in a cycle", ""},
	{"console cycles", "No callers wait for one another", "Cycle of|Suspicion", ""},
}

// afternoon are the situations. What is not so is the dangerous part: an operator who reads "free"
// starts the work a second time, and one who reads "deadlock" ends a process that works.
var afternoon = []situation{
	{"a holder is alive", (*stage).alive, "", join([]saying{
		{"ls", "web-1/4711/orders", "(free)|(expired)|corrupt", ""},
		{"show k", "state    held|web-1/4711/orders|unless renewed", "free|expired|locked", ""},
		{"console", "web-1/4711/orders", "(free)|expired|corrupt", ""},
		{"console key?k=k", "<dd>held</dd>|web-1/4711/orders", "free|expired", ""},
		{"doctor", "", "have run out", ""},
		{"metrics", "Held:1 |Waiting:0 |Lost:0 ", "", ""},
	}, noWaiter, noCycle)},
	{"a holder was killed, and its lease goes on", (*stage).killed, "", join([]saying{
		{"ls", "{process}", "(free)|(expired)", ""},
		{"show k", "state    held|{process}|unless renewed", "free|expired", ""},
		{"console key?k=k", "<dd>held</dd>|{process}", "free|expired", ""},
		{"doctor", "", "have run out", ""},
	}, noWaiter, noCycle)},
	{"a holder was killed, and its lease has expired", (*stage).expired, "", join([]saying{
		{"ls", "no such keys", "{process}", ""},
		{"ls --all", "(expired)|{process}", "(free)", ""},
		{"show k", "expired |ago: free for the next caller", "held|locked", servers},
		{"show k", "expired |ago: free, unless a transaction still has its row locked", "held", "sqlite"},
		{"console", "No key is held", "{process}", ""},
		{"console key?k=k", "expired |free, unless a transaction still has its row locked", "<dd>held", ""},
		{"doctor", "the leases of 1 keys have run out", "", ""},
	}, noWaiter, noCycle)},
	{"a holder is stopped in a fenced transaction, and its lease has expired", (*stage).stopped, servers, join([]saying{
		{"ls --all", "(expired)|{process}", "(free)", ""},
		{"show k", "its row is still locked: session ", "held|free", servers},
		{"console key?k=k", "unless a transaction still has its row locked", "<dd>held|<dd>free", ""},
		{"doctor", "could not renew", "", ""},
	}, noWaiter, noCycle)},
	{"such a key is waited for", (*stage).stoppedAndWaitedFor, servers, join([]saying{
		{"show k", "its row is still locked: session |web-2", "held|free", ""},
		{"waiters", "k ", "(free)", ""},
		{"waiters k", "process  web-2", "(free)", ""},
		{"console waits", ">k<", "(free)", ""},
		{"console key?k=k", "unless a transaction still has its row locked|web-2", "<dd>held|<dd>free", ""},
	}, noCycle)},
	{"MinHold keeps a key after its holder has gone", (*stage).kept, "", join([]saying{
		{"ls", "cron-1", "(free)|(expired)", ""},
		{"show k", "state    held|cron-1", "free|expired", ""},
		{"console key?k=k", "<dd>held</dd>|cron-1", "free|expired", ""},
		{"doctor", "", "have run out", ""},
	}, noWaiter, noCycle)},
	{"MinHold has ended", (*stage).keptLongEnough, "", join([]saying{
		{"ls", "no such keys", "cron-1", ""},
		{"show k", "ago: free for the next caller", "held|locked", servers},
		{"console", "No key is held", "cron-1", ""},
		{"doctor", "or had unlocked them before their MinHold was over", "", ""},
	}, noWaiter, noCycle)},
	{"calls wait with and without Fair", (*stage).waitedFor, "", join([]saying{
		{"show k", "state    held|1  queue    web-3|-  process  web-2", "free|expired|waiters  none", ""},
		{"waiters", "k |web-1/4711/orders", "(free)|no key", ""},
		{"waiters k", "1  queue    web-3|-  process  web-2", "no waiters|web-1", ""},
		{"console waits", ">k<|web-1/4711/orders", "(free)|No key", ""},
		{"console key?k=k", "web-2|web-3|in the queue|process, in no order", "No waiters", ""},
		{"metrics", "Held:1 |Deadlocks:0 ", "", ""},
	}, noCycle)},
	{"a leader has candidates", (*stage).leads, "", join([]saying{
		{"show election/k", "state    held", "free|expired|waiters  none", ""},
		{"waiters election/k", "web-", "no waiters", ""},
		{"console key?k=election/k", "<dd>held</dd>", "free|expired|No waiters", ""},
		{"metrics", "Held:1 |Waiting:0 |Deadlocks:0 ", "", ""},
	}, noCycle)},
	{"calls wait for each other", (*stage).deadlock, "", []saying{
		{"show k", "state    held", "free|expired", ""},
		{"doctor", "2 calls have waited for each other|rowlock release --force --reason deadlock", "perhaps|no calls wait", ""},
		{"console cycles", "Cycle of 2", "Suspicion|No callers", ""},
	}},
	{"calls of processes may wait for each other", (*stage).suspicion, "", []saying{
		{"show k", "state    held", "free|expired", ""},
		{"doctor", "perhaps in a cycle", "have waited for each other|deadlock --", ""},
		{"console cycles", "Suspicion among 2 processes|need not be a cycle", "Cycle of", ""},
	}},
	{"an operator has taken the key", (*stage).forced, "", join([]saying{
		{"ls", "no such keys", "web-1", ""},
		{"show k", "state    free", "held|expired|web-1", ""},
		{"history", "ada|hangs|web-1/4711/orders", "", ""},
		{"console", "No key is held", "web-1", ""},
		{"console key?k=k", "<dd>free</dd>|ada|hangs", "<dd>held|expired", ""},
		{"console records", "ada|hangs|web-1/4711/orders", "No forced release", ""},
		{"doctor", "", "have run out", ""},
		{"metrics", "Held:0 |Lost:1 |Released:0 ", "", ""},
	}, noWaiter, noCycle)},
	{"a row is corrupt", (*stage).corrupt, "", join([]saying{
		{"ls --all", "(corrupt)", "(free)|(expired)", ""},
		{"show k", "corrupt: |rowlock release", "state    held|free|expired", ""},
		{"console key?k=k", "corrupt: ", "<dd>held|<dd>free|expired", ""},
		{"doctor", "have values that rowlock does not write", "", ""},
	}, noCycle)},
}

func join(lists ...[]saying) (all []saying) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// No tool says what is not so.
func TestToolsSayWhatIsSo(t *testing.T) {
	for _, of := range afternoon {
		t.Run(strings.ReplaceAll(of.name, ",", ""), func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, e *testdb.Env) {
				if !isOn(of.on, e.Kind.Name) {
					t.Skip("it has no such thing")
				}
				s := &stage{bed: newBed(t, e), scene: &servertest.Scene{T: t, Env: e}}
				of.happens(s)
				s.asks(of.says)
			})
		})
	}
}

func isOn(names, name string) bool { return names == "" || strings.Contains(names, name) }

func (s *stage) asks(all []saying) {
	s.Helper()
	said := make(map[string]string)
	var p *page
	for _, one := range all {
		if !isOn(one.on, s.Kind.Name) {
			continue
		}
		path, inConsole := strings.CutPrefix(one.tool, "console")
		if inConsole && p == nil {
			p = s.opens()
			p.open()
		}
		if _, asked := said[one.tool]; !asked && inConsole {
			_, said[one.tool] = p.gets(strings.TrimSpace(path), nil)
		} else if !asked {
			said[one.tool] = s.tool(one.tool)
		}
		s.compares(one, said[one.tool])
	}
}

// tool is what a tool says that is no page.
func (s *stage) tool(name string) string {
	s.Helper()
	switch name {
	case "metrics":
		return fmt.Sprintf("%+v", s.holder.Stats())
	case "doctor":
		name += " --all --only bad-rows,orphans,deadlocks"
	}
	out, told, _ := s.does(strings.Fields(name)...)
	return out + told
}

func (s *stage) compares(one saying, text string) {
	s.Helper()
	for i, list := range []string{one.has, one.lacks} {
		for want := range strings.SplitSeq(strings.ReplaceAll(list, "{process}", s.process), "|") {
			if want != "" && strings.Contains(text, want) != (i == 0) {
				s.Errorf("%s: %q is said: %t, want %t:\n%s", one.tool, want, i == 1, i == 0, text)
			}
		}
	}
}
