package corrupt

import (
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// The tables that Migrate makes take a negative token from another hand. Its key is granted neither
// alone nor among others, which are, because the token after it could be one that was granted.
func TestANegativeTokenIsGrantedToNoCaller(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := storeOn(t, e)
		ask := func(keys ...string) []lease.Acquired {
			var reqs []lease.AcquireRequest
			for _, key := range keys {
				reqs = append(reqs, lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl})
			}
			got, err := s.Acquire(t.Context(), reqs)
			if len(keys) == 1 && err != nil { // of one, the error is the call's or the answer's
				got[0].Err, err = err, nil
			}
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		ask("good", "bad")
		for _, then := range []string{"owner = NULL", "expires_at = {now} - {second}"} {
			e.Exec(t, `UPDATE {rowlock} SET owner = NULL WHERE {key} = ?`, []byte("good"))
			e.Exec(t, `UPDATE {rowlock} SET token = -7, `+then+` WHERE {key} = ?`, []byte("bad"))
			if a := ask("bad")[0]; a.Granted || !errors.Is(a.Err, lease.ErrCorrupt) {
				t.Errorf("%s: alone it is answered %+v", then, a)
			}
			got := ask("good", "bad", "new")
			if !got[0].Granted || got[1].Granted || !errors.Is(got[1].Err, lease.ErrCorrupt) || !got[2].Granted {
				t.Errorf("%s: among others it is answered %+v", then, got)
			}
			e.Exec(t, `DELETE FROM {rowlock} WHERE {key} = ?`, []byte("new"))
		}
	})
}
