package table_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// eraWays are the ways in which keys are granted. Each has a row before, in the state that it says,
// and returns the tokens that it was granted.
var eraWays = []struct {
	name, row string
	keys      int
	grant     func(ctx context.Context, s *table.Store, had []lease.Lease) ([]lease.Acquired, error)
}{
	{"acquire an absent key", "absent", 1, acquireThem},
	{"acquire a free row", "free", 1, acquireThem},
	{"acquire an expired row", "expired", 1, acquireThem},
	{"acquire a batch of absent keys", "absent", 3, acquireThem},
	{"acquire a batch", "free", 3, acquireThem},
	{"acquire all", "free", 3, acquireAllOf},
	{"acquire all, of absent keys", "absent", 3, acquireAllOf},
	{"acquire any", "free", 3, takeAny(1)},
	{"acquire any two", "free", 3, takeAny(2)},
	{"hand over", "held", 1, handThemOver},
	{"hand over a batch", "held", 3, handThemOver},
	{"claim an absent key", "absent", 1, claimThem(false)},
	{"claim a free row", "free", 1, claimThem(false)},
	{"claim with a ticket", "free", 1, claimThem(true)},
	{"pass to a ticket", "held", 1, passThem},
}

// A failover to a replica that lagged, or a restore, forgets grants. In whatever way a key is
// granted afterwards, its token is above every one from before.
func TestTokensGrowThoughTheServerHasForgottenGrants(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, strategy := range []adapter.Strategy{adapter.Update, adapter.Insert} {
			r := newRig(t, e, strategy, 2)
			for _, way := range eraWays {
				t.Run(fmt.Sprintf("%v/%s", strategy, way.name), func(t *testing.T) {
					had := r.left(t, way.row, fmt.Sprintf("%v/%s", strategy, way.name), way.keys)
					s := r.afterFailover(t, strategy)
					began := s.Era()
					got, err := way.grant(t.Context(), s, had)
					granted := 0
					for _, a := range got {
						if a.Granted {
							granted++
						}
						if a.Granted && a.Token <= began {
							t.Errorf("token %d; the era begins after %d", a.Token, began)
						}
					}
					if err != nil || granted == 0 {
						t.Errorf("got %+v, %v", got, err)
					}
				})
			}
		}
	})
}

// left leaves n rows in a state.
func (r *rig) left(t *testing.T, state, name string, n int) (had []lease.Lease) {
	t.Helper()
	for i := range n {
		l := lease.Lease{Key: fmt.Sprintf("%s/%d", name, i)}
		if state != "absent" {
			l = hold(t, r.clean, l.Key)
		}
		switch state {
		case "free":
			release(t, r.clean, l)
		case "expired":
			r.Expire(t, l.Key)
		}
		had = append(had, l)
	}
	return had
}

// afterFailover opens the table as a replica has it that was promoted, and checks that an era has
// begun that is of the clock.
func (r *rig) afterFailover(t *testing.T, strategy adapter.Strategy) *table.Store {
	t.Helper()
	r.ForgetEras(t)
	before := era.Start(time.Now().Add(-time.Hour))
	s := r.open(t, r.DB, table.Options{Strategy: strategy, Connections: 1, Timeout: 5 * time.Second})
	if s.Era() < before || lease.Epoch(s.Era())%2 != 0 {
		t.Fatalf("the era begins after %d, of epoch %d; want an even one of this hour", s.Era(), lease.Epoch(s.Era()))
	}
	return s
}

func askFor(had []lease.Lease) (reqs []lease.AcquireRequest) {
	for _, l := range had {
		reqs = append(reqs, lease.AcquireRequest{Key: l.Key, Owner: lease.NewOwner(), TTL: ttl})
	}
	return reqs
}

func acquireThem(ctx context.Context, s *table.Store, had []lease.Lease) ([]lease.Acquired, error) {
	return s.Acquire(ctx, askFor(had))
}

func acquireAllOf(ctx context.Context, s *table.Store, had []lease.Lease) ([]lease.Acquired, error) {
	return s.AcquireAll(ctx, askFor(had))
}

