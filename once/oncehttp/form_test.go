package oncehttp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

const formType = "application/x-www-form-urlencoded"

// form sends a body of a kind under a key.
func (s *site) form(path, kind, body string) reply {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), "POST", s.url+path, strings.NewReader(body))
	s.ok(err)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Idempotency-Key", "key")
	return s.do(req)
}

func (s *site) answerForm() {
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		s.runs.Add(1)
		_, _ = fmt.Fprintf(w, "%s for %s", r.FormValue("item"), r.FormValue("account"))
	}
}

var apple = url.Values{"item": {"apple"}, "account": {"7"}}.Encode()

// Tenant and Lock may parse the form, be it only for what the query has, and the handler has it
// whole.
func TestTheFormIsThereForAll(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		var locked string
		s := newSite(t, e, &oncehttp.Config{
			Tenant: func(r *http.Request) string { return r.FormValue("of") },
			Lock: func(_ context.Context, r *http.Request) (oncehttp.Lock, error) {
				locked = r.FormValue("account")
				return nil, nil
			},
		})
		s.answerForm()
		if r := s.form("/?of=a", formType, apple); r.body != "apple for 7" || locked != "7" {
			s.Errorf("the handler answered %q, and Lock saw %q", r.body, locked)
		}
	})
}

// A handler around Wrap that parses the form leaves no body.
func TestAFormThatWasParsedBeforeTellsRequestsApart(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := newSite(t, e, nil)
		s.around = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			_ = r.FormValue("csrf")
			next.ServeHTTP(w, r)
		}
		s.answerForm()
		if r := s.form("/", formType, apple); r.body != "apple for 7" {
			s.Errorf("the handler answered %q", r.body)
		}
		s.want(s.form("/", formType, apple), http.StatusOK, true)
		s.want(s.form("/", formType, strings.ReplaceAll(apple, "apple", "pear")), http.StatusUnprocessableEntity, false)

		var files bytes.Buffer
		parts := multipart.NewWriter(&files)
		file, err := parts.CreateFormFile("photo", "a.png")
		s.ok(err)
		_, err = file.Write([]byte("png"))
		s.ok(err)
		s.ok(parts.Close())
		r := s.form("/", parts.FormDataContentType(), files.String())
		if r.StatusCode != http.StatusInternalServerError || !strings.Contains(r.body, "read it within Wrap") {
			s.Errorf("a form with files: %d %q", r.StatusCode, r.body)
		}
	})
}

// A length that a handler has declared is not that of the body it has written.
func TestALengthWithoutItsBodyIsNotKept(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := newSite(t, e, nil)
		s.answer = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "10") }
		s.want(s.form("/", formType, apple), http.StatusOK, false)
		s.want(s.form("/", formType, apple), http.StatusOK, true)
	})
}

// The answer to HEAD has the length of the body that it leaves out.
func TestHeadKeepsTheLengthOfTheBody(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := newSite(t, e, nil)
		s.answer = func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "x.txt", time.Time{}, strings.NewReader("eleven byte"))
		}
		for range 2 {
			req, err := http.NewRequestWithContext(s.Context(), "HEAD", s.url+"/", nil)
			s.ok(err)
			req.Header.Set("Idempotency-Key", "head")
			res, err := http.DefaultClient.Do(req)
			s.ok(err)
			_, _ = io.Copy(io.Discard, res.Body)
			s.ok(res.Body.Close())
			if res.ContentLength != 11 {
				s.Errorf("HEAD says a length of %d", res.ContentLength)
			}
		}
	})
}
