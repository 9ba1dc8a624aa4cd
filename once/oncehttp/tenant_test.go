package oncehttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

// accounts are those of a site, by their secrets.
var accounts = map[string]string{"Bearer ada": "a", "Bearer bob": "b", "Bearer long": strings.Repeat("t", 256)}

func accountOf(r *http.Request) string { return accounts[r.Header.Get("Authorization")] }

// postAs sends the same request as every other call, under an account's secret.
func (s *site) postAs(secret string) reply {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), "POST", s.url+"/orders", strings.NewReader("body"))
	s.ok(err)
	req.Header.Set("Idempotency-Key", "key")
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	return s.do(req)
}

// answerSecret answers each run with something that only its account may read.
func (s *site) answerSecret() {
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "secret %d of %s", s.runs.Load(), accountOf(r))
	}
}

func TestAReplayNeverCrossesAccounts(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := newSite(t, e, &oncehttp.Config{Tenant: accountOf})
		s.answerSecret()
		for _, c := range []struct {
			secret, body string
			replayed     bool
		}{
			{"ada", "secret 1 of a", false},
			{"bob", "secret 2 of b", false},
			{"ada", "secret 1 of a", true},
			{"bob", "secret 2 of b", true},
		} {
			r := s.postAs(c.secret)
			s.want(r, 200, c.replayed)
			if r.body != c.body {
				s.Errorf("%s was answered %q, want %q", c.secret, r.body, c.body)
			}
		}
		s.wantDone(2, 2)
	})
}

// A Tenant that is asked before the request is authenticated must not make all clients one account.
func TestARequestWithoutAnAccountIs403(t *testing.T) {
	s := onSQLite(t, &oncehttp.Config{Tenant: accountOf, Optional: true})
	s.wantProblem(s.postAs(""), 403)
	s.wantProblem(s.postAs("mallory"), 403)
	s.wantDone(0, 0)
	s.wantProblem(s.postAs("long"), 400)
	s.want(s.post("", ""), 201, false) // without a key there is nothing to share
	s.wantDone(1, 0)
}

func TestGuestsShareTheirKeysIfTheApplicationSaysSo(t *testing.T) {
	s := onSQLite(t, &oncehttp.Config{Tenant: func(r *http.Request) string {
		if account := accountOf(r); account != "" {
			return account
		}
		return oncehttp.SharedKeys(r)
	}})
	s.answerSecret()
	s.want(s.postAs("ada"), 200, false)
	s.want(s.postAs(""), 200, false)
	s.want(s.postAs("mallory"), 200, true)
	s.wantDone(2, 2)
	e, n := s.env, 0
	s.ok(e.DB.QueryRow(e.SQL(`SELECT COUNT(*) FROM {rowlock_once} WHERE tenant = ?`), []byte{}).Scan(&n))
	if n != 1 {
		t.Errorf("%d rows are of no tenant, want 1", n)
	}
}

func TestNewNeedsToBeToldWhoseTheKeysAre(t *testing.T) {
	s := onSQLite(t, nil)
	for _, cfg := range []*oncehttp.Config{nil, {}, {Optional: true}} {
		h, err := oncehttp.New(s.once, cfg)
		if !errors.Is(err, lease.ErrConfig) || h != nil {
			t.Errorf("got %v, %v", h, err)
		}
		for _, cure := range []string{"Config.Tenant is nil", "account", "oncehttp.SharedKeys"} {
			if err == nil || !strings.Contains(err.Error(), cure) {
				t.Errorf("%v does not say %q", err, cure)
			}
		}
	}
}
