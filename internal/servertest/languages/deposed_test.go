package languages

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

const slack = 5 * time.Second // of a machine that has other work

// eachOther runs f for each language besides Go on each database.
func eachOther(t *testing.T, f func(s *servertest.Scene, language string)) {
	t.Helper()
	servertest.Each(t, func(s *servertest.Scene) {
		for _, language := range []string{"python", "java"} {
			s.Part(language, func(s *servertest.Scene) {
				testdb.Installed(s, language)
				f(s, language)
			})
		}
	})
}

// othersTTL is so long that a quarter of it is enough for a program to log in on a busy machine.
const othersTTL = 16 * time.Second

// A holder renews until it is killed. Then a Go process gets the key, and the other way round.
func TestTheKeyOfAKilledHolderPassesToAnotherLanguage(t *testing.T) {
	eachOther(t, func(s *servertest.Scene, language string) {
		s.Parallel()
		key := "killed " + language
		locks := s.Client(servertest.WithPoll(50 * time.Millisecond))
		p := languages[language](s, key, othersTTL)
		p.Send("lock")
		first := token(s, p)
		s.Eventually("two renewals", func() bool {
			s.Elapse(100 * time.Millisecond) // the program needs the machine, too
			found, err := locks.Inspect(s.Context(), lease.Filter{Keys: []string{key}})
			s.OK(err)
			return found[0].Age+found[0].Remaining > othersTTL*3/2
		})
		ask(s, p, "state", "held")
		p.Kill()
		s.Env.Expire(s, key) // how long its lease lasts is tested elsewhere
		s.Within(othersTTL+slack, "the grant", func() {
			l := s.Take(locks, key)
			if l.Token() <= first {
				s.Errorf("token %d after %d", l.Token(), first)
			}
			s.OK(l.Unlock(s.Context()))
		})

		holder, p := languages["go"](s, key, othersTTL), languages[language](s, key, othersTTL)
		holder.Send("lock")
		second := token(s, holder)
		ask(s, p, "state", "lost")
		p.Send("lock")
		holder.Kill()
		s.Env.Expire(s, key)
		s.Within(othersTTL+slack, "the grant", func() {
			if third := token(s, p); third <= second {
				s.Errorf("token %d after %d", third, second)
			}
		})
		ask(s, p, "unlock", "free")
	})
}

// A holder whose server has vanished is told nothing any more. It knows its loss by its own clock,
// before another process has the key.
func TestAHolderThatReachesNoDatabaseKnowsItsLoss(t *testing.T) {
	const ttl = 12 * time.Second // a quarter of it must be enough to log in on a busy machine
	servertest.EachServer(t, func(s *servertest.Scene) {
		for _, language := range []string{"python", "java"} {
			s.Part(language, func(s *servertest.Scene) {
				s.Parallel()
				env, hole := s.Env.BehindHole(s)
				p := languages[language](&servertest.Scene{T: s.T, Env: env}, language, ttl)
				p.Send("lock")
				first := token(s, p)
				ask(s, p, "state", "held")
				hole.Vanish()
				l := s.Take(s.Client(servertest.WithPoll(50*time.Millisecond)), language)
				ask(s, p, "state", "lost")
				if l.Token() <= first {
					s.Errorf("token %d after %d", l.Token(), first)
				}
				s.OK(l.Unlock(s.Context()))
				if language == "python" && s.Env.Driver == "pgx" {
					return // it relies on the server's kernel, and the hole's answers
				}
				late := time.AfterFunc(ttl+slack, p.Kill)
				p.Send("unlock")
				if said := p.Receive(); !strings.HasPrefix(said, "failed:") {
					s.Errorf("unlock without a server: the process said %q, want a failure", said)
				}
				late.Stop()
			})
		}
	})
}

// A key is locked again after a loss, without unlock. The thread that renewed the lost lock still
// sleeps, and must not go on beside the new one.
func TestALockAfterALossHasOneThreadThatRenews(t *testing.T) {
	servertest.On(t, "sqlite", func(s *servertest.Scene) {
		s.Parallel()
		testdb.Installed(s, "python")
		p := languages["python"](s, "k", 6*time.Second)
		p.Send("lock")
		first := token(s, p)
		s.Exec(s.Env.DB, `UPDATE {rowlock} SET owner = NULL WHERE {key} = ?`, []byte("k"))
		s.Eventually("the loss", func() bool {
			p.Send("state")
			return p.Receive() == "lost"
		})
		p.Send("lock")
		if second := token(s, p); second != first+1 {
			s.Errorf("token %d after %d", second, first)
		}
		// Python's join comes back before the kernel has taken the thread away.
		s.Eventually("the first lock's thread is gone", func() bool {
			threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.(*program).cmd.Process.Pid))
			return len(threads) <= 2 // none where /proc is missing
		})
		ask(s, p, "unlock", "free")
	})
}