func takeAny(n int) func(context.Context, *table.Store, []lease.Lease) ([]lease.Acquired, error) {
	return func(ctx context.Context, s *table.Store, had []lease.Lease) ([]lease.Acquired, error) {
		return s.AcquireAny(ctx, askFor(had), n)
	}
}

func handThemOver(ctx context.Context, s *table.Store, had []lease.Lease) ([]lease.Acquired, error) {
	var items []lease.HandOver
	for i, r := range askFor(had) {
		items = append(items, lease.HandOver{From: had[i], To: r})
	}
	return s.HandOver(ctx, items)
}

func claimThem(joins bool) func(context.Context, *table.Store, []lease.Lease) ([]lease.Acquired, error) {
	return func(ctx context.Context, s *table.Store, had []lease.Lease) ([]lease.Acquired, error) {
		reqs := askFor(had)
		if joins {
			if _, err := s.Join(ctx, []lease.Ticket{{AcquireRequest: reqs[0], Priority: 5}}); err != nil {
				return nil, err
			}
		}
		return s.Claim(ctx, reqs)
	}
}

func passThem(ctx context.Context, s *table.Store, had []lease.Lease) ([]lease.Acquired, error) {
	r := askFor(had)[0]
	if _, err := s.Join(ctx, []lease.Ticket{{AcquireRequest: r, Priority: 5}}); err != nil {
		return nil, err
	}
	got, err := s.Pass(ctx, had)
	return []lease.Acquired{{Granted: got[0].To == r.Owner, Token: got[0].Token}}, err
}

// A semaphore's slots are granted by statements of their own.
func TestTokensOfSlotsGrowThoughTheServerHasForgottenGrants(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		l := lease.Limit{Name: "pool", Slots: 4}
		if _, err := r.clean.MakeLimit(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		for _, slots := range [][]int{{0}, {1, 2}} {
			reqs := slotsOf(l, slots...)
			if _, err := r.clean.AcquireWithin(t.Context(), l, reqs, len(reqs)); err != nil {
				t.Fatal(err)
			}
			s := r.afterFailover(t, adapter.Update)
			var items []lease.SlotHandOver
			for _, q := range reqs {
				row := r.row(t, q.Key)
				to := requests(q.Key)[0]
				items = append(items, lease.SlotHandOver{HandOver: lease.HandOver{From: row.Lease, To: to}, Generation: 1})
			}
			passed, err := s.PassSlots(t.Context(), l.Name, items)
			wantAbove(t, s.Era(), passed, err, len(items))
			for i := range items {
				release(t, s, lease.Lease{Key: items[i].To.Key, Owner: items[i].To.Owner, Token: passed[i].Token})
			}
			s = r.afterFailover(t, adapter.Update)
			got, err := s.AcquireWithin(t.Context(), l, slotsOf(l, slots...), len(slots))
			wantAbove(t, s.Era(), got, err, len(slots))
		}
	})
}

func wantAbove(t *testing.T, began lease.Token, got []lease.Acquired, err error, n int) {
	t.Helper()
	for _, a := range got {
		if a.Granted && a.Token > began {
			n--
		}
	}
	if err != nil || n != 0 {
		t.Errorf("got %+v, %v; want each above %d", got, err, began)
	}
}

// A holder from before a failover keeps its lock if its row is still there.
func TestAHolderKeepsItsLeaseThroughAFailoverThatHasItsRow(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		kept, lost := hold(t, r.clean, "kept"), hold(t, r.clean, "lost")
		e.Exec(t, `UPDATE {rowlock} SET owner = NULL WHERE {key} = ?`, []byte("lost"))
		s := r.afterFailover(t, adapter.Update)
		answers, err := s.Renew(t.Context(), []lease.RenewRequest{{Lease: kept, TTL: ttl}, {Lease: lost, TTL: ttl}})
		if err != nil || answers[0].Outcome != lease.Extended || answers[1].Outcome != lease.Lost {
			t.Errorf("renewed %+v, %v", answers, err)
		}
		if r := release(t, s, kept); r.Gone {
			t.Error("the lease was gone")
		}
	})
}

