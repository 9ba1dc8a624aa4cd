package fence

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// A caller that gives up is told whose transaction keeps the row of an expired key locked, in
// whatever queue it has waited, and for one key or for any of several.
func TestTheErrorOfAWaitNamesWhatKeepsTheRowLocked(t *testing.T) {
	t.Parallel()
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		s.Exec(s.Env.DB, `GRANT SELECT, UPDATE ON {rowlock} TO `+name)
		s.Take(s.Client(servertest.WithTTL(time.Minute)), "living")
		expired(s, "key")
		tx, err := seen.Env.Pool(s).BeginTx(s.Context(), nil)
		s.OK(err)
		_, err = tx.ExecContext(s.Context(),
			s.Env.SQL(`UPDATE {rowlock} SET note = note WHERE {key} = ?`), []byte("key"))
		s.OK(err)
		for how, wait := range map[string]func(context.Context, *rowlock.Client) (*rowlock.Lock, error){
			"Lock": func(ctx context.Context, c *rowlock.Client) (*rowlock.Lock, error) { return c.Lock(ctx, "key") },
			"LockAny": func(ctx context.Context, c *rowlock.Client) (*rowlock.Lock, error) {
				return c.LockAny(ctx, []string{"living", "key"})
			},
		} {
			for _, fair := range []bool{false, true} {
				c, evicted, _ := evictor(s, s.Env.DB, time.Second, fair)
				ctx, cancel := context.WithCancel(s.Context())
				waits := servertest.Aside(func() error { _, err := wait(ctx, c); return err })
				servertest.WantErr(s, answered(s, evicted).err, rowlock.ErrPrivilege)
				cancel()
				err := <-waits
				servertest.WantErr(s, err, rowlock.ErrHeld)
				if !strings.Contains(err.Error(), name) {
					s.Errorf("%s, in order %t: told %v", how, fair, err)
				}
			}
		}
		s.OK(tx.Commit())
	})
}
