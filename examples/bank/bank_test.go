package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
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
	clients   = 12
	transfers = 10 // of each client
	killEvery = 8  // answers
)

// Clients send each transfer until they have an answer, to any replica, some of them twice, while
// one replica after the other is killed and the nights go by.
func TestNoCentIsLostOrMadeAndNoInterestPaidTwiceHoweverOftenAReplicaIsKilled(t *testing.T) {
	for _, k := range testdb.Drawn(t, testdb.Kinds) {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			db := program.Fresh(t, k)
			var replicas []*program.Server
			for range 3 {
				replicas = append(replicas, program.NewServer(t, binary, db, "-night", "1s", "-ttl", "1s"))
			}
			accepted := transferAll(t, replicas, func(answers int64) {
				if answers%killEvery == 0 {
					replicas[answers/killEvery%3].Kill()
				}
			})
			for _, r := range replicas {
				r.Up()
			}
			wantBooks(t, db, accepted)
		})
	}
}

// transferAll sends the transfers of all clients, and returns how many were accepted. It calls
// answered after each.
func transferAll(t *testing.T, replicas []*program.Server, answered func(answers int64)) int64 {
	var answers, accepted atomic.Int64
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for n := range transfers {
				from := rand.N(len(customers))
				to := (from + 1 + rand.N(len(customers)-1)) % len(customers)
				path := "/accounts/" + customers[from] + "/transfers/" + customers[to]
				key, cents := fmt.Sprintf("%d/%d", client, n), 1+rand.N(4000)
				first := send(t, replicas, path, key, cents)
				if again := send(t, replicas, path, key, cents); again != first {
					t.Errorf("%s was answered %d and %d", key, first, again)
				}
				if first == http.StatusCreated {
					accepted.Add(1)
				}
				answered(answers.Add(1))
			}
		})
	}
	all.Wait()
	return accepted.Load()
}

// send sends a transfer until there is an answer. Without one it says 0.
func send(t *testing.T, replicas []*program.Server, path, key string, cents int) int {
	status, err := backoff.Retry(t.Context(), func() (int, error) {
		url := replicas[rand.N(len(replicas))].URL
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(fmt.Sprintf(`{"cents":%d}`, cents)))
		if err != nil {
			return 0, err
		}
		req.Header.Set("Idempotency-Key", key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err == nil && (res.StatusCode >= 500 || res.StatusCode == http.StatusConflict && !strings.Contains(string(body), "refused")) {
			err = fmt.Errorf("%s: %s", res.Status, body)
		}
		return res.StatusCode, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(20*time.Millisecond)), backoff.WithMaxElapsedTime(2*time.Minute))
	if err != nil {
		t.Errorf("transfer %s: %v", key, err)
	}
	return status
}

// wantBooks waits for a night after the last kill, and looks at the books.
func wantBooks(t *testing.T, name string, accepted int64) {
	t.Helper()
	db, err := source.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	one := func(query string) (n int64) {
		t.Helper()
		if err := db.Get(&n, query); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := one(`SELECT MAX(paid) FROM accounts`)
	for one(`SELECT MIN(paid) FROM accounts WHERE name <> 'house'`) <= last {
		select {
		case <-ctx.Done():
			t.Fatal("no night's job has ended for a minute")
		case <-time.After(50 * time.Millisecond):
		}
	}
	if n := one(`SELECT CAST(SUM(cents) AS DECIMAL(20, 0)) FROM accounts`); n != int64(len(customers)*begin) {
		t.Errorf("all accounts together have %d cents, want %d", n, len(customers)*begin)
	}
	if n := one(`SELECT COUNT(*) FROM accounts a WHERE cents <> (SELECT COALESCE(SUM(cents), 0) FROM entries e WHERE e.account = a.name)
		+ CASE WHEN name = 'house' THEN 0 ELSE 10000 END`); n != 0 {
		t.Errorf("%d accounts do not have what their entries add up to", n)
	}
	if n := one(`SELECT COUNT(*) FROM accounts WHERE cents < 0 AND name <> 'house'`); n != 0 {
		t.Errorf("%d customers owe money", n)
	}
	if n := one(`SELECT COUNT(*) FROM entries WHERE why = 'transfer'`); n != 2*accepted {
		t.Errorf("%d transfers were accepted, and there are %d entries of them", accepted, n)
	}
	if n := one(`SELECT COUNT(*) FROM (SELECT account, why FROM entries WHERE why <> 'transfer' AND account <> 'house'
		GROUP BY account, why HAVING COUNT(*) > 1) twice`); n != 0 {
		t.Errorf("interest was paid twice %d times", n)
	}
	t.Logf("%d transfers accepted, %d times interest paid", accepted, one(`SELECT COUNT(*) FROM entries WHERE why <> 'transfer'`)/2)
}
