package certrowlock_test

import (
	"context"
	"os"
	"testing"

	"github.com/caddyserver/certmagic"

	certrowlock "github.com/rowlockdb/rowlock/adapters/certmagic"

	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMain(m *testing.M) { adaptertest.Main(m, work) }

func work(ctx context.Context, w *adaptertest.Worker) error {
	s, err := certrowlock.New(&certmagic.FileStorage{Path: os.TempDir()}, w.Locks)
	if err != nil {
		return err
	}
	const name = "issue_cert_example.com"
	for ctx.Err() == nil {
		if err := s.Lock(ctx, name); err != nil {
			return err
		}
		l, _ := s.Held(name)
		_ = w.Section(ctx, l)
		_ = s.Unlock(ctx, name) // what matters is told by the section
	}
	return nil
}

func TestProcessesThatAreKilledLockOneAfterTheOther(t *testing.T) {
	t.Parallel()
	adaptertest.Contend(t, testdb.Kinds[0].Open(t))
}
