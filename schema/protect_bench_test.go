package schema_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/schema"
)

// What a protection costs: docs/protect.md has the figures. Rounds without and with it take turns,
// and each is a whole transaction by DoTx, whose commit is durable.
//
//	go test ./schema -run '^$' -bench Protect -benchtime 200x
func BenchmarkProtect(b *testing.B) {
	for _, c := range []struct{ name, create, key, lock, where string }{
		{"one row", guarded, "account/{id}", "account/1", " WHERE id = 1"},
		{"one row, any of 1,000 keys", guarded, "account/*", "account/500", " WHERE id = 1"},
		{"10,000 rows, one key", guarded, "all", "all", ""},
		{"10,000 rows, a column's key", guarded, "tenant/{tenant}", "tenant/1", ""},
		{"10,000 rows, partitioned", partitioned, "all", "all", ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			v := openVault(b, c.create, `ALTER TABLE account ADD tenant int NOT NULL DEFAULT 1`)
			if c.create == partitioned {
				exec(b, v.db, `CREATE TABLE account_rest PARTITION OF account DEFAULT`)
			}
			exec(b, v.db, `INSERT INTO account SELECT n FROM generate_series(4, 10000) AS n`)
			exec(b, v.db, strings.ReplaceAll(c.create, "account", "plain"))
			exec(b, v.db, `ALTER TABLE plain ADD tenant int NOT NULL DEFAULT 1`)
			if c.create == partitioned {
				exec(b, v.db, `CREATE TABLE plain_rest PARTITION OF plain DEFAULT`)
			}
			exec(b, v.db, `INSERT INTO plain SELECT * FROM account`)
			if strings.HasSuffix(c.key, "*") {
				exec(b, v.db, `INSERT INTO rowlock (key, token, acquired_at, expires_at)
					SELECT convert_to('account/' || n, 'UTF8'), 1, now(), now() FROM generate_series(1, 1000) AS n`)
			}
			v.protect(schema.Protection{Table: "account", Key: c.key})
			v.compares(b, c.lock, c.where, func(i int) {
				if i%20 == 0 {
					exec(b, v.db, `VACUUM ANALYZE account, plain, rowlock`)
				}
			})
		})
	}
}

// compares reports what DoTx of an UPDATE takes of account, which is protected, and of plain, in
// turns.
func (v vault) compares(b *testing.B, lock, where string, before func(i int)) {
	b.Helper()
	var took [2][]time.Duration
	for i := range b.N {
		before(i)
		for on, table := range []string{"plain", "account"} {
			began := time.Now()
			err := v.locks.DoTx(b.Context(), lock, func(ctx context.Context, tx *sql.Tx) error {
				return must(tx.ExecContext(ctx, "UPDATE "+table+" SET balance = balance + 1"+where))
			})
			if err != nil {
				b.Fatal(err)
			}
			took[on] = append(took[on], time.Since(began))
		}
	}
	without, with := median(took[0]), median(took[1])
	b.ReportMetric(float64(without.Microseconds()), "µs/without")
	b.ReportMetric(float64(with.Microseconds()), "µs/with")
	b.ReportMetric(float64(with)/float64(without), "ratio")
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
