package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// firstPage is how long a first page may take on a table of ROWLOCK_ROWS rows.
const firstPage = time.Second

// manyRows is how many rows a table has: a power of ten. Times are only judged if it was asked for,
// because servers that other tests use too are slower.
func manyRows(t *testing.T) (rows int, judged bool) {
	t.Helper()
	rows, err := strconv.Atoi(os.Getenv("ROWLOCK_ROWS"))
	if err != nil {
		return 1000, false
	}
	return rows, true
}

// fillRows adds keys row/0000000 and so on, of which held are held for an hour. Of the others, one
// half is released and one half expired.
func (b *bed) fillRows(rows, held int) {
	b.Helper()
	key, owner := "convert_to('row/' || lpad(n::text, 7, '0'), 'UTF8')",
		"decode(lpad(to_hex(n + 1), 32, '0'), 'hex')"
	hour := "interval '1 hour'"
	switch b.Driver {
	case "sqlite":
		key, owner, hour = "CAST(printf('row/%07d', n) AS BLOB)", "unhex(printf('%032x', n + 1))", "3600000"
	case "mysql":
		key, owner = "CONCAT('row/', LPAD(n, 7, '0'))", "UNHEX(LPAD(HEX(n + 1), 32, '0'))"
		hour = "INTERVAL 1 HOUR"
	}
	digits, sum, from := "SELECT 0 AS d", "0", []string{}
	for d := range 9 {
		digits += fmt.Sprintf(" UNION ALL SELECT %d", d+1)
	}
	for n, unit := 0, 1; unit < rows; n, unit = n+1, unit*10 {
		sum += fmt.Sprintf(" + %d * d%d.d", unit, n)
		from = append(from, fmt.Sprintf("digit AS d%d", n))
	}
	every := rows / held
	b.Exec(b.T, fmt.Sprintf(`INSERT INTO {rowlock} ({key}, owner, note, token, acquired_at, expires_at)
		WITH digit AS (%s), number AS (SELECT %s AS n FROM %s)
		SELECT %s, CASE WHEN n %% %d = %d OR n %% 2 = 1 THEN %s END, '', n + 1, {now} - %s,
			CASE WHEN n %% %[5]d = %[6]d THEN {now} + %[8]s ELSE {now} - %[8]s END
		FROM number`, digits, sum, strings.Join(from, ", "), key, every, every/2, owner, hour))
}

// took returns the least time of what is done so often, and the median. What else the machine does
// makes a time longer, and never shorter: the least is judged.
func took(times int, do func()) (least, median time.Duration) {
	var all []time.Duration
	for range times {
		began := time.Now()
		do()
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[0], all[len(all)/2]
}

// ROWLOCK_ROWS=1000000 go test -v -run FirstPage prints how long an operator waits.
func TestAFirstPageOfManyRowsComesSoon(t *testing.T) {
	rows, judged := manyRows(t)
	for _, k := range testdb.Kinds {
		for _, held := range []int{10, rows} {
			t.Run(fmt.Sprintf("%s/%d held", k.Name, held), func(t *testing.T) {
				if !judged { // or one would make the other slow
					t.Parallel()
				}
				b := newBed(t, k.Open(t))
				b.fillRows(rows, held)
				b.firstPages(held, judged)
			})
		}
	}
}

func (b *bed) firstPages(held int, judged bool) {
	b.Helper()
	times := 1
	if judged {
		times = 5
	}
	told := func(what string, least, median time.Duration) {
		b.Logf("%-22s least %4d ms, median %4d ms", what, least.Milliseconds(), median.Milliseconds())
		if judged && least > firstPage {
			b.Errorf("%s takes %s, want at most %s", what, least, firstPage)
		}
	}
	for _, args := range [][]string{{"ls"}, {"ls", "-o", "json"}, {"ls", "row/"}, {"ls", "row/0000"}, {"ls", "--all"}} {
		var out string
		least, median := took(times, func() {
			var said string
			var code int
			if out, said, code = b.does(args...); code != 0 {
				b.Errorf("rowlock %q exits with %d: %s", args, code, said)
			}
		})
		told("rowlock "+strings.Join(args, " "), least, median)
		if n := strings.Count(out, "row/"); n < min(held, 100) && !strings.Contains(args[len(args)-1], "0000") {
			b.Errorf("rowlock %q lists %d keys, want %d: %s", args, n, min(held, 100), out)
		}
	}
	p := b.opens()
	p.open()
	for _, order := range []string{"key", "age", "expiry"} {
		prefix := "row/0"
		least, median := took(times, func() {
			// A view that was not read before: viewers of one view share a reading.
			prefix = prefix[:len(prefix)-1]
			at := "?prefix=" + prefix + "&sort=" + order
			if code, text := p.gets(at, nil); code != http.StatusOK {
				b.Errorf("/%s is answered with %d: %s", at, code, text)
			}
		})
		told("console, by "+order, least, median)
	}
	who := "process?k=w"
	least, median := took(times, func() {
		who += "w"
		if code, text := p.gets(who, nil); code != http.StatusOK {
			b.Errorf("/%s is answered with %d: %s", who, code, text)
		}
	})
	told("console, a process", least, median)
}
