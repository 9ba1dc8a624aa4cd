package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// mark is what had been done by a moment.
type mark struct {
	at              time.Time
	hot, cold, sent int64
}

// rates is what was done a second between two.
type rates struct{ hot, cold, sent float64 }

func (s *stage) mark() mark {
	return mark{at: time.Now(), hot: s.load.sum(hotKeys), cold: s.load.sum(s.load.cold), sent: s.sent.Load()}
}

func (m mark) since(before mark) rates {
	took := m.at.Sub(before.at).Seconds()
	per := func(now, then int64) float64 { return float64(now-then) / took }
	return rates{per(m.hot, before.hot), per(m.cold, before.cold), per(m.sent, before.sent)}
}

func (l *load) sum(keys []string) (n int64) {
	for _, key := range keys {
		n += l.accounts[key].value.Load()
	}
	return n
}

// tell sums up. It does not hide that locks may be slower in the cluster than they were in the
// database: what they are here says nothing of a cluster on three machines with disks of their own.
func (s *stage) tell(table, cluster, killed rates) {
	s.show.line("")
	w := tabwriter.NewWriter(s.show, 0, 0, 2, ' ', tabwriter.AlignRight)
	row(w, "per second", "hot locks", "cold locks", "statements", "")
	for _, r := range []struct {
		name string
		rates
	}{{"all in the database", table}, {"hot ones in the cluster", cluster}, {"a member killed", killed}} {
		row(w, r.name, whole(r.hot), whole(r.cold), whole(r.sent), "")
	}
	_ = w.Flush()
	s.show.line("")
	s.show.line("After the kill no hot key stood still for longer than %.2f s; %d calls failed and were made again, %d locks were lost.",
		s.load.standstill().Seconds(), s.load.failures.Load(), s.load.lost.Load())
	s.show.line("Three members share the processors and the disk of this machine with the database: how fast they are here says little of")
	s.show.line("three machines. What falls is what the database has to do.")
	if s.db.Dialect.Name() == "sqlite" {
		s.show.line("(Some 200 of its statements are the two clients' looks at SQLite's counter of commits: it has no notifications.)")
	}
}

func row(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }

func whole(x float64) string { return fmt.Sprintf("%.0f", x) }
