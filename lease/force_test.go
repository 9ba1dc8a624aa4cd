package lease_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// What the server hides from a user is not made up, and a prepared transaction has no session.
func TestASessionIsDescribedAsFarAsItIsSeen(t *testing.T) {
	seen := lease.Evicted{Session: 7, User: "app", From: "10.0.0.7:5123", Age: 2340 * time.Millisecond}
	local, hidden, prepared := seen, seen, lease.Evicted{Age: time.Hour, Prepared: "ROLLBACK PREPARED 'x'"}
	local.From, hidden.From, hidden.Age = "", "", -1
	for _, c := range []struct {
		of   lease.Evicted
		want string
	}{
		{seen, `session 7 of the user "app" (client 10.0.0.7:5123, transaction 2.3s old)`},
		{local, `session 7 of the user "app" (client local, transaction 2.3s old)`},
		{hidden, `session 7 of the user "app"`},
	} {
		if got := c.of.String(); got != c.want {
			t.Errorf("%+v is described as\n%s, want\n%s", c.of, got, c.want)
		}
	}
	if got := prepared.String(); strings.Contains(got, "session 0") || !strings.HasSuffix(got, prepared.Prepared) {
		t.Errorf("a prepared transaction is described as %s", got)
	}
}
