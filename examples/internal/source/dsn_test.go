package source

import "testing"

func TestMySQLSource(t *testing.T) {
	t.Parallel()
	for rest, want := range map[string]string{
		"me:p%40ss%2F@db.example/app":       "me:p@ss/@tcp(db.example:3306)/app",
		"me@[::1]:3307/app?tls=skip-verify": "me@tcp([::1]:3307)/app?tls=skip-verify",
		"root@tcp(127.0.0.1:20235)/test":    "root@tcp(127.0.0.1:20235)/test",
		"root@unix(/tmp/s.sock)/test":       "root@unix(/tmp/s.sock)/test",
	} {
		if got, err := mysqlDSN(rest); err != nil || got != want {
			t.Errorf("mysqlDSN(%q) = %q, %v, want %q", rest, got, err, want)
		}
	}
}