// What a holder in another language meets beside Go processes, one after the other.
func TestAHolderInAnotherLanguageIsOneAmongOthers(t *testing.T) {
	eachOther(t, func(s *servertest.Scene, language string) {
		table := book(s)
		key := "größe/" + language
		locks := s.Client(servertest.WithPoll(50 * time.Millisecond))
		s.Exec(s.Env.DB, `UPDATE {rowlock_floor} SET floor = 100 WHERE bucket = ?`, lease.Bucket(key))
		p := languages[language](s, key, othersTTL)

		// The token of a new key begins above the floor of its bucket.
		p.Send("lock")
		last := token(s, p)
		if last != 101 {
			s.Errorf("token %d, want 101", last)
		}
		ask(s, p, entry(table, last, language), "written")
		deposed(s, p, locks, key, table, last)
		forced(s, p, locks, key, table)
		moved(s, p, key)
		shared(s, p, locks, key)
	})
}

// deposed lets the lease pass on. Its holder knows nothing of that before its next renewal. Its
// fence does.
func deposed(s *servertest.Scene, p process, locks *rowlock.Client, key, table string, old lease.Token) {
	s.Helper()
	s.Env.Expire(s, key)
	l := s.Take(locks, key)
	ask(s, p, entry(table, old, "deposed"), "refused")
	s.OK(l.Unlock(s.Context()))
	ask(s, p, entry(table, old, "deposed"), "refused")
	ask(s, p, "unlock", "lost")
	check(s, table, 1)
}

// forced has an operator take the key away: the holder is refused, and knows it at its next
// renewal.
func forced(s *servertest.Scene, p process, locks *rowlock.Client, key, table string) {
	s.Helper()
	p.Send("lock")
	old := token(s, p)
	done, err := locks.ForceRelease(s.Context(), key, rowlock.Force{Reason: "test"})
	s.OK(err)
	if !strings.Contains(done.Note, "ocker.") {
		s.Errorf("the record's note is %q, want the program's", done.Note)
	}
	ask(s, p, entry(table, old, "forced"), "refused")
	s.Within(othersTTL/3+slack, "the loss", func() {
		s.Eventually("the loss", func() bool {
			p.Send("state")
			return p.Receive() == "lost"
		})
	})
	ask(s, p, "unlock", "lost")
	check(s, table, 1)
}

// moved has the key live in a cluster for a while, and no program touch its row.
func moved(s *servertest.Scene, p process, key string) {
	s.Helper()
	s.Exec(s.Env.DB, `UPDATE {rowlock} SET placement = 1, token = 1000 WHERE {key} = ?`, []byte(key))
	p.Send("lock")
	s.Elapse(time.Second / 2)
	if n := s.Number(`SELECT count(*) FROM {rowlock} WHERE {key} = ? AND owner IS NULL
		AND token = 1000 AND placement = 1`, []byte(key)); n != 1 {
		s.Error("the row of the moved key has changed")
	}
	s.Exec(s.Env.DB, `UPDATE {rowlock} SET placement = 0 WHERE {key} = ?`, []byte(key))
	if n := token(s, p); n != 1001 {
		s.Errorf("token %d after the return of the key, want 1001", n)
	}
	ask(s, p, "unlock", "free")
}

// shared has Go processes share the key for a while.
func shared(s *servertest.Scene, p process, locks *rowlock.Client, key string) {
	s.Helper()
	l, err := locks.RLock(s.Context(), key)
	s.OK(err)
	p.Send("lock")
	s.Elapse(time.Second / 2)
	if err := l.Context().Err(); err != nil {
		s.Errorf("the shared lock has ended: %v", err)
	}
	s.OK(l.Unlock(s.Context()))
	if n := token(s, p); n <= l.Token() {
		s.Errorf("token %d after %d", n, l.Token())
	}
	ask(s, p, "unlock", "free")
}

// Tables of another version are refused before anything is written.
func TestAnotherVersionOfTheTablesIsRefused(t *testing.T) {
	servertest.On(t, "sqlite", func(s *servertest.Scene) {
		s.Exec(s.Env.DB, `UPDATE {rowlock_meta} SET value = '4' WHERE name IN ('schema_version', 'compatible_from')`)
		defer s.Exec(s.Env.DB, `UPDATE {rowlock_meta} SET value = '3' WHERE name IN ('schema_version', 'compatible_from')`)
		for _, language := range []string{"python", "java"} {
			p := languages[language](s, "k", time.Minute)
			if said := p.Receive(); said != "(nothing more)" {
				s.Errorf("%s: the program said %q", language, said)
			}
		}
	})
}

// Where the locale has no encoding for it, Java reads another key than it was given, and another
// program would hold the one that was meant.
func TestAKeyThatJavaCannotReadIsRefused(t *testing.T) {
	servertest.On(t, "sqlite", func(s *servertest.Scene) {
		cmd := java(s, "größe", time.Minute)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		if said := start(s, cmd).Receive(); said != "(nothing more)" {
			s.Errorf("the program said %q", said)
		}
	})
}
