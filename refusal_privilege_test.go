package rowlock_test

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
)

// What a user of the database needs, table by table: all of it, and nothing else.
var needed = map[string][]string{
	"rowlock":       {"SELECT", "INSERT", "UPDATE", "DELETE"},
	"rowlock_floor": {"SELECT", "UPDATE"},
	"rowlock_queue": {"SELECT", "INSERT", "UPDATE", "DELETE"},
	"rowlock_meta":  {"SELECT"},
}

func (s *scene) grant(user string) {
	s.Helper()
	for table, rights := range needed {
		s.exec(s.env.DB, `GRANT `+strings.Join(rights, ", ")+` ON {`+table+`} TO `+user)
	}
}

func TestOpenRefusesAUserWhoLacksAPrivilege(t *testing.T) {
	eachServer(t, func(s *scene) {
		name, seen := s.user()
		s.grant(name)
		for table, rights := range needed {
			for _, right := range rights {
				s.exec(s.env.DB, `REVOKE `+right+` ON {`+table+`} FROM `+name)
				s.part(right+" on "+table, func(s *scene) {
					want, says := rowlock.ErrPrivilege, []string{right, s.env.Dialect.Names().Prefix + table}
					if len(rights) == 1 && s.env.Driver == "mysql" {
						want, says = rowlock.ErrNoSchema, []string{"privileges", s.env.Table(table)} // it shows nobody a table they have no right to
					}
					for _, st := range bothStrategies {
						s.refusedWith(sceneConfig(withStrategy(st)), seen.env.Pool(s), s.env.Dialect, want, says...)
					}
				})
				s.exec(s.env.DB, `GRANT `+right+` ON {`+table+`} TO `+name)
			}
		}
		if n := s.rows(); n != 0 {
			s.Errorf("%d rows after nothing but refusals", n)
		}
	})
}

// The rights that Open asks for are all that a client ever uses.
func TestTheNeededPrivilegesAreEnough(t *testing.T) {
	eachServer(t, func(s *scene) {
		name, seen := s.user()
		s.grant(name)
		table := s.ledger()
		s.exec(s.env.DB, `GRANT SELECT, UPDATE ON `+table+` TO `+name)
		seen.T = s.T
		seen.cycle(seen.env.Pool(s), table)
	})
}

func TestOpenRefusesAUserWithoutAnyPrivilege(t *testing.T) {
	eachServer(t, func(s *scene) {
		_, seen := s.user()
		says := "SELECT, INSERT, UPDATE, DELETE on " + s.env.Table("rowlock")
		if s.env.Driver == "mysql" {
			says = "Access denied" // to the database
		}
		s.refused(seen.env.Pool(s), s.env.Dialect, rowlock.ErrPrivilege, says)
	})
}

func TestOpenRefusesAUserWhoSeesNoTable(t *testing.T) {
	for _, product := range []string{"mysql", "mariadb"} {
		onScene(t, product, func(s *scene) {
			name, seen := s.user()
			table := s.ledger()
			s.exec(s.env.DB, `GRANT SELECT ON `+table+` TO `+name)
			s.refused(seen.env.Pool(s), s.env.Dialect, rowlock.ErrNoSchema, s.env.Table("rowlock"), "check the user's privileges")
		})
	}
}

func TestOpenRefusesAUserWhoMayNotUseTheSchema(t *testing.T) {
	onScene(t, "postgres", func(s *scene) {
		name, seen := s.user()
		space := s.env.Dialect.Names().Prefix + "space"
		s.exec(s.env.DB, `CREATE SCHEMA `+space)
		s.Cleanup(func() { s.env.Exec(s, `DROP SCHEMA `+space+` CASCADE`) })
		d := s.migrated(s.env.Source, dialect.Schema(space)).env.Dialect
		s.refused(seen.env.Pool(s), d, rowlock.ErrPrivilege, "schema "+space)
		s.exec(s.env.DB, `GRANT USAGE ON SCHEMA `+space+` TO `+name)
		s.refused(seen.env.Pool(s), d, rowlock.ErrPrivilege, "SELECT", space)
	})
}

// A trigger that drops or undoes a write makes every answer a lie: found before anything is granted.
func TestOpenRefusesTriggersThatSwallowWrites(t *testing.T) {
	eachScene(t, func(s *scene) {
		for _, c := range []struct{ event, table string }{
			{"INSERT", "rowlock"},
			{"UPDATE", "rowlock"},
			{"DELETE", "rowlock"},
			{"UPDATE", "rowlock_floor"},
			{"INSERT", "rowlock_queue"},
			{"DELETE", "rowlock_queue"},
		} {
			if s.env.Driver == "mysql" && c.event != "UPDATE" {
				continue // it can undo an update, but not drop a row
			}
			s.part(c.event+" on "+c.table, func(s *scene) {
				drop := s.swallow(c.event, c.table)
				defer drop()
				for _, st := range bothStrategies {
					s.refusedWith(sceneConfig(withStrategy(st)), s.env.DB, s.env.Dialect, rowlock.ErrCorrupt, "trigger")
				}
			})
		}
	})
}

