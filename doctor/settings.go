package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// setting is one value of a setting. One name can have several: that of the session, and the
// defaults of other roles.
type setting struct {
	name, value, from string
	// of is "ROLE x", "DATABASE y" or "ROLE x IN DATABASE y", if it is set there.
	of string
}

func (x *examiner) readSettings(ctx context.Context) (all []setting, err error) {
	rows, err := x.rows(ctx, "settings")
	for _, r := range rows {
		s := setting{name: r[0], value: r[1], from: "SHOW VARIABLES"}
		if len(r) == 4 {
			s.from, s.of = r[2], r[3]
		}
		if x.d.Name() == "postgres" && s.from != "pg_db_role_setting" {
			s.from = "pg_settings, source " + s.from
		}
		all = append(all, s)
	}
	return all, err
}

// settings returns every value of a setting.
func (x *examiner) settings(name string) (found []setting) {
	for _, s := range x.all {
		if s.name == name {
			found = append(found, s)
		}
	}
	return found
}

// setting returns the session's value, or "".
func (x *examiner) setting(name string) string { return x.first(name).value }

// first returns the value of the first of these settings that the server has.
func (x *examiner) first(names ...string) (s setting) {
	for _, name := range names {
		if found := x.settings(name); len(found) > 0 {
			return found[0]
		}
	}
	return s
}

// where is the setting's name, and whose default it is.
func (s setting) where() string {
	if s.of == "" {
		return s.name
	}
	return s.name + " of " + strings.ToLower(s.of[:strings.Index(s.of, " ")]) +
		s.of[strings.Index(s.of, " "):]
}

// set is the statement that gives a setting another value where it is set now.
func (x *examiner) set(s setting, value string) string {
	switch {
	case x.d.Name() == "sqlite":
		return fmt.Sprintf("open the pool with _pragma=%s(%s), or with sqlite.Open", s.name, value)
	case x.mariaDB:
		return fmt.Sprintf("SET GLOBAL %s = %s; -- and in my.cnf, below [mariadbd]", s.name, value)
	case x.d.Name() == "mysql":
		return fmt.Sprintf("SET PERSIST %s = %s;", s.name, value)
	case s.of != "":
		return fmt.Sprintf("ALTER %s SET %s = %s;", s.of, s.name, value)
	case strings.HasSuffix(s.from, "client"):
		return fmt.Sprintf("leave %s out of the DSN, or set it there to %s", s.name, value)
	case strings.HasSuffix(s.from, "session"):
		return fmt.Sprintf("leave out the SET %s that the application sends, or set it to %s", s.name,
			value)
	}
	return fmt.Sprintf("ALTER SYSTEM SET %s = %s; SELECT pg_reload_conf();", s.name, value)
}

// duration reads a time as PostgreSQL writes it: 50ms, 5s, 1min, or a number of milliseconds.
func duration(text string) (time.Duration, bool) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	unit, known := map[string]time.Duration{
		"us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "min": time.Minute,
		"h": time.Hour, "d": 24 * time.Hour,
	}[cmp.Or(text[len(digits):], "ms")]
	return time.Duration(n * float64(unit)), err == nil && known
}

// on reports whether a variable of MySQL is neither missing nor off. MariaDB has more values than
// ON for read_only.
func on(v string) bool { return v != "" && v != "OFF" && v != "0" }
