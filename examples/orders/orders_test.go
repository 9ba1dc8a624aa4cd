package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

const (
	clients = 200
	keys    = 50

	ada, bob = "ada-secret", "bob-secret" // the secrets of two accounts
)

// reply is what a client can tell one answer from another by.
type reply struct {
	status         int
	location, body string
}

// Clients ask again until they have an answer, and the server is killed again and again: while it
// handles a request, and between its commit and its reply.
func TestEveryKeyHasOneOrderAndOneAnswerHoweverOftenTheServerIsKilled(t *testing.T) {
	var unheard atomic.Int64
	t.Cleanup(func() {
		if unheard.Load() == 0 && !t.Failed() {
			t.Error("on no database was the server killed between a commit and its reply")
		}
	})
	for _, k := range testdb.Drawn(t, testdb.Kinds) {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			s := program.NewServer(t, binary, program.Fresh(t, k))
			killer := &killer{server: s, every: 8, heard: make(map[string]reply), first: make(map[string]bool)}
			client := &http.Client{Transport: killer}
			replies := make([]reply, clients)
			var all sync.WaitGroup
			for i := range clients {
				all.Go(func() { replies[i] = order(t, client, s, i%keys) })
			}
			all.Wait()
			s.Up()
			lost := keys - len(killer.first)
			t.Logf("the server was killed %d times while it worked, and %d times when its reply was on its way; of %d keys the first answer was never heard",
				killer.during, killer.after, lost)
			// On one database the moment between commit and reply may be missed each time.
			unheard.Add(int64(lost))
			if killer.during == 0 || killer.after == 0 {
				t.Error("the server was killed too seldom in its work, or when its reply was on its way")
			}
			for i, r := range replies {
				if r != replies[i%keys] {
					t.Errorf("key %d was answered %+v and %+v", i%keys, replies[i%keys], r)
				}
				if said, ok := killer.heard[keyOf(i%keys)]; ok && r != said {
					t.Errorf("key %d was answered %+v, and before the server was killed %+v", i%keys, r, said)
				}
			}
			ids := make(map[string]bool)
			for _, r := range replies[:keys] {
				ids[wantOrder(t, s, r)] = true
			}
			if n := count(t, s.Source); len(ids) != keys || n != keys {
				t.Errorf("%d keys have %d different answers and %d orders", keys, len(ids), n)
			}
		})
	}
}

// order posts one order until there is an answer.
func order(t *testing.T, client *http.Client, s *program.Server, key int) reply {
	body := fmt.Sprintf(`{"customer":"customer %d","lines":[{"sku":"tea","quantity":%d},{"sku":"pot","quantity":1}]}`, key, key+1)
	r, err := backoff.Retry(t.Context(), func() (reply, error) {
		res, err := post(t.Context(), client, s.URL, ada, keyOf(key), body)
		if err == nil && (res.status == http.StatusConflict || res.status >= 500) {
			err = fmt.Errorf("%+v", res)
		}
		return res, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(30*time.Millisecond)), backoff.WithMaxElapsedTime(5*time.Minute))
	if err != nil {
		t.Errorf("key %d: %v", key, err)
	}
	return r
}

func keyOf(n int) string { return fmt.Sprintf("key-%d", n) }

func post(ctx context.Context, client *http.Client, url, secret, key, body string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	return do(client, req)
}

func do(client *http.Client, req *http.Request) (reply, error) {
	res, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	return read(res)
}

func read(res *http.Response) (reply, error) {
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header.Get("Location"), string(body)}, err
}

// wantOrder reads the order of an answer back, and returns its id.
func wantOrder(t *testing.T, s *program.Server, r reply) string {
	t.Helper()
	var o Order
	if err := json.Unmarshal([]byte(r.body), &o); err != nil || r.status != http.StatusCreated || r.location != "/orders/"+o.ID {
		t.Fatalf("answered %+v: %v", r, err)
	}
	found := get(t, s, ada, r.location)
	var back Order
	if err := json.Unmarshal([]byte(found.body), &back); err != nil || found.status != http.StatusOK || back.Total != o.Total || len(back.Lines) != 2 {
		t.Errorf("GET %s: %+v: %v", r.location, found, err)
	}
	return o.ID
}

