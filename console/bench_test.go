package console_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// fill adds keys page/000000 and so on. They are held for an hour, each for a second longer than
// the one before, or shared without an end. No client renews them.
func fill(tb testing.TB, e *testdb.Env, n int, shared bool) {
	tb.Helper()
	at := map[string]string{
		"sqlite": "CAST(unixepoch('subsec') * 1000 AS INTEGER) + %d000",
		"pgx":    "clock_timestamp() + interval '%d second'", "mysql": "UTC_TIMESTAMP(6) + INTERVAL %d SECOND",
	}[e.Driver]
	never := map[string]string{"sqlite": "253370764800000", "pgx": "'9999-01-01 00:00:00+00'"}[e.Driver]
	if never == "" {
		never = "'9999-01-01 00:00:00'"
	}
	for i := 0; i < n; {
		var rows, members []string
		var args []any
		for ; i < n && len(rows) < 500; i++ {
			expires, owner, key := fmt.Sprintf(at, 3600+i), lease.NewOwner(), fmt.Sprintf("page/%06d", i)
			if shared {
				expires, owner = never, lease.ReaderGroup(lease.Token(i+1))
			}
			args = append(args, []byte(key), owner[:])
			rows = append(rows, fmt.Sprintf("(?, ?, 'web-1/4711/orders\tnightly', %d, %s, %s)", i+1,
				fmt.Sprintf(at, -i), expires))
			members = append(members, fmt.Sprintf("(?, ?, ?, %s, %s)", fmt.Sprintf(at, -i), fmt.Sprintf(at, 3600)))
		}
		e.Exec(tb, "INSERT INTO {rowlock} ({key}, owner, note, token, acquired_at, expires_at) VALUES "+
			strings.Join(rows, ", "), args...)
		if !shared {
			continue
		}
		var all []any
		for j := 0; j < len(args); j += 2 {
			all = append(all, args[j], args[j+1], args[j+1])
		}
		e.Exec(tb, "INSERT INTO {rowlock_member} ({key}, reader_group, owner, joined_at, expires_at) VALUES "+
			strings.Join(members, ", "), all...)
	}
}

// BenchmarkFiftyBrowsers has 50 pages open that refresh themselves, on 100,000 held keys or on
// ROWLOCK_CONSOLE_KEYS, and opens others meanwhile.
func BenchmarkFiftyBrowsers(b *testing.B) {
	keys, err := strconv.Atoi(os.Getenv("ROWLOCK_CONSOLE_KEYS"))
	if err != nil {
		keys = 100_000
	}
	for _, k := range testdb.Kinds {
		b.Run(k.Name, func(b *testing.B) {
			e := k.Open(b)
			fill(b, e, keys, false)
			db := &counting{DB: e.DB}
			bed := newBed(b, e, func(o *console.Options) { o.DB, o.Every = db, time.Second })
			bed.server.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 50
			end := bed.browse(50)
			defer end()
			bed.measureAll(b, db, keys)
		})
	}
}

// browse opens pages that refresh themselves, until the end is called.
func (b *bed) browse(viewers int) (end func()) {
	b.Helper()
	var all sync.WaitGroup
	var streams []*stream
	for range viewers {
		s := b.stream("page=held")
		streams = append(streams, s)
		all.Go(func() {
			for s.lines.Scan() {
				continue
			}
		})
	}
	return func() {
		for _, s := range streams {
			s.close()
		}
		all.Wait()
	}
}

func (b *bed) measureAll(bench *testing.B, db *counting, keys int) {
	path := func(query string) func() string {
		var n atomic.Int64
		return func() string { return fmt.Sprintf(query, n.Add(7919)%int64(keys)) }
	}
	bench.Run("streams-alone", func(bench *testing.B) {
		before, began := db.statements.Load(), time.Now()
		time.Sleep(5 * time.Second)
		bench.ReportMetric(float64(db.statements.Load()-before)/time.Since(began).Seconds(), "statements/s")
		bench.ReportMetric(0, "ns/op")
	})
	for _, c := range []struct {
		name    string
		path    func() string
		viewers int
	}{
		{"other-pages", path("?after=page/%06d"), 1},
		{"other-pages-of-key", path("key?k=page/%06d"), 1},
		{"fifty-same", func() string { return "?after=page/050000" }, 50},
		{"fifty-by-age", func() string { return "?sort=age" }, 50},
	} {
		bench.Run(c.name, func(bench *testing.B) { b.measure(bench, db, c.viewers, c.path) })
	}
}

// measure opens pages by so many viewers at a time.
func (b *bed) measure(bench *testing.B, db *counting, viewers int, path func() string) {
	var took []time.Duration
	var size atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	before := db.statements.Load()
	for n := range viewers {
		all.Go(func() {
			for i := n; i < bench.N; i += viewers {
				began := time.Now()
				_, page := b.get(path())
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
				size.Store(int64(len(page)))
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	bench.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
	bench.ReportMetric(float64(db.statements.Load()-before)/bench.Elapsed().Seconds(), "statements/s")
	bench.ReportMetric(float64(size.Load())/1024, "KB/page")
}
