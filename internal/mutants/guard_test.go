package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// broken returns the statements that the guards of sql become, by the guard's name.
func broken(sql string) map[string]string {
	out := make(map[string]string)
	for _, g := range guards(sql) {
		out[g.name] = strings.Join(strings.Fields(sql[:g.from]+g.broken+sql[g.to:]), " ")
	}
	return out
}

func TestGuardsAreFound(t *testing.T) {
	for _, c := range []struct {
		why, sql string
		want     map[string]string
	}{
		{
			"each term of a condition but that which names the row",
			"UPDATE t SET a = 1 WHERE key = ? AND owner = ? AND placement = @placement RETURNING 1",
			map[string]string{
				"owner = ?":              "UPDATE t SET a = 1 WHERE key = ? AND (owner = ? OR 1 = 1) AND placement = @placement RETURNING 1",
				"placement = @placement": "UPDATE t SET a = 1 WHERE key = ? AND owner = ? AND (placement = @placement OR 1 = 1) RETURNING 1",
			},
		},
		{
			"an alternative as a whole, and what an arm asks besides",
			"DELETE FROM t WHERE (o IS NULL OR o = $1 AND u = $2)",
			map[string]string{
				"(o IS NULL OR o = ? AND u = ?)": "DELETE FROM t WHERE ((o IS NULL OR o = $1 AND u = $2) OR 1 = 1)",
				"o = ?":                          "DELETE FROM t WHERE (o IS NULL OR (o = $1 OR 1 = 1) AND u = $2)",
				"u = ?":                          "DELETE FROM t WHERE (o IS NULL OR o = $1 AND (u = $2 OR 1 = 1))",
			},
		},
		{
			"the AND of a BETWEEN cuts nothing",
			"SELECT 1 FROM t WHERE a BETWEEN ? AND ? LIMIT 1",
			map[string]string{"a BETWEEN ? AND ?": "SELECT 1 FROM t WHERE (a BETWEEN ? AND ? OR 1 = 1) LIMIT 1"},
		},
		{
			"the clock is now in every dialect, and a comment is no text",
			"UPDATE t SET a = 1 -- WHERE b\nWHERE x >\n  clock_timestamp()",
			map[string]string{"x > now": "UPDATE t SET a = 1 -- WHERE b WHERE (x > clock_timestamp() OR 1 = 1)"},
		},
		{
			"what grows",
			"UPDATE t SET token = r.token + 1, a = a + 1, floor = floor + (? IS NOT NULL)",
			map[string]string{
				"r.token + 1":             "UPDATE t SET token = r.token + 0, a = a + 1, floor = floor + (? IS NOT NULL)",
				"floor + (? IS NOT NULL)": "UPDATE t SET token = r.token + 1, a = a + 1, floor = floor + 0 * (? IS NOT NULL)",
			},
		},
		{
			"bounds, but no aggregate",
			"UPDATE t SET f = max(f, ?), g = least($1, @last_token), h = (SELECT max(x) FROM u)",
			map[string]string{
				"max(f, ?)":             "UPDATE t SET f = (?), g = least($1, @last_token), h = (SELECT max(x) FROM u)",
				"least(?, @last_token)": "UPDATE t SET f = max(f, ?), g = ($1), h = (SELECT max(x) FROM u)",
			},
		},
		{
			"locks",
			"SELECT 1 FROM t FOR NO KEY UPDATE OF r SKIP LOCKED",
			map[string]string{
				"SKIP LOCKED":                        "SELECT 1 FROM t FOR NO KEY UPDATE OF r",
				"FOR NO KEY UPDATE OF r SKIP LOCKED": "SELECT 1 FROM t",
			},
		},
		{
			"the order of a LIMIT, and no other",
			"SELECT 1 FROM (SELECT 1 FROM t ORDER BY a, b LIMIT 1) ORDER BY c",
			map[string]string{"ORDER BY a, b": "SELECT 1 FROM (SELECT 1 FROM t ORDER BY a DESC, b LIMIT 1) ORDER BY c"},
		},
		{
			"the condition of a value that is written",
			"INSERT INTO t SELECT CASE WHEN z THEN 1 END ON CONFLICT (key) DO UPDATE SET a = CASE WHEN x THEN 1 ELSE 2 END WHERE y",
			map[string]string{
				"x": "INSERT INTO t SELECT CASE WHEN z THEN 1 END ON CONFLICT (key) DO UPDATE SET a = CASE WHEN (x OR 1 = 1) THEN 1 ELSE 2 END WHERE y",
				"y": "INSERT INTO t SELECT CASE WHEN z THEN 1 END ON CONFLICT (key) DO UPDATE SET a = CASE WHEN x THEN 1 ELSE 2 END WHERE (y OR 1 = 1)",
			},
		},
	} {
		got := broken(c.sql)
		for name, want := range c.want {
			if got[name] != want {
				t.Errorf("%s: %q becomes\n%s, want\n%s", c.why, name, got[name], want)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: found %q, want %d guards", c.why, slices.Collect(maps.Keys(got)), len(c.want))
		}
	}
}

// MariaDB's clause is none of MySQL's, which would run the same statement again.
func TestAClauseOfOneServerIsItsAlone(t *testing.T) {
	const text = "-- name: a\nSELECT 1 /*M! LOCK IN SHARE MODE */ /*!80000 FOR SHARE OF f */\n"
	for db, want := range map[string]string{
		"mariadb": "SELECT 1 /*M!  */ /*!80000 FOR SHARE OF f */",
		"mysql":   "SELECT 1 /*M! LOCK IN SHARE MODE */ /*!80000  */",
	} {
		got := mutantsIn(db, "a.sql", text)
		if len(got) != 1 || !strings.Contains(got[0].now, want) {
			t.Errorf("%s: %+v, want one with %q", db, got, want)
		}
	}
}

func TestAGuardThatStandsTwiceHasANumber(t *testing.T) {
	var names []string
	for _, g := range guards("SELECT 1 WHERE a = 1 AND EXISTS (SELECT 1 WHERE a = 1)") {
		names = append(names, g.name)
	}
	want := []string{"a = 1", "EXISTS (SELECT 1 WHERE a = 1)", "a = 1 #2"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}
