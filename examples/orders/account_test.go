package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

const someOrder = `{"customer":"Ada","lines":[{"sku":"tea","quantity":1}]}`

// Bob knows Ada's key and her order, and sends both. He gets an order of his own, and cannot read
// hers.
func TestAnotherAccountWithTheSameKeyAndOrderIsNotAnsweredWithTheFirsts(t *testing.T) {
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			s := program.NewServer(t, binary, program.Fresh(t, k))
			hers, his := made(t, s, ada), made(t, s, bob)
			if hers == his {
				t.Errorf("both were answered with order %s", hers)
			}
			if again := made(t, s, ada); again != hers {
				t.Errorf("Ada's repeat was answered with order %s, and not with hers, %s", again, hers)
			}
			for _, c := range []struct {
				secret, order string
				status        int
			}{
				{ada, hers, http.StatusOK},
				{bob, his, http.StatusOK},
				{ada, his, http.StatusNotFound},
				{bob, hers, http.StatusNotFound},
			} {
				if r := get(t, s, c.secret, "/orders/"+c.order); r.status != c.status {
					t.Errorf("%s reads order %s: %+v, want %d", c.secret, c.order, r, c.status)
				}
			}
			if n := count(t, s.Source); n != 2 {
				t.Errorf("%d orders, want 2", n)
			}
		})
	}
}

// made posts the one order under the one key and returns the id in the answer.
func made(t *testing.T, s *program.Server, secret string) string {
	t.Helper()
	r, err := post(t.Context(), http.DefaultClient, s.URL, secret, "7f3a", someOrder)
	var o Order
	if err == nil {
		err = json.Unmarshal([]byte(r.body), &o)
	}
	if err != nil || r.status != http.StatusCreated || o.ID == "" {
		t.Fatalf("%s: %+v, %v", secret, r, err)
	}
	return o.ID
}

func TestWithoutTheSecretOfAnAccountNothingIsDone(t *testing.T) {
	t.Parallel()
	s := program.NewServer(t, binary, program.Fresh(t, testdb.Kinds[0]))
	for _, secret := range []string{"", "ada", "mallory"} {
		r, err := post(t.Context(), http.DefaultClient, s.URL, secret, "7f3a", someOrder)
		if err != nil || r.status != http.StatusUnauthorized {
			t.Errorf("%q: %+v, %v", secret, r, err)
		}
		if r := get(t, s, secret, "/orders/1"); r.status != http.StatusUnauthorized {
			t.Errorf("%q reads: %+v", secret, r)
		}
	}
	if n := count(t, s.Source); n != 0 {
		t.Errorf("%d orders, want none", n)
	}
}