func get(t *testing.T, s *program.Server, secret, path string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	r, err := do(http.DefaultClient, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func count(t *testing.T, name string) (n int) {
	t.Helper()
	db, err := source.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Get(&n, `SELECT count(*) FROM orders`); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := program.NewServer(t, binary, program.Fresh(t, testdb.Kinds[0]))
	const good = `{"customer":"Ada","lines":[{"sku":"tea","quantity":1},{"sku":"cup","quantity":2}]}`
	for _, c := range []struct {
		what, key, body string
		status          int
	}{
		{"a new order", "a", good, http.StatusCreated},
		{"the same again", "a", good, http.StatusCreated},
		{"another order under the same key", "a", strings.Replace(good, "Ada", "Eve", 1), http.StatusUnprocessableEntity},
		{"no key", "", good, http.StatusBadRequest},
		{"a product that is not there", "b", strings.Replace(good, "cup", "car", 1), http.StatusBadRequest},
		{"no lines", "c", `{"customer":"Ada"}`, http.StatusBadRequest},
		{"no JSON", "d", `customer=Ada`, http.StatusBadRequest},
		{"no order, mended under a new key", "e", good, http.StatusCreated},
		{"more than is read", "f", strings.Repeat(" ", 2<<20) + good, http.StatusRequestEntityTooLarge},
	} {
		r, err := post(t.Context(), http.DefaultClient, s.URL, ada, c.key, c.body)
		if err != nil || r.status != c.status {
			t.Errorf("%s: %+v, %v, want %d", c.what, r, err, c.status)
		}
	}
	if n := count(t, s.Source); n != 2 {
		t.Errorf("%d orders, want 2", n)
	}
	if r := get(t, s, ada, "/orders/nothing"); r.status != http.StatusNotFound {
		t.Errorf("an order that is not there: %+v", r)
	}
}

func TestARepeatSaysThatItIsOne(t *testing.T) {
	t.Parallel()
	s := program.NewServer(t, binary, program.Fresh(t, testdb.Kinds[0]))
	for _, want := range []string{"", "true", "true"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/orders", strings.NewReader(`{"customer":"Ada","lines":[{"sku":"tea","quantity":1}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "k")
		req.Header.Set("Authorization", "Bearer "+ada)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if got := res.Header.Get("Idempotent-Replayed"); res.StatusCode != http.StatusCreated || got != want {
			t.Errorf("%s, Idempotent-Replayed: %q, want %q", res.Status, got, want)
		}
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"extra":                      `orders: "extra" is no flag`,
		"-db no/such/folder/shop.db": "the folder no/such/folder is missing",
		"-db redis://localhost":      "use postgres://, mysql:// or the name of a SQLite file",
	} {
		p := program.New(t, binary, strings.Fields(args)...)
		if _, err := p.Output(); err == nil || !strings.Contains(p.Stderr.String(), want) {
			t.Errorf("%s: %v, said %q", args, err, p.Stderr.String())
		}
	}
}

// Without -db the orders are in a file that is there when the server comes back.
func TestOrdersOutliveTheServerWithoutADatabaseBeingNamed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for range 2 {
		p := program.New(t, binary, "-addr", "127.0.0.1:0")
		p.Dir = folder
		p.InterruptAfter(t, "orders are kept in orders.db\n")
		if !p.ProcessState.Success() || p.Stderr.Len() > 0 {
			t.Errorf("%v, %s", p.ProcessState, p.Stderr.String())
		}
		p.LeavesNothing(t)
	}
	if _, err := os.Stat(filepath.Join(folder, "orders.db")); err != nil {
		t.Error(err)
	}
}

// A deployment starts all servers of a service at once, the first time on an empty database.
func TestServersThatStartAtOnceAllServe(t *testing.T) {
	for _, k := range testdb.Drawn(t, testdb.Kinds) {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			source := program.Fresh(t, k)
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { program.NewServer(t, binary, source) })
			}
			all.Wait()
		})
	}
}
