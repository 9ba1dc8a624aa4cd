package target

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
)

// FuzzDSN: a DSN that cannot be used is refused in one line that wraps ErrConfig, and neither an
// error nor a name has the password in it. The context has ended, so that nothing is dialed.
func FuzzDSN(f *testing.F) {
	for _, s := range [][3]string{
		{"mysql", "", "db/shop"},
		{"postgres", "%zz", "db:port/x"},
		{"mariadb", "", "db?socket=%2Frun"},
		{"mysql", "", "db/x?tls=none"},
		{"mysql", "/", "db/x?collation=\n"},
		{"oracle", "", "db"},
		{"mysql", "", "[::1]/"},
		{"mysql", ":/x", "db/x?tls=none"},
		{"postgres", "@a#b", "db/x"},
		{"postgres", "?a", "db/x"},
	} {
		f.Add(s[0], s[1], s[2], "", "", false)
	}
	f.Fuzz(func(t *testing.T, scheme, password, rest, prefix, schema string, pooled bool) {
		if strings.HasPrefix(scheme, "sqlite") {
			return // a file would be opened
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := Settings{DSN: scheme + "://app:hunter2" + password + "@" + rest, Prefix: prefix, Schema: schema, Pooled: pooled}
		got, err := Open(ctx, s)
		if err == nil {
			t.Fatalf("%q is open, although the context has ended", s.DSN)
		}
		wantOneLine(t, s.DSN, err)
		var unreached *UnreachableError
		if !errors.Is(err, lease.ErrConfig) && !errors.As(err, &unreached) {
			t.Errorf("%q: %v is neither ErrConfig nor an UnreachableError", s.DSN, err)
		}
		if got != nil && strings.Contains(got.Name, "hunter2") {
			t.Errorf("%q is called %q", s.DSN, got.Name)
		}
	})
}

func wantOneLine(t *testing.T, dsn string, err error) {
	if says := err.Error(); strings.ContainsAny(says, "\n\r") || strings.Contains(says, "hunter2") && !inHost(dsn) {
		t.Errorf("%q: %s", dsn, says)
	}
}

// inHost reports whether the DSN has its password where no DSN has one, as in its host or its
// query.
func inHost(dsn string) bool {
	u, err := url.Parse(dsn)
	if err != nil {
		return false
	}
	secret, _ := u.User.Password()
	return !strings.Contains(secret, "hunter2")
}
