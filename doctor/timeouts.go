package doctor

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// The bounds that rowlock's own sessions set. A server's that is shorter ends what rowlock would
// have waited for.
const (
	ownStatement = 5 * time.Second
	ownLock      = time.Second
	ownIdle      = 4 * time.Second
)

// timeouts finds limits of the server under which renewals and fenced transactions end early.
func timeouts(_ context.Context, x *examiner) (f Finding, err error) {
	switch x.d.Name() {
	case "postgres":
		x.timeoutsOfPostgres(&f)
	case "mysql":
		x.timeoutsOfMySQL(&f)
	default:
		x.timeoutsOfSQLite(&f)
	}
	f.fine("no limit ends what rowlock waits for")
	return f, nil
}

// limit is a setting that ends something.
type limit struct {
	name  string
	least time.Duration
	// ends is what a shorter one ends in the application's transactions.
	ends string
}

var limitsOfPostgres = []limit{
	{
		"statement_timeout", ownStatement, "a fence that waits for another transaction, a migration or " +
			"any slow statement ends with error 57014",
	},
	{
		"lock_timeout", ownLock / 2, "a fence that waits for another transaction ends with error 55P03",
	},
	{
		"idle_in_transaction_session_timeout", ownIdle, "a fenced transaction that works elsewhere for " +
			"so long loses its connection, and is rolled back",
	},
	{
		"idle_session_timeout", time.Minute, "idle pinned connections lose their connection, and the next call or " +
			"renewal connects anew",
	},
	{
		"transaction_timeout", ownStatement, "a fenced transaction that takes so long loses its " +
			"connection, and is rolled back",
	},
}

func (x *examiner) timeoutsOfPostgres(f *Finding) {
	for _, l := range limitsOfPostgres {
		for _, s := range x.settings(l.name) {
			f.saw(s.where(), s.value, s.from)
			d, ok := duration(s.value)
			if !ok || d == 0 || d >= l.least {
				continue
			}
			f.raise(Warning, s.where()+" is "+s.value+": "+l.ends+
				"; rowlock's own statements have limits of their own", x.set(s, "'"+short(l.least)+"'"))
		}
	}
}

func (x *examiner) timeoutsOfMySQL(f *Finding) {
	x.seconds(f, "max_statement_time", 5, Critical, "every statement that takes longer ends with error "+
		"1969, renewals too, and locks are lost")
	x.seconds(f, "idle_transaction_timeout", 4, Warning, "a fenced transaction that works elsewhere for "+
		"so long loses its connection, and is rolled back")
	x.seconds(f, "idle_write_transaction_timeout", 4, Warning, "a fenced transaction that works "+
		"elsewhere for so long loses its connection, and is rolled back")
	x.seconds(f, "wait_timeout", 60, Warning, "idle pinned connections lose their connection, and the next call or "+
		"renewal connects anew")
	x.seconds(f, "innodb_lock_wait_timeout", 1, Warning, "a fence that waits for another transaction "+
		"ends with error 1205")
	if s := x.first("max_execution_time"); s.name != "" {
		f.saw(s.name, s.value, s.from)
		if ms, err := strconv.Atoi(s.value); err == nil && ms > 0 && ms < 1000 {
			f.raise(Warning, fmt.Sprintf("max_execution_time is %d ms: a SELECT that takes longer ends with "+
				"error 3024, and rowlock's reads of many keys are among them", ms), x.set(s, "0"))
		}
	}
}

// seconds judges a limit that MySQL and MariaDB write in seconds. 0 is none.
func (x *examiner) seconds(f *Finding, name string, least float64, severity Severity, ends string) {
	s := x.first(name)
	if s.name == "" {
		return
	}
	f.saw(s.name, s.value, s.from)
	if v, err := strconv.ParseFloat(s.value, 64); err == nil && v > 0 && v < least {
		f.raise(severity, fmt.Sprintf("%s is %gs: %s", name, v, ends),
			x.set(s, strconv.FormatFloat(least, 'f', -1, 64)))
	}
}

func (x *examiner) timeoutsOfSQLite(f *Finding) {
	s := x.first("busy_timeout")
	f.saw(s.name, s.value+" ms", s.from)
	switch ms, err := strconv.Atoi(s.value); {
	case err != nil:
	case ms == 0:
		f.raise(Critical, "busy_timeout is 0: a write that meets another fails at once with SQLITE_BUSY, "+
			"and Open refuses the pool", x.set(s, "5000"))
	case ms < 1000:
		f.raise(Warning, fmt.Sprintf("busy_timeout is %d ms: a write that waits longer for another fails "+
			"with SQLITE_BUSY", ms), x.set(s, "5000"))
	}
}

// short is a duration as PostgreSQL reads it.
func short(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }
