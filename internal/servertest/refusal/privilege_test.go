package refusal

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/optimistic"
)

func TestOpenRefusesAUserThatLacksAPrivilege(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		for table, rights := range servertest.Needed {
			for _, right := range rights {
				s.Exec(s.Env.DB, `REVOKE `+right+` ON {`+table+`} FROM `+name)
				s.Part(right+" on "+table, func(s *servertest.Scene) {
					// MySQL hides a table from users without a privilege on it, if it is the only one
					want, says := rowlock.ErrPrivilege, []string{
						"GRANT " + right + " ON " + s.Env.Named(s, table),
					}
					for _, st := range servertest.Strategies {
						refusedWith(s, servertest.Config(servertest.WithStrategy(st)), seen.Env.Pool(s),
							s.Env.Dialect, want, says...)
					}
				})
				s.Exec(s.Env.DB, `GRANT `+right+` ON {`+table+`} TO `+name)
			}
		}
		if n := s.Rows(); n != 0 {
			s.Errorf("%d rows after nothing but refusals", n)
		}
	})
}

// An administrator who grants one right is not sent back for the next.
func TestOpenNamesAllMissingPrivilegesAtOnce(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		for _, missing := range []map[string]string{
			{"rowlock": "INSERT, DELETE", "rowlock_floor": "UPDATE", "rowlock_queue": "SELECT, UPDATE"},
			{"rowlock_queue": "SELECT, INSERT, UPDATE, DELETE", "rowlock_meta": "SELECT"},
			{"rowlock_meta": "SELECT", "rowlock": "UPDATE"},
		} {
			var says []string
			for table, rights := range missing {
				s.Exec(s.Env.DB, `REVOKE `+rights+` ON {`+table+`} FROM `+name)
				says = append(says, "GRANT "+rights+" ON "+s.Env.Named(s, table)+" TO")
			}
			refused(s, seen.Env.Pool(s), s.Env.Dialect, rowlock.ErrPrivilege, says...)
			_, err := optimistic.New(seen.Env.Pool(s), s.Env.Dialect)
			s.WantErr(err, rowlock.ErrPrivilege)
			if text := err.Error(); strings.Contains(text, "DELETE ON "+s.Env.Named(s, "rowlock")+" ") {
				s.Errorf("optimistic.New asks for what it does not need: %s", text)
			}
			s.Grant(name)
		}
		seen.T = s.T
		seen.Take(seen.Client(), "k")
	})
}

// Other packages need a table more, and say so together with the rest.
func TestOtherStoresNameAllMissingPrivilegesAtOnce(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		s.Exec(s.Env.DB, `GRANT SELECT ON {rowlock_hold} TO `+name)
		s.Exec(s.Env.DB, `GRANT SELECT ON {rowlock_once} TO `+name)
		s.Exec(s.Env.DB, `REVOKE UPDATE ON {rowlock} FROM `+name)
		_, holds := forupdate.New(seen.Env.Pool(s), s.Env.Dialect)
		_, effects := once.New(seen.Env.Pool(s), s.Env.Dialect, nil)
		for err, says := range map[error][]string{
			holds: {
				"UPDATE ON " + s.Env.Named(s, "rowlock"), "INSERT, UPDATE, DELETE ON " + s.Env.Named(s, "rowlock_hold"),
			},
			effects: {"INSERT, UPDATE, DELETE ON " + s.Env.Named(s, "rowlock_once")},
		} {
			s.WantErr(err, rowlock.ErrPrivilege)
			for _, word := range says {
				if !strings.Contains(err.Error(), word) {
					s.Errorf("%q does not say %q", err, word)
				}
			}
		}
	})
}

// The rights that Open asks for are all that a client ever uses.
func TestTheNeededPrivilegesAreEnough(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		table := s.Ledger()
		s.Exec(s.Env.DB, `GRANT SELECT, UPDATE ON `+table+` TO `+name)
		seen.T = s.T
		seen.Cycle(seen.Env.Pool(s), table)
	})
}

func TestOpenRefusesAUserWithoutAnyPrivilege(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		_, seen := s.User()
		says := "SELECT, INSERT, UPDATE, DELETE ON " + s.Env.Named(s, "rowlock")
		if s.Env.Driver == "mysql" {
			says = "Access denied" // to the database
		}
		refused(s, seen.Env.Pool(s), s.Env.Dialect, rowlock.ErrPrivilege, says)
	})
}

func TestOpenRefusesAUserThatSeesNoTable(t *testing.T) {
	for _, product := range []string{"mysql", "mariadb"} {
		servertest.On(t, product, func(s *servertest.Scene) {
			name, seen := s.User()
			table := s.Ledger()
			s.Exec(s.Env.DB, `GRANT SELECT ON `+table+` TO `+name)
			refused(s, seen.Env.Pool(s), s.Env.Dialect, rowlock.ErrNoSchema, s.Env.Table("rowlock"),
				"check the user's privileges")
		})
	}
}

func TestOpenRefusesAUserThatMayNotUseTheSchema(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		name, seen := s.User()
		space := s.Env.Dialect.Names().Prefix + "space"
		s.Exec(s.Env.DB, `CREATE SCHEMA `+space)
		s.Cleanup(func() { s.Env.Exec(s, `DROP SCHEMA `+space+` CASCADE`) })
		d := s.Migrated(s.Env.Source, dialect.Schema(space)).Env.Dialect
		refused(s, seen.Env.Pool(s), d, rowlock.ErrPrivilege, "schema "+space)
		s.Exec(s.Env.DB, `GRANT USAGE ON SCHEMA `+space+` TO `+name)
		refused(s, seen.Env.Pool(s), d, rowlock.ErrPrivilege, "SELECT", space)
	})
}

// A trigger that drops or undoes a write makes every answer wrong: Open finds it before anything
// is granted.
func TestOpenRefusesTriggersThatSwallowWrites(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		for _, c := range []struct{ event, table string }{
			{"INSERT", "rowlock"},
			{"UPDATE", "rowlock"},
			{"DELETE", "rowlock"},
			{"UPDATE", "rowlock_floor"},
			{"INSERT", "rowlock_queue"},
			{"DELETE", "rowlock_queue"},
		} {
			if s.Env.Driver == "mysql" && c.event != "UPDATE" {
				continue // it can undo an update, but not drop a row
			}
			s.Part(c.event+" on "+c.table, func(s *servertest.Scene) {
				drop := swallow(s, c.event, c.table)
				defer drop()
				for _, st := range servertest.Strategies {
					refusedWith(s, servertest.Config(servertest.WithStrategy(st)), s.Env.DB, s.Env.Dialect,
						rowlock.ErrCorrupt, "trigger")
				}
			})
		}
	})
}

// The trigger lets every update pass but a release.
func TestOpenRefusesATriggerThatSwallowsReleases(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		s.Exec(s.Env.DB,
			`CREATE FUNCTION `+trigger(s)+
				`() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN CASE WHEN NEW.owner IS NULL THEN NULL ELSE NEW END; END'`)
		s.Cleanup(func() { s.Env.Exec(s, `DROP FUNCTION `+trigger(s)+` CASCADE`) })
		s.Exec(s.Env.DB,
			`CREATE TRIGGER `+trigger(s)+` BEFORE UPDATE ON {rowlock} FOR EACH ROW EXECUTE FUNCTION `+
				trigger(s)+`()`)
		refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrCorrupt, "trigger")
	})
}

func trigger(s *servertest.Scene) string { return s.Env.Dialect.Names().Prefix + "swallow" }

// swallow makes writes of a kind vanish without an error.
func swallow(s *servertest.Scene, event, table string) (drop func()) {
	s.Helper()
	name := trigger(s)
	switch s.Env.Driver {
	case "pgx":
		s.Exec(s.Env.DB,
			`CREATE FUNCTION `+name+`() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`)
		s.Exec(s.Env.DB,
			`CREATE TRIGGER `+name+` BEFORE `+event+` ON {`+table+`} FOR EACH ROW EXECUTE FUNCTION `+name+
				`()`)
		return func() { s.Exec(s.Env.DB, `DROP FUNCTION `+name+`() CASCADE`) }
	case "sqlite":
		s.Exec(s.Env.DB,
			`CREATE TRIGGER `+name+` BEFORE `+event+` ON {`+table+`} BEGIN SELECT RAISE(IGNORE); END`)
	default:
		undo := `SET NEW.owner = OLD.owner, NEW.token = OLD.token, NEW.expires_at = OLD.expires_at`
		if table == "rowlock_floor" {
			undo = `SET NEW.floor = OLD.floor`
		}
		s.Exec(s.Env.DB, `CREATE TRIGGER `+name+` BEFORE UPDATE ON {`+table+`} FOR EACH ROW `+undo)
	}
	return func() { s.Exec(s.Env.DB, `DROP TRIGGER `+name) }
}

// A row policy can hide from one user what another holds.
func TestOpenRefusesRowPoliciesThatHideRows(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock} ENABLE ROW LEVEL SECURITY`)
		refused := func(want error, says ...string) {
			s.Helper()
			refused(s, seen.Env.Pool(s), s.Env.Dialect, want, says...)
		}
		refused(rowlock.ErrPrivilege, "row-level security policy")
		for _, p := range []string{
			// neither renewals nor releases find a row
			`FOR SELECT USING (true)`, `FOR INSERT WITH CHECK (true)`,
		} {
			s.Exec(s.Env.DB, `CREATE POLICY p`+p[4:5]+` ON {rowlock} `+p)
		}
		refused(rowlock.ErrCorrupt, "row policy")
		s.Exec(s.Env.DB, `CREATE POLICY pu ON {rowlock} FOR UPDATE USING (true)`)
		refused(rowlock.ErrCorrupt, "row policy")
		s.Exec(s.Env.DB, `CREATE POLICY pd ON {rowlock} FOR DELETE USING (true)`)
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock_floor} ENABLE ROW LEVEL SECURITY`)
		refused(rowlock.ErrNoSchema, "rowlock_floor has 0 rows")
		s.Exec(s.Env.DB, `CREATE POLICY pf ON {rowlock_floor} USING (true)`)
		seen.Take(seen.Client(), "k")
	})
}

// A held key is not granted to a database user from which its row is hidden.
func TestAHiddenRowIsNotGranted(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		l := s.Take(s.Client(), "secret")
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock} ENABLE ROW LEVEL SECURITY`)
		s.Exec(s.Env.DB, `CREATE POLICY p ON {rowlock} USING (key <> 'secret'::bytea)`)
		for _, st := range servertest.Strategies {
			c := seen.Client(servertest.WithStrategy(st))
			if got, err := c.TryLock(s.Context(), "secret"); err == nil {
				s.Errorf("granted with token %d beside %d", got.Token(), l.Token())
			}
		}
		s.OK(l.Unlock(s.Context()))
	})
}