// All clients that meet a new history at the same moment are in one era, which begins once.
func TestOneEraBeginsHoweverManyMeetTheHistory(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		release(t, r.clean, hold(t, r.clean, "k"))
		e.ForgetEras(t)
		const clients = 8
		starts := make(chan lease.Token, clients)
		for range clients {
			go func() {
				s, _, err := table.Open(t.Context(), e.DB, e.Dialect, table.Options{Connections: 1, Timeout: 5 * time.Second})
				if err != nil {
					t.Error(err)
					starts <- 0
					return
				}
				starts <- s.Era()
				_ = s.Close()
			}()
		}
		first := <-starts
		for range clients - 1 {
			if next := <-starts; next != first || first == 0 {
				t.Errorf("eras begin after %d and after %d", first, next)
			}
		}
	})
}

// An old primary that comes back knows its own history, and has forgotten the era that began
// elsewhere. A client that was there begins another.
func TestAHistoryThatGoesBackBeginsAnEra(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		e.ForgetEras(t)
		r.recycle(t, "")
		there := r.store.Era()
		l := hold(t, r.store, "k")
		if l.Token != there+1 || there == 0 {
			t.Fatalf("token %d in the era after %d", l.Token, there)
		}
		release(t, r.store, l)
		e.Exec(t, `UPDATE {rowlock_meta} SET start = 0 WHERE start > 0`)
		e.SetToken(t, "k", 1)
		r.recycle(t, "")
		if next := hold(t, r.store, "k"); next.Token <= l.Token || r.store.Era() <= there {
			t.Errorf("token %d in the era after %d; want a later one than %d", next.Token, r.store.Era(), there)
		}
	})
}

// A proxy may send a statement to another server than the one that the session has asked. Nothing
// is granted there, and the next session asks that server.
func TestNothingIsGrantedOnAServerThatTheSessionHasNotAsked(t *testing.T) {
	for _, k := range []testdb.Kind{testdb.PgBouncer, testdb.Kinds[2], testdb.Kinds[3]} {
		t.Run(k.Name, func(t *testing.T) {
			e := k.Open(t)
			var sessions atomic.Int64
			d := e.Dialect.Wrapped(func(db sqlstore.Database, f sqlstore.Features) (sqlstore.Database, sqlstore.Features) {
				return elsewhere{db, &sessions}, f
			})
			s, _, err := table.Open(t.Context(), e.DB, d, table.Options{Connections: 1, Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if n := sessions.Swap(0); n != 2 {
				t.Errorf("%d sessions until the store could grant; want that of the wrong server and another", n)
			}
			for range 3 {
				release(t, s, hold(t, s, "k"))
			}
			if n := sessions.Load(); n != 0 {
				t.Errorf("%d sessions for a server that stays", n)
			}
		})
	}
}

// Behind a pooler the sessions outlast a restore, and so do its clients. Each grant asks for the
// file of the table, which a dump that makes the table and a TRUNCATE change.
func TestARestoreBeneathClientsOfAPoolerIsNoticed(t *testing.T) {
	for name, empty := range map[string][]string{
		"a dump": {
			`ALTER TABLE {rowlock} RENAME TO {rowlock_old}`, `CREATE TABLE {rowlock} (LIKE {rowlock_old} INCLUDING ALL)`,
		},
		"rows, after TRUNCATE": {`TRUNCATE {rowlock}`},
	} {
		t.Run(name, func(t *testing.T) {
			e := testdb.PgBouncer.Open(t)
			do := func(queries ...string) {
				for _, q := range queries {
					q = strings.ReplaceAll(q, "{rowlock_kept}", e.Table("rowlock_kept"))
					e.Exec(t, strings.ReplaceAll(q, "{rowlock_old}", e.Table("rowlock_old")))
				}
			}
			t.Cleanup(func() { do(`DROP TABLE IF EXISTS {rowlock_old}, {rowlock_kept}`) })
			s := openOn(t, e, e.Dialect, false)
			release(t, s, hold(t, s, "k"))
			do(`CREATE TABLE {rowlock_kept} AS SELECT * FROM {rowlock}`)
			release(t, s, hold(t, s, "k"))
			l := hold(t, s, "k")
			release(t, s, l)
			do(append(empty, `INSERT INTO {rowlock} SELECT * FROM {rowlock_kept}`)...)
			if next := hold(t, s, "k"); next.Token <= l.Token {
				t.Errorf("token %d after %d", next.Token, l.Token)
			}
		})
	}
}

// elsewhere has the first session of a store ask a server, and then come to another.
type elsewhere struct {
	sqlstore.Database
	sessions *atomic.Int64
}

func (d elsewhere) EraText(s *conn.Session, h sqlstore.History) string {
	if d.sessions.Add(1) == 1 {
		h.Name += " of another server"
	}
	return d.Database.EraText(s, h)
}

// A client hears of an era that it has begun, once, and of no other.
func TestTheClientHearsOfTheEraThatItHasBegun(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		var heard []lease.Token
		o := table.Options{
			Connections: cmp.Or(e.Dialect.Connections(), 2), Timeout: 5 * time.Second, Began: func(start lease.Token) { heard = append(heard, start) },
		}
		newRig(t, e, adapter.Update, 1).open(t, e.DB, o)
		if len(heard) != 0 {
			t.Errorf("heard of %d, which an earlier client has begun", heard)
		}
		e.ForgetEras(t)
		r := rig{Env: e}
		if s := r.open(t, e.DB, o); len(heard) != 1 || heard[0] != s.Era() {
			t.Errorf("heard of %d, want %d once", heard, s.Era())
		}
	})
}