// One that lets every update pass but the one that gives a lock back.
func TestOpenRefusesATriggerThatSwallowsReleases(t *testing.T) {
	onScene(t, "postgres", func(s *scene) {
		s.exec(s.env.DB, `CREATE FUNCTION `+s.trigger()+`() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN CASE WHEN NEW.owner IS NULL THEN NULL ELSE NEW END; END'`)
		s.Cleanup(func() { s.env.Exec(s, `DROP FUNCTION `+s.trigger()+` CASCADE`) })
		s.exec(s.env.DB, `CREATE TRIGGER `+s.trigger()+` BEFORE UPDATE ON {rowlock} FOR EACH ROW EXECUTE FUNCTION `+s.trigger()+`()`)
		s.refused(s.env.DB, s.env.Dialect, rowlock.ErrCorrupt, "trigger")
	})
}

func (s *scene) trigger() string { return s.env.Dialect.Names().Prefix + "swallow" }

// swallow makes writes of a kind vanish without an error.
func (s *scene) swallow(event, table string) (drop func()) {
	s.Helper()
	name := s.trigger()
	switch s.env.Driver {
	case "pgx":
		s.exec(s.env.DB, `CREATE FUNCTION `+name+`() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`)
		s.exec(s.env.DB, `CREATE TRIGGER `+name+` BEFORE `+event+` ON {`+table+`} FOR EACH ROW EXECUTE FUNCTION `+name+`()`)
		return func() { s.exec(s.env.DB, `DROP FUNCTION `+name+`() CASCADE`) }
	case "sqlite":
		s.exec(s.env.DB, `CREATE TRIGGER `+name+` BEFORE `+event+` ON {`+table+`} BEGIN SELECT RAISE(IGNORE); END`)
	default:
		undo := `SET NEW.owner = OLD.owner, NEW.token = OLD.token, NEW.expires_at = OLD.expires_at`
		if table == "rowlock_floor" {
			undo = `SET NEW.floor = OLD.floor`
		}
		s.exec(s.env.DB, `CREATE TRIGGER `+name+` BEFORE UPDATE ON {`+table+`} FOR EACH ROW `+undo)
	}
	return func() { s.exec(s.env.DB, `DROP TRIGGER `+name) }
}

// A row policy can hide from one user what another holds.
func TestOpenRefusesRowPoliciesThatHideRows(t *testing.T) {
	onScene(t, "postgres", func(s *scene) {
		name, seen := s.user()
		s.grant(name)
		s.exec(s.env.DB, `ALTER TABLE {rowlock} ENABLE ROW LEVEL SECURITY`)
		refused := func(want error, says ...string) {
			s.Helper()
			s.refused(seen.env.Pool(s), s.env.Dialect, want, says...)
		}
		refused(rowlock.ErrPrivilege, "row-level security policy")
		for _, p := range []string{
			`FOR SELECT USING (true)`, `FOR INSERT WITH CHECK (true)`, // neither renewals nor releases find a row
		} {
			s.exec(s.env.DB, `CREATE POLICY p`+p[4:5]+` ON {rowlock} `+p)
		}
		refused(rowlock.ErrCorrupt, "row policy")
		s.exec(s.env.DB, `CREATE POLICY pu ON {rowlock} FOR UPDATE USING (true)`)
		refused(rowlock.ErrCorrupt, "row policy")
		s.exec(s.env.DB, `CREATE POLICY pd ON {rowlock} FOR DELETE USING (true)`)
		s.exec(s.env.DB, `ALTER TABLE {rowlock_floor} ENABLE ROW LEVEL SECURITY`)
		refused(rowlock.ErrNoSchema, "rowlock_floor has 0 rows")
		s.exec(s.env.DB, `CREATE POLICY pf ON {rowlock_floor} USING (true)`)
		seen.take(seen.client(), "k")
	})
}

// A key that somebody else holds is not granted to a user from whom it is hidden.
func TestAHiddenRowIsNotGranted(t *testing.T) {
	onScene(t, "postgres", func(s *scene) {
		name, seen := s.user()
		s.grant(name)
		l := s.take(s.client(), "secret")
		s.exec(s.env.DB, `ALTER TABLE {rowlock} ENABLE ROW LEVEL SECURITY`)
		s.exec(s.env.DB, `CREATE POLICY p ON {rowlock} USING (key <> 'secret'::bytea)`)
		for _, st := range bothStrategies {
			c := seen.client(withStrategy(st))
			if got, err := c.TryLock(s.Context(), "secret"); err == nil {
				s.Errorf("granted with token %d beside %d", got.Token(), l.Token())
			}
		}
		s.ok(l.Unlock(s.Context()))
	})
}
