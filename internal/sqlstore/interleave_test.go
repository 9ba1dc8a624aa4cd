package sqlstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// item is a part of a batch: to take, give (release) or pass (hand over) a key.
type item struct{ verb, key string }

func take(key string) item { return item{"take", key} }
func give(key string) item { return item{"give", key} }
func pass(key string) item { return item{"pass", key} }

// turn is one call.
type turn struct {
	how   string // apply, all, make, alone
	items []item
}

func batch(items ...item) turn    { return turn{"apply", items} }
func whole(items ...item) turn    { return turn{"all", items} }
func creation(items ...item) turn { return turn{"make", items} }
func alone(i item) turn           { return turn{"alone", []item{i}} }

// part is what one player does, and which keys it has. Its leases of late have expired, and those
// of also are the first player's.
type part struct {
	early bool
	has   string
	late  string
	also  string
	turns []turn
}

// scene is parts that are played at once, on keys of one letter each. Those of free have a row
// without a holder.
type scene struct {
	name  string
	free  string
	parts []part
}

var scenes = []scene{
	// What was inferred once: a's release is retaken by a statement that began before it, and
	// what a wants is taken twice meanwhile.
	{"a count is no evidence of a grant", "y", []part{
		{has: "x", turns: []turn{batch(give("x"), take("y"))}},
		{turns: []turn{alone(take("y")), alone(give("y")), alone(take("y"))}},
		{early: true, turns: []turn{alone(take("x"))}},
	}},
	{"a release that is lost beside one that is retaken", "", []part{
		{has: "x", late: "y", turns: []turn{batch(give("x"), give("y"))}},
		{turns: []turn{batch(take("y"))}},
		{early: true, turns: []turn{alone(take("x"))}},
	}},
	{"a hand-over beside a release", "", []part{
		{late: "xy", turns: []turn{batch(give("x"), pass("y"))}},
		{turns: []turn{batch(take("x"), take("y"))}},
	}},
	{"a lease is given back twice", "", []part{
		{has: "xy", turns: []turn{batch(give("x"), give("y"))}},
		{also: "x", turns: []turn{alone(give("x"))}},
		{turns: []turn{alone(take("x"))}},
	}},
	{"a lease is given back in two batches", "", []part{
		{has: "xy", turns: []turn{batch(give("x"), give("y"))}},
		{has: "z", also: "y", turns: []turn{batch(give("y"), give("z"))}},
	}},
	{"two batches for the same keys", "xyz", []part{
		{turns: []turn{batch(take("x"), take("y"), take("z"))}},
		{turns: []turn{batch(take("x"), take("z"))}},
	}},
	{"taken and given back beside a taker", "xy", []part{
		{turns: []turn{batch(take("x"), take("y")), batch(give("x"), give("y"))}},
		{turns: []turn{batch(take("x"), take("y"))}},
	}},
	{"three batches", "z", []part{
		{has: "x", turns: []turn{batch(give("x"), take("y"))}},
		{late: "y", turns: []turn{batch(give("y"), take("z"))}},
		{turns: []turn{batch(take("x"), take("z"))}},
	}},
	{"all or none beside a batch", "xyz", []part{
		{turns: []turn{whole(take("x"), take("y"))}},
		{turns: []turn{batch(take("y"), take("z")), batch(give("y"))}},
	}},
	{"all or none twice", "xyz", []part{
		{turns: []turn{whole(take("x"), take("y"))}},
		{turns: []turn{whole(take("y"), take("z"))}},
		{turns: []turn{alone(take("y"))}},
	}},
	{"rows are made once", "", []part{
		{turns: []turn{creation(take("x"), take("y"))}},
		{turns: []turn{creation(take("y"), take("z"))}},
		{turns: []turn{alone(take("y")), alone(give("y"))}},
	}},
	{"a row is made, given back and taken", "", []part{
		{turns: []turn{creation(take("x"), take("y")), batch(give("x"), give("y"))}},
		{turns: []turn{batch(take("x"), take("y"))}},
	}},
	{"handed over, and taken when late", "", []part{
		{late: "x", has: "y", turns: []turn{batch(pass("x"), pass("y"))}},
		{early: true, turns: []turn{batch(take("x"))}},
		{turns: []turn{alone(take("x"))}},
	}},
}

// Every order of the statements of two or three sessions, and after each statement the rows: a
// player that is told something of a row must have done that, and one that is told nothing must
// have done nothing.
func TestWhatABatchIsToldIsWhatItDid(t *testing.T) {
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			workers := newWorkers(t, k, 4)
			for _, sc := range scenes {
				t.Run(sc.name, func(t *testing.T) {
					began := time.Now()
					tried := explore(workers, sc.run)
					t.Logf("%d orders in %v", tried, time.Since(began))
				})
			}
		})
	}
}

// run plays the scene by one schedule.
func (sc *scene) run(w *worker, schedule []int) course {
	wit := newWitness(w.bench, w.prefix())
	actors, early := make([]*actor, len(sc.parts)), make([]bool, len(sc.parts))
	for i, p := range sc.parts {
		actors[i], early[i] = &actor{witness: wit, number: i, has: make(map[string]holder)}, p.early && w.Driver == "mysql"
	}
	sc.furnish(wit, actors)
	wit.rows = wit.read()
	players := w.players[:len(actors)]
	for i, p := range players {
		p.play(w.bench, func(ctx context.Context, s *conn.Session) {
			for _, t := range sc.parts[i].turns {
				actors[i].play(ctx, s, t)
			}
		})
	}
	c := follow(w.bench, players, early, schedule, func(player int) func() bool {
		turn := actors[player].turn
		return func() bool { return wit.see(player, turn) }
	})
	for _, a := range actors {
		a.compare()
	}
	if len(wit.wrong) > 0 {
		w.Errorf("in the order %v:\n%s\nbecause this was done:\n%v", c.did, strings.Join(wit.wrong, "\n"), wit.deeds)
	}
	return c
}