// A backup from before the first client has no history. A client that finds rows, or tables that
// were made long ago, begins an era of the clock.
func TestTablesWithoutAHistoryBeginWithTokenOneOnlyIfTheyAreNew(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		open := func() lease.Token {
			r := rig{Env: e}
			return r.open(t, e.DB, table.Options{Connections: 1, Timeout: 5 * time.Second}).Era()
		}
		unheard := func() {
			e.Exec(t, `DELETE FROM {rowlock_meta} WHERE name LIKE 'era/%'`)
			e.Exec(t, `UPDATE {rowlock_meta} SET start = 0 WHERE start > 0`)
		}
		if began := open(); began != 0 {
			t.Errorf("new tables: %d", began)
		}
		r := newRig(t, e, adapter.Update, 1)
		l := hold(t, r.clean, "k")
		release(t, r.clean, l)
		unheard()
		if began := open(); began == 0 {
			t.Error("tables with rows begin with token 1 again")
		}
		e.Exec(t, `DELETE FROM {rowlock}`)
		e.Exec(t, `UPDATE {rowlock_floor} SET floor = 0`)
		unheard()
		if began := open(); began != 0 {
			t.Errorf("tables that were emptied at once: %d", began)
		}
		unheard()
		e.Exec(t, `DELETE FROM {rowlock}`)
		e.Exec(t, `UPDATE {rowlock_floor} SET floor = 7 WHERE bucket = 3`)
		if began := open(); began == 0 {
			t.Error("tables that were swept begin with token 1 again")
		}
		e.Exec(t, `UPDATE {rowlock_floor} SET floor = 0`)
		unheard()
		e.Exec(t, `DELETE FROM {rowlock}`)
		old := "{now} - INTERVAL '2' HOUR"
		if e.Name == "sqlite" {
			old = "{now} - 7200000"
		}
		e.Exec(t, `UPDATE {rowlock_meta} SET since = `+old+` WHERE start >= 0`)
		if began := open(); began == 0 {
			t.Error("tables that were made long ago begin with token 1")
		}
	})
}

// A server to which others have failed back knows its own history, and may have forgotten what was
// granted since. Its era is not the newest then, and another begins.
func TestAServerThatIsPrimaryAgainBeginsAnEra(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			t.Skip("a file has several histories at once, one for each process")
		}
		r := newRig(t, e, adapter.Update, 2)
		there := lease.EpochStart(40)
		e.Exec(t, `INSERT INTO {rowlock_meta} (name, start, since) VALUES ('era/the other server', ?, {now})`, there)
		s := r.open(t, e.DB, table.Options{Connections: 1, Timeout: 5 * time.Second})
		if l := hold(t, s, "k"); l.Token <= there+1 || s.Era() <= there {
			t.Errorf("token %d in the era after %d, which began elsewhere after %d", l.Token, s.Era(), there)
		}
	})
}

