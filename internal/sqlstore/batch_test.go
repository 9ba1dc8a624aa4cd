package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// bench is a database with sessions as pinned connections have them.
type bench struct {
	*testdb.Env
	testing.TB
}

func each(t *testing.T, f func(b bench)) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) { f(bench{e, t}) })
}

func (b bench) session() *conn.Session {
	b.Helper()
	pinned, err := b.DB.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	s := conn.NewSession(pinned)
	s.EraAt(0)
	b.Cleanup(s.Discard)
	if err := b.Dialect.Setup(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	return s
}

// apply tries again what lost to another session at the same moment.
func (b bench) apply(s *conn.Session, all bool, changes ...sqlstore.Change) []sqlstore.Applied {
	return b.insist(func() ([]sqlstore.Applied, error) { return b.Dialect.Apply(b.Context(), s, changes, all) })
}

func (b bench) create(s *conn.Session, changes ...sqlstore.Change) []sqlstore.Applied {
	return b.insist(func() ([]sqlstore.Applied, error) { return b.Dialect.Create(b.Context(), s, changes) })
}

func (b bench) insist(f func() ([]sqlstore.Applied, error)) []sqlstore.Applied {
	for range 1000 {
		out, err := f()
		if err == nil {
			return out
		}
		if v := sqlstore.Judge(b.Dialect, err); v.Class != sqlstore.Conflict || b.Driver == "mysql" && strings.Contains(err.Error(), "1213") {
			b.Errorf("%v is %s", err, v.Class)
			return nil
		}
	}
	b.Error("always in conflict")
	return nil
}

func acquire(key string, to lease.Owner) sqlstore.Change {
	return sqlstore.Change{From: lease.Lease{Key: key}, To: to, Note: "to", TTL: time.Minute}
}

func release(key string, from lease.Owner, token lease.Token) sqlstore.Change {
	return sqlstore.Change{From: lease.Lease{Key: key, Owner: from, Token: token}}
}

func handOver(key string, from lease.Owner, token lease.Token, to lease.Owner) sqlstore.Change {
	return sqlstore.Change{From: lease.Lease{Key: key, Owner: from, Token: token}, To: to, Note: "to", TTL: time.Minute}
}

var (
	us, them, next = lease.Owner{1}, lease.Owner{2}, lease.Owner{3}
	alive, expired = strings.Repeat(" + {second}", 60), " - {second}"
)

// row puts a key's row, with token 7, into the table.
func (b bench) row(key string, owner lease.Owner, expiry string, token lease.Token, placement int) {
	b.Helper()
	var o any
	if !owner.IsZero() {
		o = owner[:]
	}
	b.Exec(b, `INSERT INTO {rowlock} ({key}, owner, note, token, acquired_at, expires_at, placement) VALUES (?, ?, 'from', ?, {now}, {now}`+expiry+`, ?)`,
		[]byte(key), o, token, placement)
}

// One list, in which there is everything.
func TestEachChangeOfABatchHasItsOwnOutcome(t *testing.T) {
	nobody := lease.Owner{}
	each(t, func(b bench) {
		cases := []struct {
			owner     lease.Owner
			expiry    string
			token     lease.Token
			placement int
			change    func(key string) sqlstore.Change
			want      sqlstore.Outcome
			after     lease.Owner
			next      lease.Token
		}{
			{nobody, expired, 7, 0, func(k string) sqlstore.Change { return acquire(k, us) }, sqlstore.Done, us, 8},
			{them, expired, 7, 0, func(k string) sqlstore.Change { return acquire(k, us) }, sqlstore.Done, us, 8},
			{us, expired, 7, 0, func(k string) sqlstore.Change { return acquire(k, us) }, sqlstore.Done, us, 8},
			{us, alive, 7, 0, func(k string) sqlstore.Change { return acquire(k, us) }, sqlstore.Found, us, 7},
			{them, alive, 7, 0, func(k string) sqlstore.Change { return acquire(k, us) }, sqlstore.Held, them, 7},
			{nobody, expired, lease.MaxToken, 0, func(k string) sqlstore.Change { return acquire(k, us) }, sqlstore.Alone, nobody, lease.MaxToken},
			{nobody, expired, 7, 9, func(k string) sqlstore.Change { return acquire(k, us) }, sqlstore.Alone, nobody, 7},
			{us, alive, 7, 0, func(k string) sqlstore.Change { return release(k, us, 7) }, sqlstore.Done, nobody, 7},
			{us, expired, 7, 0, func(k string) sqlstore.Change { return release(k, us, 7) }, sqlstore.Done, nobody, 7},
			{us, alive, 7, 0, func(k string) sqlstore.Change { return release(k, us, 0) }, sqlstore.Done, nobody, 7},
			{us, alive, 7, 0, func(k string) sqlstore.Change { return release(k, us, 6) }, sqlstore.Gone, us, 7},
			{them, alive, 7, 0, func(k string) sqlstore.Change { return release(k, us, 6) }, sqlstore.Gone, them, 7},
			{nobody, expired, 7, 0, func(k string) sqlstore.Change { return release(k, us, 7) }, sqlstore.Gone, nobody, 7},
			{us, alive, 7, 9, func(k string) sqlstore.Change { return release(k, us, 7) }, sqlstore.Gone, us, 7},
			{us, alive, 7, 0, func(k string) sqlstore.Change { return handOver(k, us, 7, next) }, sqlstore.Done, next, 8},
			{us, expired, 7, 0, func(k string) sqlstore.Change { return handOver(k, us, 7, next) }, sqlstore.Done, next, 8},
			{us, alive, 8, 0, func(k string) sqlstore.Change { return handOver(k, us, 7, next) }, sqlstore.Gone, us, 8},
			{them, alive, 7, 0, func(k string) sqlstore.Change { return handOver(k, us, 7, next) }, sqlstore.Gone, them, 7},
			{us, alive, lease.MaxToken, 0, func(k string) sqlstore.Change { return handOver(k, us, lease.MaxToken, next) }, sqlstore.Alone, us, lease.MaxToken},
		}
		var changes []sqlstore.Change
		for i, c := range cases {
			key := fmt.Sprintf("k%02d", i)
			b.row(key, c.owner, c.expiry, c.token, c.placement)
			changes = append(changes, c.change(key))
		}
		absent := []sqlstore.Change{acquire("x1", us), release("x2", us, 7), handOver("x3", us, 7, next)}
		out := b.apply(b.session(), false, append(changes, absent...)...)
		for i, c := range cases {
			a := out[i]
			if a.Outcome != c.want || a.Outcome == sqlstore.Done && a.Token != c.next {
				b.Errorf("%s, %d: %+v, want outcome %d, token %d", b.Kind.Name, i, a, c.want, c.next)
			}
			if a.Outcome == sqlstore.Held && (a.Holder.Note != "from" || a.Holder.Remaining < 50*time.Second) {
				b.Errorf("held by %+v", a.Holder)
			}
			b.want(changes[i].From.Key, c.after, c.next)
		}
		for i, want := range []sqlstore.Outcome{sqlstore.Absent, sqlstore.Gone, sqlstore.Gone} {
			if got := out[len(cases)+i].Outcome; got != want {
				b.Errorf("no row, %d: %d, want %d", i, got, want)
			}
		}
	})
}

// want looks at a row.
func (b bench) want(key string, owner lease.Owner, token lease.Token) {
	b.Helper()
	o, n, _ := b.read(key)
	if o != owner || n != token {
		b.Errorf("%s, %q: the row has owner %v, token %d; want %v, %d", b.Kind.Name, key, o, n, owner, token)
	}
}

func (b bench) read(key string) (owner lease.Owner, token lease.Token, note string) {
	b.Helper()
	var o []byte
	err := b.DB.QueryRow(b.SQL(`SELECT owner, token, note FROM {rowlock} WHERE {key} = ?`), []byte(key)).Scan(&o, &token, &note)
	if err != nil {
		b.Errorf("%q: %v", key, err)
	}
	copy(owner[:], o)
	return owner, token, note
}

// fence has tx lock the row of l, of token 7.
func (b bench) fence(tx *sql.Tx, l lease.Lease) {
	b.Helper()
	section, args := "fence", []any{[]byte(l.Key), l.Owner[:], 7}
	if b.Driver == "mysql" {
		section = "fence-lock"
	} else {
		args = append(args, 0) // which leaves the expiry as it is
	}
	if err := tx.QueryRow(b.Dialect.Text(section), args...).Scan(new(int64)); err != nil {
		b.Fatal(err)
	}
}

// A fence may last as long as its transaction; the others of the batch do not wait for it.
func TestABatchPassesByALockedRow(t *testing.T) {
	each(t, func(b bench) {
		// What waits for the row does so each time. A machine that has other work is not late each
		// time.
		for tries := 5; ; tries-- {
			took := b.passesBy()
			if took <= 900*time.Millisecond || b.Failed() {
				return
			}
			if tries == 1 {
				b.Fatalf("it waited: %v", took)
			}
			b.Exec(b, `DELETE FROM {rowlock}`)
		}
	})
}

// passesBy sends a batch beside a transaction that has locked rows of it, and returns how long it
// took.
func (b bench) passesBy() (took time.Duration) {
	b.Helper()
	s := b.session()
	b.row("a", us, alive, 7, 0)
	b.row("b", them, expired, 7, 0)
	b.row("c", us, alive, 7, 0)
	b.row("d", lease.Owner{}, expired, 7, 0)
	tx, err := b.DB.BeginTx(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, l := range []lease.Lease{{Key: "a", Owner: us}, {Key: "b", Owner: them}} {
		b.fence(tx, l)
	}
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	began := time.Now()
	out, err := b.Dialect.Apply(ctx, s, []sqlstore.Change{release("a", us, 7), acquire("b", us), release("c", us, 7), acquire("d", us)}, false)
	took = time.Since(began)
	if b.Kind.Name == "sqlite" { // a file has one lock
		if v := sqlstore.Judge(b.Dialect, err); v.Class != sqlstore.Conflict {
			b.Errorf("%v is %s", err, v.Class)
		}
		return took
	}
	if err != nil {
		b.Fatal(err)
	}
	for i, want := range []sqlstore.Outcome{sqlstore.Alone, sqlstore.Alone, sqlstore.Done, sqlstore.Done} {
		if out[i].Outcome != want {
			b.Errorf("%d: %+v, want outcome %d", i, out[i], want)
		}
	}
	return took
}

// ledger sees that a key has one owner at a time, and each grant the next token.
type ledger struct {
	testing.TB
	mu     sync.Mutex
	held   map[string]bool
	last   map[string]lease.Token
	grants int
}

func (l *ledger) granted(key string, token lease.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[key] || token != l.last[key]+1 {
		l.Errorf("%q: token %d after %d, held %v", key, token, l.last[key], l.held[key])
	}
	l.held[key], l.last[key] = true, token
	l.grants++
}

func (l *ledger) released(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[key] = false
}

func TestOverlappingBatchesExcludeAndDoNotDeadlock(t *testing.T) {
	overlap(t, 40, func() []string {
		return slices.DeleteFunc(numbered(24), func(string) bool { return rand.IntN(2) == 0 })
	}, false)
}

func TestAllOrNothingIsEitherOfThem(t *testing.T) {
	overlap(t, 40, func() []string {
		i := rand.IntN(3)
		return numbered(6)[i : i+3]
	}, true)
}

// overlap has three sessions take keys and give them back. What is given back has always been
// theirs.
func overlap(t *testing.T, rounds int, pick func() []string, all bool) {
	each(t, func(b bench) {
		for _, key := range numbered(24) {
			b.row(key, lease.Owner{}, expired, 0, 0)
		}
		l := &ledger{TB: b, held: make(map[string]bool), last: make(map[string]lease.Token)}
		var wg sync.WaitGroup
		for range 3 {
			s := b.session()
			wg.Go(func() {
				for range rounds {
					b.takeAndGiveBack(s, l, pick(), all)
				}
			})
		}
		wg.Wait()
		if l.grants == 0 {
			b.Error("nothing was granted")
		}
	})
}

func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%02d", i)
	}
	return keys
}

