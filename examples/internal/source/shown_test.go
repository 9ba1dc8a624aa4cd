package source

import (
	"strings"
	"testing"
)

func TestNoPasswordIsShown(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"postgres://me:secret@db.example/app?sslmode=disable": "postgres://…@db.example/app",
		"postgres:///app?user=me&password=secret":             "postgres:///app",
		"mysql://me:secret?@secret@tcp(127.0.0.1:3306)/app":   "mysql://…@tcp(127.0.0.1:3306)/app",
		"my app?100%.db": "my app?100%.db",
	} {
		if got := (&DB{Source: given}).Shown(); got != want || strings.Contains(got, "secret") {
			t.Errorf("%s is shown as %s, want %s", given, got, want)
		}
	}
}
