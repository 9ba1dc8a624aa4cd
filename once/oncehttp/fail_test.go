package oncehttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock/once/oncehttp"
)

// Two handlers that lock each other out: the database ends one of them, which finds the request as
// it came, and nothing of its first answer.
func TestAHandlerThatCollidedIsRunAgain(t *testing.T) {
	each(t, func(s *site) {
		if s.env.Name == "sqlite" {
			s.Skip("one writer at a time: no two handlers are under way at once")
		}
		// Without it InnoDB locks all rows.
		s.env.Exec(s.T, `CREATE INDEX `+s.effects()+`_by_name ON `+s.effects()+` (name)`)
		s.env.Exec(s.T, `INSERT INTO `+s.effects()+` (name) VALUES ('a'), ('b')`)
		var again atomic.Int64
		var both, all sync.WaitGroup
		both.Add(2)
		first := map[string]*sync.Once{"ab": {}, "ba": {}}
		over := make(chan struct{}, 2) // for the one who is run again, who could lock the other out again
		s.answer = func(w http.ResponseWriter, r *http.Request) {
			order, _ := io.ReadAll(r.Body)
			mark := r.Header.Get("X-Mark")
			r.Header.Set("X-Mark", "seen")
			if again.Add(1) == 3 {
				<-over
			}
			for _, name := range strings.Split(string(order), "") {
				_, err := oncehttp.Tx(r.Context()).ExecContext(r.Context(), s.env.SQL(`DELETE FROM `+s.effects()+` WHERE name = ?`), name)
				if err != nil {
					w.Header().Set("X-Failed", "1")
					oncehttp.Fail(r.Context(), fmt.Errorf("delete: %w", err))
					http.Error(w, "no", http.StatusInternalServerError)
					return
				}
				first[string(order)].Do(func() { both.Done(); both.Wait() })
			}
			_, _ = fmt.Fprint(w, string(order), mark)
		}
		for order := range first {
			all.Go(func() {
				r := s.post(order, order)
				over <- struct{}{}
				s.want(r, 200, false)
				if r.body != order || r.Header.Get("X-Failed") != "" {
					s.Errorf("got %q, %v", r.body, r.Header)
				}
			})
		}
		all.Wait()
		s.wantDone(3, 2) // of the site's own effects; both rows are gone
	})
}

// What fails for another reason is rolled back and answered for, whatever the answer; the repeat
// runs it again.
func TestAHandlerThatFailedIsRolledBack(t *testing.T) {
	each(t, func(s *site) {
		for n, c := range []struct {
			status, want int
			fails        error
		}{{404, 404, errors.New("no")}, {500, 500, errors.New("no")}, {200, 503, errors.New("no")}, {201, 201, nil}} {
			s.answer = func(w http.ResponseWriter, r *http.Request) {
				oncehttp.Fail(r.Context(), c.fails)
				oncehttp.Fail(r.Context(), nil)
				w.WriteHeader(c.status)
			}
			r := s.post("key", "")
			s.want(r, c.want, false)
			if c.want == 503 {
				s.wantProblem(r, 503)
			}
			s.wantDone(n+1, n/3)
		}
		s.want(s.post("key", ""), 201, true)
	})
}

func TestAFailureWithoutATransactionIsTheHandlersOwn(t *testing.T) {
	s := onSQLite(t, &oncehttp.Config{Optional: true})
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		oncehttp.Fail(r.Context(), errors.New("no"))
		w.WriteHeader(http.StatusTeapot)
	}
	s.want(s.post("", ""), 418, false)
}