// A client whose clock is behind sees the same row as one that meets a clock which was ahead. An
// era from the future would stay in all tokens, and a restore then repeat those of eras since.
func TestAnEraAheadOfTheClientsClockIsRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		open := func(d *sqlstore.Dialect) error {
			s, _, err := table.Open(t.Context(), e.Pool(t), d, table.Options{Connections: 1, Timeout: 5 * time.Second})
			if err == nil {
				err = s.Close()
			}
			return err
		}
		d := e.Dialect.Wrapped(func(db sqlstore.Database, f sqlstore.Features) (sqlstore.Database, sqlstore.Features) {
			return aheadOfUs{db}, f
		})
		e.ForgetEras(t)
		week := time.Now().AddDate(0, 0, 7)
		bothNamed(t, open(d), week)
		wantIs(t, open(e.Dialect), nil)
		e.Exec(t, `INSERT INTO {rowlock_meta} (name, start, since) VALUES ('era/elsewhere', ?, {now})`, era.Start(week))
		bothNamed(t, open(e.Dialect), week)
		e.Exec(t, `UPDATE {rowlock_meta} SET start = ? WHERE name = 'era/elsewhere'`, era.Start(time.Now().Add(time.Hour)))
		wantIs(t, open(e.Dialect), nil)
	})
}

// bothNamed wants an error with the day of an era and today's.
func bothNamed(t *testing.T, err error, day time.Time) {
	t.Helper()
	wantIs(t, err, lease.ErrCorrupt)
	for _, at := range []time.Time{day, time.Now()} {
		if want := at.UTC().Format(time.DateOnly); err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nnames no %s", err, want)
		}
	}
}

// aheadOfUs is a server whose clock is a week ahead of ours.
type aheadOfUs struct{ sqlstore.Database }

func (d aheadOfUs) Text(section string) string {
	text := d.Database.Text(section)
	if section == "era-clock" {
		text += fmt.Sprintf(" + %d", (7 * 24 * time.Hour).Microseconds())
	}
	return text
}

// A pinned connection that has slept through the beginning of an era does not grant in the old one:
// nothing ends its connection where a server is demoted without a restart.
func TestAPinnedConnectionThatSleptThroughAnEraConnectsAnew(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 3)
		e.ForgetEras(t)
		r.recycle(t, "") // one pinned connection learns
		began := r.store.Era()
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				if _, a := acquire(t, r.store, fmt.Sprint("k", i)); !a.Granted || a.Token <= began {
					t.Errorf("got %+v after the era that begins after %d", a, began)
				}
			})
		}
		all.Wait()
	})
}

// What is held back stays so for statements that are prepared, and where none is prepared.
func TestNothingIsGrantedInAnEraThatIsHeldBack(t *testing.T) {
	for _, k := range append([]testdb.Kind{testdb.PgBouncer}, testdb.Kinds...) {
		t.Run(k.Name, func(t *testing.T) {
			e := k.Open(t)
			r := newRig(t, e, adapter.Update, 2)
			release(t, r.store, hold(t, r.store, "k"))
			admit, free := r.store.HoldEras()
			_, otherFree := r.store.HoldEras()
			e.ForgetEras(t)
			r.recycle(t, "")
			held := func() {
				t.Helper()
				_, err := ask(t.Context(), r.store, requests("k")[0])
				wantIs(t, err, adapter.ErrNewEra, lease.ErrBusy)
			}
			held()
			admit(r.store.Era())
			held() // the other has not
			otherFree()
			l := hold(t, r.store, "k")
			release(t, r.store, l)
			e.ForgetEras(t)
			r.recycle(t, "")
			held()
			held() // its statements are prepared by now
			free()
			release(t, r.store, hold(t, r.store, "k"))
		})
	}
}

