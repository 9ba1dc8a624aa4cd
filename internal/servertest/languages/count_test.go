package languages

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
)

// book makes a table of entries: the next number, and the token and the language of its writer.
func book(s *servertest.Scene) string {
	s.Helper()
	name := s.Env.Dialect.Names().Prefix + "book"
	s.Exec(s.Env.DB, `CREATE TABLE `+name+` (n BIGINT PRIMARY KEY, token BIGINT NOT NULL, who VARCHAR(20) NOT NULL)`)
	s.Cleanup(func() { _, _ = s.Env.DB.Exec(`DROP TABLE ` + name) })
	return name
}

// entry is a write that reads the book and adds to it: two writers that overlap make the same
// number.
func entry(book string, token lease.Token, who string) string {
	return fmt.Sprintf(`write INSERT INTO %s SELECT COALESCE(MAX(n), 0) + 1, %d, '%s' FROM %s`,
		book, token, who, book)
}

// Processes in three languages write fenced entries under one key. Each acknowledged entry is in
// the book, the book has no other, and in its order the tokens rise.
func TestProcessesInEveryLanguageCountOnOneKey(t *testing.T) {
	const each, least = 2, 3
	period := time.Duration(servertest.FromEnvironment("ROWLOCK_LANGUAGES_MS", 2000)) * time.Millisecond
	servertest.Each(t, func(s *servertest.Scene) {
		table := book(s)
		s.Env.ForgetEras(s)
		s.Client() // begins an era of today, whose tokens no double holds
		var group sync.WaitGroup
		written, started := map[string]*int{}, map[string]process{}
		// All start before one is asked: a language that is missing skips the test, and ends them.
		for name, launch := range languages {
			for i := range each {
				started[fmt.Sprint(name, i)] = launch(s, "k", servertest.LongTTL)
			}
		}
		for who, p := range started {
			count := new(int)
			written[who] = count
			group.Go(func() {
				ask(s, p, "state", "lost") // it has started
				for until := time.Now().Add(period); time.Now().Before(until) || *count < least; *count++ {
					if !turn(s, p, table, who) {
						return
					}
				}
			})
		}
		group.Wait()
		total := 0
		for _, n := range written {
			total += *n
		}
		check(s, table, total)
		if least := s.Number(`SELECT MIN(token) FROM ` + table); least < 1e17 {
			s.Errorf("token %d is of no era of today", least)
		}
		s.Logf("%d entries:%s", total, counts(written))
	})
}

// turn locks, writes an entry and unlocks.
func turn(s *servertest.Scene, p process, table, who string) bool {
	p.Send("lock")
	said, ok := strings.CutPrefix(p.Receive(), "token ")
	var granted lease.Token
	err := granted.UnmarshalText([]byte(said))
	if !ok || err != nil {
		s.Errorf("%s: lock: %q", who, said)
		return false
	}
	for _, step := range [][2]string{{entry(table, granted, who), "written"}, {"unlock", "free"}} {
		p.Send(step[0])
		if said := p.Receive(); said != step[1] {
			s.Errorf("%s: %s: %q", who, step[0], said)
			return false
		}
	}
	return true
}

// check fails the test unless the book has so many entries, under rising tokens.
func check(s *servertest.Scene, table string, total int) {
	s.Helper()
	rows, err := s.Env.DB.QueryContext(s.Context(), `SELECT n, token, who FROM `+table+` ORDER BY n`)
	s.OK(err)
	defer rows.Close()
	found, last := 0, lease.Token(0)
	for rows.Next() {
		var n, token lease.Token
		var who string
		s.OK(rows.Scan(&n, &token, &who))
		if token <= last {
			s.Errorf("entry %d of %s has token %d after %d", n, who, token, last)
		}
		found, last = found+1, token
	}
	s.OK(rows.Err())
	if found != total {
		s.Errorf("%d entries were acknowledged, and the book has %d", total, found)
	}
}

func counts(written map[string]*int) string {
	var b strings.Builder
	for who, n := range written {
		fmt.Fprintf(&b, " %s %d", who, *n)
	}
	return b.String()
}
