package settings_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/internal/servertest/settings"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// A setting of a new version of a server has no verdict yet: read what it does, and write one.
func TestEverySettingHasAVerdict(t *testing.T) {
	t.Parallel()
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			all, verdicts := known(t, k)
			for _, s := range all {
				if _, ok := verdicts[strings.ToLower(s.Name)]; !ok {
					t.Errorf("%s has the setting %s, now %q: give it a verdict in %s.list", k.Name, s.Name, s.Now, k.Name)
				}
			}
		})
	}
}

// Under every value of every setting locks do what they do without, or Open refuses with an error
// that names the setting. The settings of a session are made by its DSN or as it is connected, as
// an application or a role does. ROWLOCK_TEST_ONE_AT_A_TIME=1 tries each alone.
func TestNoSettingChangesWhatStatementsMean(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for _, k := range testdb.Drawn(t, testdb.Kinds) {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			all, verdicts := known(t, k)
			kind := func(name, kind string) bool { return verdicts[strings.ToLower(name)].Kind == kind }
			e := k.Open(t)
			tries := &settings.Tries{
				Env:         e,
				Open:        func(ctx context.Context, flips []settings.Flip) (*sql.DB, error) { return flipped(e, flips) },
				Connections: func(name string) bool { return kind(name, "connections") },
				Checked:     func(name string) bool { return kind(name, "checked") },
			}
			alone := os.Getenv("ROWLOCK_TEST_ONE_AT_A_TIME") != ""
			var flips []settings.Flip
			for _, s := range all {
				if kind(s.Name, "unflipped") || !strings.Contains(s.Name, os.Getenv("ROWLOCK_TEST_SETTING")) {
					continue
				}
				taken := takes(t, e, s)
				if !alone {
					taken = few(taken, kind(s.Name, "none"))
				}
				flips = append(flips, taken...)
			}
			if alone {
				for _, f := range flips {
					report(t, tries.Run(t.Context(), []settings.Flip{f}))
				}
				return
			}
			report(t, tries.Run(t.Context(), flips))
		})
	}
}

// takes returns the values of a setting that the server takes.
func takes(t *testing.T, e *testdb.Env, s settings.Setting) (flips []settings.Flip) {
	t.Helper()
	for _, v := range s.Values {
		f := settings.Flip{Name: s.Name, Value: v}
		if err := accepted(e, f); err != nil {
			t.Logf("the server does not take %s: %v", f, err)
			continue
		}
		flips = append(flips, f)
	}
	return flips
}

// few draws some values of the same setting, each of which is a conformance of its own: one of a
// setting that nothing is wrong with, which ROWLOCK_TEST_WHOLE=1 tries with two, as it tries six of
// others. Switches are turned together.
func few(flips []settings.Flip, harmless bool) []settings.Flip {
	most := 3
	if harmless {
		most = 1
	}
	if testdb.Whole() {
		most *= 2
	}
	if len(flips) > 0 && flips[0].Name == "optimizer_switch" {
		all := flips[0]
		for _, f := range flips[1:] {
			all.Value += "," + f.Value
		}
		return []settings.Flip{all}
	}
	rand.Shuffle(len(flips), func(i, j int) { flips[i], flips[j] = flips[j], flips[i] })
	return flips[:min(most, len(flips))]
}

func report(t *testing.T, wrong []error) {
	t.Helper()
	for _, err := range wrong {
		if err != nil {
			t.Error(err)
		}
	}
}

func known(t *testing.T, k testdb.Kind) ([]settings.Setting, map[string]settings.Verdict) {
	t.Helper()
	verdicts, err := settings.Verdicts(k.Name)
	if err != nil {
		t.Fatal(err)
	}
	e := &testdb.Env{Kind: k, Source: k.DSN(t)}
	all, err := settings.Settings(t.Context(), k.Name, e.Pool(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 40 {
		t.Fatalf("%d settings", len(all))
	}
	return all, verdicts
}

// accepted reports whether a session takes a setting.
func accepted(e *testdb.Env, f settings.Flip) error {
	db, err := flipped(e, []settings.Flip{f})
	if err != nil {
		return err
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		_ = db.Close()
		return err
	}
	return cmp.Or(conn.Close(), db.Close())
}

// flipped is a pool on which each connection begins with settings. On PostgreSQL they are also what
// the session resets to, as the settings of a role are.
func flipped(e *testdb.Env, flips []settings.Flip) (*sql.DB, error) {
	source := e.Source
	var sets []string
	for _, f := range slices.SortedStableFunc(slices.Values(flips), charactersLast) {
		switch e.Driver {
		case "pgx":
			source += "&" + url.QueryEscape(f.Name) + "=" + strings.ReplaceAll(url.QueryEscape(f.Value), "+", "%20")
		case "mysql":
			v := "'" + strings.ReplaceAll(f.Value, "'", "''") + "'"
			if number(f.Value) {
				v = f.Value
			}
			sets = append(sets, fmt.Sprintf("SET SESSION %s = %s", f.Name, v))
		default:
			sets = append(sets, fmt.Sprintf("PRAGMA %s = %s", f.Name, f.Value))
		}
	}
	db, err := sql.Open(e.Driver, source)
	if err != nil || sets == nil {
		return db, err
	}
	return sql.OpenDB(connector{db.Driver(), source, sets}), db.Close()
}

// charactersLast is an order in which a setting's value is read before another character set is.
func charactersLast(a, b settings.Flip) int {
	last := func(f settings.Flip) int {
		if strings.HasPrefix(f.Name, "character_set_") || strings.HasPrefix(f.Name, "collation_") {
			return 1
		}
		return 0
	}
	return last(a) - last(b)
}

func number(v string) bool { return v != "" && strings.Trim(v, "-.0123456789") == "" }

// connector makes settings on each connection before anything else uses it.
type connector struct {
	driver driver.Driver
	source string
	sets   []string
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.source)
	if err != nil {
		return nil, err
	}
	for _, set := range c.sets {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, set, nil); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("%s: %w", set, err)
		}
	}
	return conn, nil
}
