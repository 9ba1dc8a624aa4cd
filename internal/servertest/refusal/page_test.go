package refusal

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/semaphore"
)

// pageRow is a row of the table in docs/schema.md, which the statements are the source of.
var pageRow = regexp.MustCompile("(?m)^\\| (.*) \\| `(rowlock\\w*)` \\| `(.*)` \\|$")

// ofPage are the rights by what one uses.
func ofPage(t *testing.T) map[string][][2]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/schema.md")
	if err != nil {
		t.Fatal(err)
	}
	all, use := make(map[string][][2]string), ""
	for _, m := range pageRow.FindAllStringSubmatch(string(text), -1) {
		if name := strings.TrimSpace(m[1]); name != "" {
			use = name
		}
		all[use] = append(all[use], [2]string{m[2], m[3]})
	}
	return all
}

const (
	everyClient = "core: every client, for locks, queues, waits, eras, the reaper"
	sharing     = "shared: every client where the set is, besides"
)

// inUse does what each row of the page is about, each time with a key of its own.
var inUse = map[string]func(ctx context.Context, db *sql.DB, d dialect.Dialect) error{
	everyClient: func(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
		return asClient(ctx, db, d, nil, func(c *rowlock.Client) error {
			return c.Do(ctx, lease.NewOwner().String(), func(context.Context, *rowlock.Lock) error { return nil })
		})
	},
	sharing: func(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
		return asClient(ctx, db, d, nil, func(c *rowlock.Client) error {
			name := lease.NewOwner().String()
			l, err := c.RLock(ctx, name)
			if err == nil {
				err = l.Unlock(ctx)
			}
			if err != nil {
				return err
			}
			if _, err := semaphore.New(c, name, 2); err != nil {
				return err
			}
			s, err := semaphore.New(c, name, 3) // resizes it
			if err != nil {
				return err
			}
			p, err := s.Acquire(ctx, 1)
			if err != nil {
				return err
			}
			return p.Release(ctx)
		})
	},
	"core: `Client.ForceRelease` and `rowlock release`, besides": func(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
		return asClient(ctx, db, d, nil, func(c *rowlock.Client) error {
			key := lease.NewOwner().String()
			l, err := c.Lock(ctx, key)
			if err != nil {
				return err
			}
			defer runtime.KeepAlive(l) // a forgotten one is released
			_, err = c.ForceRelease(ctx, key, rowlock.Force{Reason: "test", By: "ada"})
			if err != nil {
				return err
			}
			_, err = c.ForceReleases(ctx, lease.ForcedFilter{Key: key})
			return err
		})
	},
	"once: `once` and `oncehttp`, without locks": func(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
		o, err := once.New(db, d, nil)
		if err != nil {
			return err
		}
		defer o.Close()
		_, err = o.Do(ctx, once.Request{Key: "k"}, func(context.Context, *sql.Tx) ([]byte, error) { return []byte("v"), nil })
		if err == nil {
			_, err = o.Sweep(ctx, 0)
		}
		return err
	},
	"forupdate: `forupdate`, besides": func(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
		s, err := forupdate.New(db, d)
		if err != nil {
			return err
		}
		defer s.Close()
		c, err := rowlock.New(s, &rowlock.Config{TTL: time.Minute})
		if err != nil {
			return err
		}
		defer c.Close()
		l, err := c.Lock(ctx, "in a transaction")
		if err != nil {
			return err
		}
		return l.Unlock(ctx)
	},
	"latch: `latch`, without locks": func(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
		l, err := latch.New(db, d, nil)
		if err != nil {
			return err
		}
		return l.Close()
	},
}

func asClient(
	ctx context.Context, db *sql.DB, d dialect.Dialect, cfg *rowlock.Config, f func(*rowlock.Client) error,
) error {
	c, err := rowlock.OpenContext(ctx, db, d, cfg)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close())
}

// The rights of the page are enough, each alone is needed, and the error names the one that is
// missing, with its table.
func TestTheRightsOfThePageAreThoseThatAUseNeeds(t *testing.T) {
	rights := ofPage(t)
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		for use, do := range inUse {
			s.Part(use, func(s *servertest.Scene) {
				if len(rights[use]) == 0 {
					s.Fatalf("docs/schema.md has no row for %q", use)
				}
				own := rights[use]
				all := slices.Concat(rights[everyClient], rights[sharing])
				if strings.HasSuffix(use, "without locks") {
					all = own
				} else if use != everyClient && use != sharing {
					all = append(all, own...)
				}
				for _, r := range all {
					s.Exec(s.Env.DB, `GRANT `+r[1]+` ON {`+r[0]+`} TO `+name)
				}
				s.OK(do(s.Context(), seen.Env.Pool(s), s.Env.Dialect))
				if use != everyClient { // TestOpenRefusesAUserThatLacksAPrivilege has those
					eachMissing(s, seen, name, own, do)
				}
				for _, r := range all {
					s.Exec(s.Env.DB, `REVOKE `+r[1]+` ON {`+r[0]+`} FROM `+name)
				}
			})
		}
	})
}

func eachMissing(s, seen *servertest.Scene, name string, own [][2]string,
	do func(context.Context, *sql.DB, dialect.Dialect) error,
) {
	s.Helper()
	for _, r := range own {
		for right := range strings.SplitSeq(r[1], ", ") {
			if r[0] == "rowlock_hold" && right == "UPDATE" && s.Env.Driver == "mysql" {
				continue // only PostgreSQL's statements update it
			}
			s.Exec(s.Env.DB, `REVOKE `+right+` ON {`+r[0]+`} FROM `+name)
			err := do(s.Context(), seen.Env.Pool(s), s.Env.Dialect)
			if !errors.Is(err, rowlock.ErrPrivilege) || !strings.Contains(err.Error(), r[0]) {
				s.Errorf("without %s on %s: %v, want ErrPrivilege that names it", right, r[0], err)
			}
			s.Exec(s.Env.DB, `GRANT `+right+` ON {`+r[0]+`} TO `+name)
		}
	}
}