// A server that takes no writes begins no era.
func TestAServerThatTakesNoWritesBeginsNoEra(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		d := e.Dialect.Wrapped(func(db sqlstore.Database, f sqlstore.Features) (sqlstore.Database, sqlstore.Features) {
			return readOnly{db}, f
		})
		_, _, err := table.Open(t.Context(), e.DB, d, table.Options{Connections: 1, Timeout: 5 * time.Second})
		wantIs(t, err, lease.ErrReadOnly)
		var n int
		if err := e.DB.QueryRow(e.SQL(`SELECT COUNT(*) FROM {rowlock_meta} WHERE name LIKE 'era/%'`)).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d histories, %v", n, err)
		}
	})
}

type readOnly struct{ sqlstore.Database }

func (d readOnly) History(ctx context.Context, s *conn.Session, o *sqlstore.Opened) (sqlstore.History, error) {
	h, err := d.Database.History(ctx, s, o)
	h.ReadOnly = true
	return h, err
}

// The table does not grow with each restart.
func TestTheTableRemembersTheNewestHistories(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for i := range 80 {
			e.Exec(t, `INSERT INTO {rowlock_meta} (name, start, since) VALUES (?, ?, {now})`, fmt.Sprint("era/old ", i), i+1)
		}
		r := rig{Env: e}
		r.open(t, e.DB, table.Options{Connections: 1, Timeout: 5 * time.Second})
		var n, least int
		row := e.DB.QueryRow(e.SQL(`SELECT COUNT(*), MIN(start) FROM {rowlock_meta} WHERE name LIKE 'era/%'`))
		if err := row.Scan(&n, &least); err != nil || n != 64 || least != 18 {
			t.Errorf("%d histories from %d on, %v; want the newest 64", n, least, err)
		}
	})
}

// A file that another process writes to is opened when that has ended.
func TestABusyFileIsOpenedWhenItIsFree(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	tx, err := e.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(e.SQL(`UPDATE {rowlock_floor} SET floor = floor`)); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		s, _, err := table.Open(t.Context(), e.DB, e.Dialect, table.Options{Connections: 1, Timeout: 5 * time.Second})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Errorf("opened beside a writer: %v", err)
	case <-time.After(300 * time.Millisecond): // longer than rowlock waits for the file's lock
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// What a statement that grants has in its text, where a pooler or a proxy can change the session
// beneath it, is a number in the session that has asked, and an error in that of a copy or of a
// table that was restored meanwhile, with or without what the proxy repeats there.
func TestNothingIsGrantedInARestoredHistory(t *testing.T) {
	for _, k := range testdb.Servers {
		t.Run(k.Name, func(t *testing.T) {
			e := k.Open(t)
			s := e.Session(t)
			if err := e.Dialect.Setup(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			s.Unprepared = e.Driver == "pgx"
			h, err := e.Dialect.History(t.Context(), s, nil)
			if err != nil {
				t.Fatal(err)
			}
			h.Newest = 1024
			var n int64
			fails := func(s *conn.Session) error {
				return s.QueryRow(t.Context(), "SELECT "+e.Dialect.EraText(s, h)+" + 1", nil, &n)
			}
			if err := fails(s); err != nil || n != 1025 {
				t.Fatal(n, err)
			}
			if e.Driver == "mysql" && fails(e.Session(t)) == nil { // one that the proxy has made
				t.Error("granted in a session that has asked for no history")
			}
			e.Exec(t, `DROP TABLE {rowlock_meta}`)
			e.Exec(t, `CREATE TABLE {rowlock_meta} (name VARCHAR(200), value VARCHAR(200), start BIGINT)`)
			remake(t, e)
			if e.Driver == "mysql" { // as MaxScale does on another connection
				if _, err := e.Dialect.History(t.Context(), s, nil); err != nil {
					t.Fatal(err)
				}
			}
			if fails(s) == nil {
				t.Error("granted in a table that was made anew")
			}
		})
	}
}

// remake makes the table anew, in another second: tables have no finer time of creation.
func remake(t *testing.T, e *testdb.Env) {
	t.Helper()
	if e.Driver == "mysql" {
		e.Exec(t, `DO SLEEP(1.1)`)
	}
	e.Exec(t, `DROP TABLE {rowlock}`)
	e.Exec(t, `CREATE TABLE {rowlock} (n INTEGER)`)
}
