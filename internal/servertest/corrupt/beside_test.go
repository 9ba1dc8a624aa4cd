package corrupt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// looseEach runs f on tables without constraints, on every database that is there.
func looseEach(t *testing.T, f func(t *testing.T, e *testdb.Env)) {
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			if k.Name == "sqlite" {
				f(t, loose(t))
			} else {
				f(t, looseServer(t, k))
			}
		})
	}
}

// badValues are values for columns of rowlock that rowlock does not write, and with which a
// database cannot compute.
var badValues = map[string][]string{
	"sqlite": {
		"expires_at = NULL", "expires_at = 9223372036854775807", "expires_at = 'soon'", "expires_at = x'00'",
		"acquired_at = NULL", "acquired_at = -9223372036854775807", "token = NULL", "token = -1", "token = 1e300",
		"owner = x'0102'", "note = x'fffe00'", "note = 7", "placement = NULL", "placement = 1e300", "placement = -7",
	},
	"pgx": {
		"expires_at = NULL", "expires_at = 'infinity'", "expires_at = '-infinity'", "expires_at = '294276-12-31'",
		"expires_at = '4713-01-01 BC'", "acquired_at = NULL", "acquired_at = 'infinity'", "acquired_at = '-infinity'",
		"token = NULL", "token = -1", "token = 9223372036854775807", "owner = '\\x0102'", "note = NULL", "placement = NULL",
		"placement = -7",
	},
	"mysql": {
		"expires_at = NULL", "expires_at = '0000-00-00'", "expires_at = '2026-00-31'",
		"expires_at = '9999-12-31 23:59:59.999999'", "acquired_at = NULL", "acquired_at = '0000-00-00'",
		"token = NULL", "token = -1", "token = 9223372036854775807", "note = NULL", "note = x'fffe00'", "placement = NULL",
		"placement = -7",
	},
}

// beside is a store with a bad row between rows that are as rowlock writes them.
type beside struct {
	*testing.T
	env   *testdb.Env
	store *table.Store
	held  []lease.Lease // of the healthy keys
	bad   lease.Lease
	asked []lease.AcquireRequest
	// stubborn says that the database refuses to change the bad row.
	stubborn bool
}

const healthy = 5

func (b *beside) setup(set string) {
	b.env.Exec(b, `DELETE FROM {rowlock}`)
	b.env.Exec(b, `DELETE FROM {rowlock_queue}`)
	b.held = nil
	reqs := make([]lease.AcquireRequest, healthy+1)
	for i := range reqs {
		reqs[i] = lease.AcquireRequest{Key: fmt.Sprintf("k%d", i), Owner: lease.NewOwner(), TTL: ttl}
	}
	got, err := b.store.Acquire(b.Context(), reqs)
	if err != nil {
		b.Fatal(err)
	}
	for i, a := range got {
		if !a.Granted {
			b.Fatalf("%+v", a)
		}
		l := lease.Lease{Key: reqs[i].Key, Owner: reqs[i].Owner, Token: a.Token}
		if i == healthy/2 {
			b.bad = l
		} else {
			b.held = append(b.held, l)
		}
	}
	b.spoil(set)
}

// spoil writes the value in a session that refuses none.
func (b *beside) spoil(set string) {
	conn, err := b.env.DB.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	if b.env.Driver == "mysql" {
		if _, err := conn.ExecContext(b.Context(), `SET SESSION sql_mode = ''`); err != nil {
			b.Fatal(err)
		}
		defer func() { _, _ = conn.ExecContext(context.Background(), `SET SESSION sql_mode = DEFAULT`) }()
	}
	query := b.env.SQL(`UPDATE {rowlock} SET ` + set + ` WHERE {key} = ?`)
	if _, err := conn.ExecContext(b.Context(), query, []byte(b.bad.Key)); err != nil {
		b.Fatalf("%s: %v", set, err)
	}
}

// One row that cannot be read costs no other its lease, its waiters or its listing, whatever is
// asked of all of them at once. It is answered itself, with an error that has a name or as rowlock
// would.
func TestABadRowCostsNoOtherRowAnything(t *testing.T) {
	looseEach(t, func(t *testing.T, e *testdb.Env) {
		b := &beside{T: t, env: e, store: storeOn(t, e)}
		for _, set := range badValues[e.Driver] {
			t.Run(set, func(t *testing.T) {
				b.T = t
				b.setup(set)
				b.renews()
				b.lists()
				b.refuses()
				b.queues()
				b.handsOver()
				b.releases()
				b.repairs()
			})
		}
	})
}

// all are the healthy leases with the bad one among them.
func (b *beside) all() []lease.Lease { return slices.Insert(slices.Clone(b.held), healthy/2, b.bad) }

func (b *beside) typed(what string, err error) {
	b.Helper()
	if !isTyped(err) {
		b.Errorf("%s the bad row: %v", what, err)
	}
}

func (b *beside) renews() {
	var reqs []lease.RenewRequest
	for _, l := range b.all() {
		reqs = append(reqs, lease.RenewRequest{Lease: l, TTL: ttl})
	}
	out, err := b.store.Renew(b.Context(), reqs)
	if err != nil {
		b.Fatalf("renew: %v", err)
	}
	for i, r := range reqs {
		switch {
		case r.Lease == b.bad && b.stubborn:
			if out[i].Err == nil {
				b.Errorf("renew the bad row: %+v", out[i])
			}
		case r.Lease == b.bad:
			b.typed("renew", out[i].Err)
		default:
			b.extended(r.Key, out[i])
		}
	}
}