func (b bench) takeAndGiveBack(s *conn.Session, l *ledger, keys []string, all bool) {
	var take, back []sqlstore.Change
	for _, key := range keys {
		take = append(take, acquire(key, lease.NewOwner()))
	}
	for i, a := range b.apply(s, all, take...) {
		if a.Outcome == sqlstore.Done {
			l.granted(keys[i], a.Token)
			back = append(back, release(keys[i], take[i].To, a.Token))
		}
	}
	if all && len(back) != 0 && len(back) != len(keys) {
		b.Errorf("%d of %d keys were granted", len(back), len(keys))
	}
	for _, c := range back {
		l.released(c.From.Key)
	}
	for left := back; len(left) > 0; { // another's statement may have the row locked for a moment
		var again []sqlstore.Change
		for i, a := range b.apply(s, false, left...) {
			switch a.Outcome {
			case sqlstore.Done:
			case sqlstore.Alone:
				again = append(again, left[i])
			default:
				b.Errorf("a lease was given back: %+v", a)
			}
		}
		left = again
	}
}

func TestAllOrNothingLeavesAloneWhatItCannotHaveWhole(t *testing.T) {
	each(t, func(b bench) {
		b.row("a", lease.Owner{}, expired, 7, 0)
		b.row("b", them, alive, 7, 0)
		b.row("c", them, expired, 7, 0)
		out := b.apply(b.session(), true, acquire("a", us), acquire("b", us), acquire("c", us), acquire("d", us))
		for i, want := range []sqlstore.Outcome{sqlstore.Possible, sqlstore.Held, sqlstore.Possible, sqlstore.Absent} {
			if out[i].Outcome != want {
				b.Errorf("%s, %d: %+v, want outcome %d", b.Kind.Name, i, out[i], want)
			}
		}
		b.want("a", lease.Owner{}, 7)
		b.want("c", them, 7)
	})
}