// furnish makes the scene's rows, in one statement.
func (sc *scene) furnish(wit *witness, actors []*actor) {
	var rows []string
	var args []any
	add := func(key string, owner any, expiry string) {
		rows = append(rows, `(?, ?, '', 7, {now}, {now}`+expiry+`, 0)`)
		args = append(args, []byte(key), owner)
	}
	for i, p := range sc.parts {
		for n, key := range p.has + p.late {
			key, h, expiry := wit.prefix+string(key), holder{lease.NewOwner(), 7}, expired
			if actors[i].has[key] = h; n < len(p.has) {
				wit.live[key], wit.of[key], expiry = h, i, alive
			}
			add(key, h.owner[:], expiry)
		}
	}
	for i, p := range sc.parts {
		for _, key := range p.also {
			key := wit.prefix + string(key)
			actors[i].has[key], wit.of[key] = actors[0].has[key], anyone
		}
	}
	for _, key := range sc.free {
		add(wit.prefix+string(key), nil, expired)
	}
	if len(rows) > 0 {
		wit.Exec(wit, `INSERT INTO {rowlock} ({key}, owner, note, token, acquired_at, expires_at, placement) VALUES `+strings.Join(rows, ", "), args...)
	}
}

// actor plays a part.
type actor struct {
	*witness
	number int
	turn   int
	has    map[string]holder
	checks []func()
}

// play plays a turn. What it is told is compared later, with nothing else running: the deeds are
// the scheduler's until then.
func (a *actor) play(ctx context.Context, s *conn.Session, t turn) {
	var changes []sqlstore.Change
	for _, it := range t.items {
		key := a.prefix + it.key
		mine, has := a.has[key]
		switch {
		case it.verb == "take":
			changes = append(changes, acquire(key, lease.NewOwner()))
		case has && it.verb == "give":
			changes = append(changes, release(key, mine.owner, mine.token))
		case has:
			changes = append(changes, handOver(key, mine.owner, mine.token, lease.NewOwner()))
		}
	}
	if len(changes) == 0 {
		return
	}
	a.turn++
	turn := a.turn
	out, err := a.call(ctx, s, t.how, changes)
	for i := range out {
		if out[i].Outcome == sqlstore.Done && !changes[i].Releases() {
			a.has[changes[i].From.Key] = holder{changes[i].To, out[i].Token}
		} else if out[i].Outcome == sqlstore.Done {
			delete(a.has, changes[i].From.Key)
		}
	}
	a.checks = append(a.checks, func() { a.check(turn, changes, out, err) })
}

func (a *actor) call(ctx context.Context, s *conn.Session, how string, changes []sqlstore.Change) ([]sqlstore.Applied, error) {
	switch how {
	case "make":
		return a.Dialect.Create(ctx, s, changes)
	case "alone":
		one, err := a.one(ctx, s, &changes[0])
		return []sqlstore.Applied{one}, err
	}
	return a.Dialect.Apply(ctx, s, changes, how == "all")
}

// one makes a change by the statement for one.
func (a *actor) one(ctx context.Context, s *conn.Session, c *sqlstore.Change) (sqlstore.Applied, error) {
	if c.Releases() {
		r, err := a.Dialect.Release(ctx, s, c.From)
		if err == nil && r.Gone {
			return sqlstore.Applied{Outcome: sqlstore.Gone}, nil
		}
		return sqlstore.Applied{Outcome: sqlstore.Done}, err
	}
	got, err := a.Dialect.Acquire(ctx, s, adapter.Update, lease.AcquireRequest{Key: c.From.Key, Owner: c.To, Note: c.Note, TTL: c.TTL})
	if err == nil && got.Granted {
		return sqlstore.Applied{Outcome: sqlstore.Done, Token: got.Token}, nil
	}
	return sqlstore.Applied{}, err
}

func (a *actor) compare() {
	for _, check := range a.checks {
		check()
	}
}

// check holds what was told against what was done.
func (a *actor) check(turn int, changes []sqlstore.Change, out []sqlstore.Applied, err error) {
	if err != nil {
		if v := sqlstore.Judge(a.Dialect, err); v.Class != sqlstore.Conflict {
			a.accuse("%d was told %v, which is %s: every reply has come", a.number, err, v.Class)
		}
		out = make([]sqlstore.Applied, len(changes))
	}
	for i, c := range changes {
		key, from := c.From.Key, holder{c.From.Owner, c.From.Token}
		switch {
		case out[i].Outcome == sqlstore.Gone:
			a.gone(a.number, turn, key, from)
		case out[i].Outcome != sqlstore.Done:
			a.undone(a.number, turn, key)
		case c.Releases():
			a.released(a.number, turn, key, from)
		default:
			a.granted(a.number, turn, key, holder{c.To, out[i].Token})
		}
	}
}
