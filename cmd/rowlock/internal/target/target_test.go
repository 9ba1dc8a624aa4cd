package target

import (
	"net/url"
	"strings"
	"testing"
)

func TestAMySQLURLBecomesTheDriversDSN(t *testing.T) {
	for from, want := range map[string]string{
		"mysql://root@db/shop":                           "root@tcp(db:3306)/shop",
		"mysql://app:p%40ss@db:3307/shop":                "app:p@ss@tcp(db:3307)/shop",
		"mariadb://app@localhost/shop?socket=%2Frun%2Fm": "app@unix(/run/m)/shop",
		"mysql://app@db/shop?tls=skip-verify":            "tls=skip-verify",
		"mysql://app@[::1]:3306/":                        "app@tcp([::1]:3306)/",
		"mysql://app@[::1]/shop":                         "app@tcp([::1]:3306)/shop",
		"mysql://app@db:/shop":                           "app@tcp(db:3306)/shop",
		"mysql://app%3Ab:pass@db/shop":                   "app:b:pass@tcp(db:3306)/shop",
		"mysql://app@db/shop?socket=%2Frun%2Fm%40n":      "app@unix(/run/m@n)/shop",
	} {
		u, err := url.Parse(from)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := mysqlConfig(u)
		if err != nil || !strings.Contains(cfg.FormatDSN(), want) {
			t.Errorf("%s becomes %v (%v), want %s in it", from, cfg, err, want)
		}
	}
}

// The driver reads a DSN, in which a user ends at the first colon.
func TestTheUserAndTheServerAreThoseOfTheURL(t *testing.T) {
	u, err := url.Parse("mysql://app%3Ab:pass@db/shop?tls=true")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := mysqlConfig(u)
	if err != nil || cfg.User != "app:b" || cfg.Passwd != "pass" || cfg.TLS == nil || cfg.TLS.ServerName != "db" {
		t.Errorf("%+v (%v), want the user app:b and a certificate of db", cfg, err)
	}
}

func TestAnErrorAboutADSNHasNoPassword(t *testing.T) {
	for _, dsn := range []string{
		"postgres://app:hunter2@db:port/x", "mysql://app:hunter2%zz@db/x", "oracle://app:hunter2@db",
		"mysql://app:hunter2@127.0.0.1:1/x", "postgres://app:hunter2@127.0.0.1:1/x",
	} {
		_, err := Open(t.Context(), Settings{DSN: dsn})
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line without the password", dsn, err)
		}
	}
}
