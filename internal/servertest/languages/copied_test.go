package languages

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/internal/wire"
)

// A program and its statements, as they were copied when a version was released, still lock beside
// today's Go processes on today's tables.
func TestCopiedStatementsStillLock(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		python := testdb.Installed(s, "python")
		s.Cleanup(func() {
			if s.Failed() {
				s.Log("docs/compatibility.md: " + wire.Promise(s, "statements of [the protocol]"))
			}
		})
		for version := sqlstore.FirstVersion; version <= sqlstore.SchemaVersion; version++ {
			copied, err := filepath.Abs(fmt.Sprintf("../../../testdata/protocol/v%d/locker.py", version))
			s.OK(err)
			table, key := book(s), fmt.Sprintf("copied %d", version)
			p := start(s, exec.Command(python, copied, sourceURL(s), key, seconds(othersTTL), s.Env.Dialect.Names().Prefix))
			late := time.AfterFunc(2*othersTTL, p.Kill) // it would ask for the key for ever
			defer late.Stop()
			locks := s.Client(servertest.WithPoll(50 * time.Millisecond))
			p.Send("lock") // make
			first := token(s, p)
			s.WantHeld(locks, key)
			ask(s, p, entry(table, first, "copied"), "written")
			s.Env.Expire(s, key)
			l := s.Take(locks, key)
			ask(s, p, entry(table, first, "deposed"), "refused")
			s.OK(l.Unlock(s.Context()))
			ask(s, p, "unlock", "lost")
			p.Send("lock") // take
			if second := token(s, p); second <= l.Token() || l.Token() <= first {
				s.Errorf("tokens %d, %d and %d do not rise", first, l.Token(), second)
			}
			ask(s, p, "unlock", "free")
			s.OK(s.Take(locks, key).Unlock(s.Context()))
		}
	})
}
