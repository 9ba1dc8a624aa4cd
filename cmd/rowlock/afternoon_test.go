package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// situation is what may be so of the key "k", and what an operator's tools say of it. What is not
// so is the dangerous part: an operator who reads "free" starts the work a second time, and one who
// reads "deadlock" ends a process that works.
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

func join(lists ...[]saying) []saying { return slices.Concat(lists...) }

// No tool says what is not so. The situations of a database come one after the other on the same
// tables, as in an afternoon: what one leaves behind, the next would meet.
func TestToolsSayWhatIsSo(t *testing.T) {
	race.Skip(t) // the programs that it runs are other processes
	all := slices.Concat(ofHolders, ofRows, ofWaits, ofPlaces)
	if len(all) < 30 {
		t.Errorf("there are %d situations", len(all))
	}
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		said := 0
		for _, of := range all {
			if !isOn(of.on, e.Kind.Name) {
				continue
			}
			t.Run(strings.ReplaceAll(of.name, ",", ""), func(t *testing.T) {
				s := &stage{bed: newBed(t, e), scene: &servertest.Scene{T: t, Env: e}}
				t.Cleanup(func() { s.clears(e) })
				of.happens(s)
				s.asks(of.says)
				said++
			})
		}
		t.Logf("%d situations", said)
	})
}

func isOn(names, name string) bool { return names == "" || strings.Contains(names, name) }

// clears leaves no rows to the next situation. It comes after the clients of this one have closed.
func (s *stage) clears(e *testdb.Env) {
	for _, table := range []string{"", "_queue", "_wait", "_member", "_forced"} {
		e.Exec(s.T, `DELETE FROM {rowlock`+table+`}`)
	}
}

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
			p = s.opens(s.flags...)
			p.open()
		}
		if _, asked := said[one.tool]; !asked && inConsole {
			_, text := p.gets(strings.TrimSpace(path), nil)
			_, said[one.tool], _ = strings.Cut(text, "<main")
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
		return s.metrics()
	case "doctor":
		name += " --all --only bad-rows,orphans,deadlocks"
	}
	out, told, _ := s.does(append(strings.Fields(name), s.flags...)...)
	return out + told
}

func (s *stage) compares(one saying, text string) {
	s.Helper()
	fill := strings.NewReplacer("{process}", s.process, "{prefix}", s.bed.Dialect.Names().Prefix)
	for i, list := range []string{one.has, one.lacks} {
		for want := range strings.SplitSeq(fill.Replace(list), "|") {
			if want != "" && strings.Contains(text, want) != (i == 0) {
				s.Errorf("%s: %q is said: %t, want %t:\n%s", one.tool, want, i == 1, i == 0, text)
			}
		}
	}
}