// A row that cannot be had although it looks so is found out only when the others are locked
// already.
func TestAllOrNothingWritesNothingIfOneRowIsLocked(t *testing.T) {
	each(t, func(b bench) {
		if b.Kind.Name == "sqlite" {
			b.Skip("a file has one lock")
		}
		s := b.session()
		b.row("a", lease.Owner{}, expired, 7, 0)
		b.row("b", them, expired, 7, 0)
		tx, err := b.DB.BeginTx(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		b.fence(tx, lease.Lease{Key: "b", Owner: them})
		for i, a := range b.apply(s, true, acquire("a", us), acquire("b", us)) {
			if a.Outcome != sqlstore.Possible {
				b.Errorf("%d: %+v", i, a)
			}
		}
		b.want("a", lease.Owner{}, 7)
	})
}

// Every key is made by one of them, whatever the others answer.
func TestCreatesThatRaceMakeEachRowOnce(t *testing.T) {
	each(t, func(b bench) {
		var mu sync.Mutex
		made := make(map[string]lease.Owner)
		var wg sync.WaitGroup
		for range 3 {
			s := b.session()
			wg.Go(func() {
				for range 8 {
					var changes []sqlstore.Change
					for _, key := range numbered(48) {
						if rand.IntN(2) == 0 {
							changes = append(changes, acquire(key, lease.NewOwner()))
						}
					}
					for i, a := range b.create(s, changes...) {
						if a.Outcome != sqlstore.Done {
							continue
						}
						mu.Lock()
						if _, twice := made[changes[i].From.Key]; twice || a.Token != 1 {
							b.Errorf("%q was made twice: %+v", changes[i].From.Key, a)
						}
						made[changes[i].From.Key] = changes[i].To
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		if len(made) == 0 {
			b.Error("nothing was made")
		}
		for key, owner := range made {
			b.want(key, owner, 1)
		}
	})
}

func TestARowIsMadeAboveItsFloor(t *testing.T) {
	each(t, func(b bench) {
		b.Exec(b, `UPDATE {rowlock_floor} SET floor = 41`)
		b.row("b", them, alive, 7, 0)
		out := b.create(b.session(), acquire("a", us), acquire("b", us))
		if out[0].Outcome != sqlstore.Done || out[0].Token != 42 || out[1].Outcome != sqlstore.Alone {
			b.Errorf("%+v", out)
		}
		b.want("a", us, 42)
		free := acquire("c", lease.Owner{})
		if out := b.create(b.session(), free); out[0].Outcome != sqlstore.Done || out[0].Token != 41 {
			b.Errorf("a free row: %+v", out)
		}
		b.want("c", lease.Owner{}, 41)
	})
}

func TestKeysAndNotesArriveAsTheyAre(t *testing.T) {
	every := make([]byte, 255)
	for i := range every {
		every[i] = byte(255 - i)
	}
	notes := []string{"", `"quoted" \ 'single'`, "new\nline\ttab", "emoji 🔒", strings.Repeat("é", 127)}
	each(t, func(b bench) {
		notes := notes
		if b.Driver == "mysql" { // where notes are bytes
			notes = append(notes, "nul\x00", "no text \xff\xfe")
		}
		s := b.session()
		for i, note := range notes {
			key := string(every[:254]) + string(rune('0'+i))
			a := acquire(key, us)
			a.Note = note
			if out := b.create(s, a); out[0].Outcome != sqlstore.Done {
				b.Fatalf("%+v", out)
			}
			if _, _, got := b.read(key); got != note {
				b.Errorf("%s: created with %q, read %q", b.Kind.Name, note, got)
			}
			h := handOver(key, us, 1, next)
			h.Note = note
			if out := b.apply(s, false, h); out[0].Outcome != sqlstore.Done {
				b.Fatalf("%+v", out)
			}
			if _, _, got := b.read(key); got != note {
				b.Errorf("%s: handed over with %q, read %q", b.Kind.Name, note, got)
			}
		}
	})
}
