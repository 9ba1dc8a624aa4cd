package corrupt

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// keeping has a trigger keep each row with this note as it is, without an error.
func (b *beside) keeping(note string) {
	on, function := b.env.Table("rowlock"), b.env.Dialect.Names().Prefix+"keeper"
	if b.env.Driver == "pgx" {
		b.Cleanup(func() { b.env.Exec(b, `DROP FUNCTION `+function+` CASCADE`) })
	}
	for _, q := range map[string][]string{
		"sqlite": {`CREATE TRIGGER keeper BEFORE UPDATE ON ` + on + ` WHEN OLD.note = '` + note +
			`' BEGIN SELECT RAISE(IGNORE); END`},
		"mysql": {`CREATE TRIGGER ` + b.env.Table("rowlock_keeper") + ` BEFORE UPDATE ON ` + on +
			` FOR EACH ROW BEGIN IF OLD.note = '` + note + `' THEN SET NEW.owner = OLD.owner, NEW.token = OLD.token,
				NEW.note = OLD.note, NEW.acquired_at = OLD.acquired_at, NEW.expires_at = OLD.expires_at; END IF; END`},
		"pgx": {
			`CREATE FUNCTION ` + function + `() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN IF OLD.note = '` + note + `' THEN RETURN NULL; END IF; RETURN NEW; END $$`,
			`CREATE TRIGGER keeper BEFORE UPDATE ON ` + on + ` FOR EACH ROW EXECUTE FUNCTION ` + function + `()`,
		},
	}[b.env.Driver] {
		b.env.Exec(b, q)
	}
}

// A row that a trigger keeps as it is looks like one that another transaction has locked. The
// caller is told of the trigger, and not that the key is held.
func TestAKeyWhoseRowATriggerKeepsIsNotToldAsHeld(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := storeOn(t, e)
		for _, key := range []string{"k", "l"} {
			e.Exec(t, `INSERT INTO {rowlock} ({key}, token, owner, acquired_at, expires_at, note, placement)
				VALUES (?, 7, ?, `+past[e.Driver]+`, `+past[e.Driver]+`, 'kept', 0)`, []byte(key), []byte("0123456789abcdef"))
		}
		(&beside{T: t, env: e}).keeping("kept")
		request := func(keys ...string) (out []lease.AcquireRequest) {
			for _, key := range keys {
				out = append(out, lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl})
			}
			return out
		}
		for how, ask := range map[string]func() ([]lease.Acquired, error){
			"one": func() ([]lease.Acquired, error) { return s.Acquire(t.Context(), request("k")) },
			"all": func() ([]lease.Acquired, error) { return s.AcquireAll(t.Context(), request("k", "l")) },
			"any": func() ([]lease.Acquired, error) { return s.AcquireAny(t.Context(), request("k"), 1) },
		} {
			got, err := ask()
			if err == nil && len(got) > 0 {
				err = got[0].Err
			}
			if !errors.Is(err, lease.ErrCorrupt) || !strings.Contains(err.Error(), "a trigger") {
				t.Errorf("%s: told %+v, %v", how, got, err)
			}
		}
	})
}
