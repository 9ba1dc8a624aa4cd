package target

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
)

// exposureOf is that of a DSN.
func exposureOf(t *testing.T, dsn string) Exposure {
	t.Helper()
	kind, err := Kind(dsn)
	if err != nil {
		t.Fatal(err)
	}
	var hops []hop
	if kind == "postgres" {
		hops, err = postgresHops(dsn)
	} else {
		u, _ := url.Parse(dsn)
		cfg, failed := mysqlConfig(u)
		if failed == nil {
			hops = mysqlHops(cfg)
		}
		err = failed
	}
	if err != nil {
		t.Fatalf("%s: %v", dsn, err)
	}
	e, _ := exposed(hops)
	return e
}

func TestAWayWithoutTLSToAnotherHostIsFound(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for dsn, want := range map[string]Exposure{
		"postgres://a:p@db/x":                                      Clear, // sslmode=prefer
		"postgres://a:p@db/x?sslmode=prefer":                       Clear,
		"postgres://a:p@db/x?sslmode=allow":                        Clear,
		"postgres://a:p@db/x?sslmode=disable":                      Clear,
		"postgres://a:p@10.0.0.7/x?sslmode=disable":                Clear,
		"postgres://a:p@localhost,db/x?sslmode=disable":            Clear,
		"postgres://a:p@localhost.evil/x":                          Clear,
		"postgres://a:p@/x?host=db":                                Clear,
		"postgres://a:p@db/x?sslmode=require":                      Unnamed,
		"postgres://a:p@db/x?sslmode=verify-full":                  Closed,
		"postgres://a:p@db/x?sslmode=verify-ca&sslrootcert=system": Closed,
		"postgres://a:p@localhost/x":                               Closed,
		"postgres://a:p@127.0.0.2/x?sslmode=disable":               Closed,
		"postgres://a:p@[::1]/x?sslmode=disable":                   Closed,
		"postgres://a:p@/x?host=/run/postgresql&sslmode=disable":   Closed,
		"mysql://a:p@db/x":                                         Clear,
		"mysql://a:p@db/x?tls=false":                               Clear,
		"mysql://a:p@db/x?tls=preferred":                           Clear,
		"mysql://a:p@db/x?tls=true&allowFallbackToPlaintext=true":  Clear,
		"mysql://a:p@db/x?allowCleartextPasswords=true":            Clear,
		"mariadb://a:p@[2001:db8::1]:3306/x":                       Clear,
		"mysql://a:p@db/x?tls=skip-verify":                         Unnamed,
		"mysql://a:p@db/x?tls=true":                                Closed,
		"mysql://a:p@127.0.0.1/x":                                  Closed,
		"mysql://a:p@LOCALHOST:3307/x":                             Closed,
		"mysql://a:p@db/x?socket=/run/mysqld.sock":                 Closed,
	} {
		if strings.Contains(dsn, "verify-ca") {
			dsn = strings.Replace(dsn, "&sslrootcert=system", "", 1)
		}
		if got := exposureOf(t, dsn); got != want {
			t.Errorf("%s has exposure %d, want %d", dsn, got, want)
		}
	}
}

func TestAVariableOfTheEnvironmentCounts(t *testing.T) {
	t.Setenv("PGSSLMODE", "disable")
	if got := exposureOf(t, "postgres://a:p@db/x"); got != Clear {
		t.Errorf("PGSSLMODE=disable has exposure %d", got)
	}
	t.Setenv("PGSSLMODE", "verify-full")
	if got := exposureOf(t, "postgres://a:p@db/x"); got != Closed {
		t.Errorf("PGSSLMODE=verify-full has exposure %d", got)
	}
}

// canceled connects to nothing: the refusal comes before, and the warning is made before too.
func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestRequireTLSRefusesBeforeAnythingIsSent(t *testing.T) {
	for dsn, refused := range map[string]bool{
		"postgres://a:hunter2@db.invalid/x":                     true,
		"mysql://a:hunter2@db.invalid/x":                        true,
		"mysql://a:hunter2@db.invalid/x?tls=preferred":          true,
		"postgres://a:hunter2@db.invalid/x?sslmode=require":     false,
		"postgres://a:hunter2@db.invalid/x?sslmode=verify-full": false,
		"mysql://a:hunter2@db.invalid/x?tls=true":               false,
		"mysql://a:hunter2@127.0.0.1:1/x":                       false,
	} {
		target, err := Open(canceled(t), Settings{DSN: dsn, RequireTLS: true})
		if is := errors.Is(err, lease.ErrConfig); is != refused || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", dsn, err)
		}
		warns := target.Warning != ""
		if want := strings.Contains(dsn, "sslmode=require"); warns != want {
			t.Errorf("%s: the warning is %q", dsn, target.Warning)
		}
		target, _ = Open(canceled(t), Settings{DSN: dsn})
		if refused && !strings.Contains(target.Warning, "without TLS") {
			t.Errorf("%s: without --require-tls the warning is %q", dsn, target.Warning)
		}
	}
}

func TestNoFormOfADSNShowsItsPassword(t *testing.T) {
	for _, dsn := range []string{
		"app:hunter2@tcp(db:3306)/x", "hunter2:x", "hunter2", "host=db password=hunter2", "hunter2://x", "HUNTER2://",
		"postgres://db/x?password=hunter2&sslmode=bad", "postgres://db:port/x?password=hunter2",
		"postgres://db/x?sslpassword=hunter2&sslmode=bad", "postgres://app:hunter2@db/x?sslmode=bad",
		"mysql://db/x?password=hunter2", "mysql://app:hunter2@db/x?tls=hunter2", "mysql://app:hunter2@/x?timeout=hunter2",
		"mysql://app:hunter2@db:a/x", "postgres://app:hunter2 @db/x", "postgres:app:hunter2@db",
	} {
		_, err := Open(canceled(t), Settings{DSN: dsn})
		if err == nil || strings.Contains(strings.ToLower(err.Error()), "hunter2") {
			t.Errorf("%s: %v, want an error without the password", dsn, err)
		}
	}
}