func (b *beside) extended(key string, r lease.Renewed) {
	b.Helper()
	if r.Outcome != lease.Extended || r.Err != nil {
		b.Errorf("renew %s: %+v", key, r)
	}
}

func (b *beside) lists() {
	for name, f := range map[string]lease.Filter{
		"all": {}, "held": {Held: true}, "prefix": {Prefix: "k"}, "keys": {Keys: b.keys()},
		"held keys": {Keys: b.keys(), Held: true},
	} {
		found, err := b.store.Inspect(b.Context(), f)
		if err != nil {
			b.Errorf("list %s: %v", name, err)
		}
		for _, l := range b.held {
			if !slices.ContainsFunc(found, func(r lease.Record) bool { return r.Lease == l && r.Held && r.Err == nil }) {
				b.Errorf("list %s: %s is not among %+v", name, l.Key, found)
			}
		}
	}
}

func (b *beside) keys() (keys []string) {
	for _, l := range b.all() {
		keys = append(keys, l.Key)
	}
	return keys
}

func (b *beside) requests() (reqs []lease.AcquireRequest) {
	for _, key := range b.keys() {
		reqs = append(reqs, lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl})
	}
	return reqs
}

// refuses asks for keys that are held.
func (b *beside) refuses() {
	b.asked = b.requests()
	out, err := b.store.Acquire(b.Context(), b.asked)
	if err != nil {
		b.Fatalf("acquire: %v", err)
	}
	for i, a := range out {
		if key := b.keys()[i]; key == b.bad.Key {
			b.typed("acquire", a.Err)
			if a.Granted { // its lease was over
				b.bad = lease.Lease{Key: key, Owner: b.asked[i].Owner, Token: a.Token}
			}
		} else if a.Granted || a.Err != nil || a.Holder.Remaining <= 0 {
			b.Errorf("acquire %s: %+v", key, a)
		}
	}
}

func (b *beside) queues() {
	var waiters []lease.Lease
	for _, r := range b.requests() {
		waiters = append(waiters, lease.Lease{Key: r.Key, Owner: r.Owner})
		t := lease.Ticket{AcquireRequest: r, Priority: 1}
		if _, err := b.store.Join(b.Context(), []lease.Ticket{t}); err != nil {
			b.Fatal(err)
		}
	}
	places, err := b.store.QueuePositions(b.Context(), waiters)
	if err != nil {
		b.Fatalf("places: %v", err)
	}
	for i, p := range places {
		if waiters[i].Key == b.bad.Key {
			b.typed("look at", p.Err)
		} else if p.Err != nil || p.Missing || p.Remaining <= 0 {
			b.Errorf("place for %s: %+v", waiters[i].Key, p)
		}
	}
	if err := b.store.Leave(b.Context(), waiters); err != nil {
		b.Fatal(err)
	}
}

func (b *beside) handsOver() {
	var over []lease.HandOver
	for _, l := range b.all() {
		to := lease.AcquireRequest{Key: l.Key, Owner: lease.NewOwner(), TTL: ttl}
		over = append(over, lease.HandOver{From: l, To: to})
	}
	out, err := b.store.HandOver(b.Context(), over)
	if err != nil {
		b.Fatalf("hand over: %v", err)
	}
	b.held = nil
	for i, h := range over {
		if h.From.Key == b.bad.Key {
			b.typed("hand over", out[i].Err)
			continue
		}
		if !out[i].Granted || out[i].Err != nil {
			b.Errorf("hand over %s: %+v", h.From.Key, out[i])
		}
		b.held = append(b.held, lease.Lease{Key: h.To.Key, Owner: h.To.Owner, Token: out[i].Token})
	}
}

func (b *beside) releases() {
	out, err := b.store.Release(b.Context(), b.all())
	if err != nil {
		b.Fatalf("release: %v", err)
	}
	for i, l := range b.all() {
		if l.Key == b.bad.Key {
			b.typed("release", out[i].Err)
		} else if out[i].Gone || out[i].Err != nil {
			b.Errorf("release %s: %+v", l.Key, out[i])
		}
	}
}

// repairs has the key usable again after a forced release.
func (b *beside) repairs() {
	req := lease.ForceRequest{Key: b.bad.Key, By: "me", Reason: "why", ID: lease.NewOwner()}
	if _, err := b.store.ForceRelease(b.Context(), req); err != nil && !errors.Is(err, lease.ErrNotHeld) {
		b.Errorf("force release: %v", err)
	}
	r := lease.AcquireRequest{Key: b.bad.Key, Owner: lease.NewOwner(), TTL: ttl}
	got, err := b.store.Acquire(b.Context(), []lease.AcquireRequest{r})
	if (err != nil || !got[0].Granted) && !errors.Is(err, lease.ErrTokenExhausted) {
		b.Errorf("acquire after a forced release: %+v, %v", got, err)
	}
	listedAsBad(b.T, b.store)
}
