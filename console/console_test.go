package console_test

import (
	"context"
	"fmt"
	"html"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

func TestWhatIsShownIsWhatIsInTheTable(t *testing.T) {
	each(t, func(b *bed) {
		l := b.lock("orders/7", rowlock.Note("nightly import"))
		b.lock("stock/1")
		b.lock("free").Unlock(b.Context())
		b.wants("", "orders/7", "stock/1", "web-1/4711/orders", "nightly import",
			fmt.Sprintf(`<td class="n" data-is="Token">%d</td>`, l.Token()), "table")
		if page := b.wants("?prefix=orders/", "orders/7"); strings.Contains(page, "stock/1") {
			b.Errorf("a search for orders/ shows stock/1")
		}
		if page := b.wants(""); strings.Contains(page, ">free<") {
			b.Error("a key that is free is listed as held")
		}
		b.wants("key?k=orders/7", "held", "nightly import", "web-1/4711/orders", "No waiters.")
		b.wants("key?k=free", "free")
		b.wants("key?k=never", "no row")
		b.Expire(b, "stock/1")
		b.wants("key?k=stock/1", "expired")
	})
}

func TestReadersOfASharedKeyAreShown(t *testing.T) {
	each(t, func(b *bed) {
		for _, note := range []string{"first reader", "second reader"} {
			l, err := b.client.RLock(b.Context(), "shared", rowlock.Note(note))
			if err != nil {
				b.Fatal(err)
			}
			b.keep(l)
		}
		b.wants("", "2 readers")
		b.wants("?sort=expiry", "2 readers")
		b.wants("key?k=shared", "shared by 2", "first reader", "second reader")
	})
}

func TestWaitersAreShownInTheirOrder(t *testing.T) {
	each(t, func(b *bed) {
		b.lock("hot")
		fair, err := rowlock.Open(b.Pool(b), b.Dialect, &rowlock.Config{Fair: true, Identity: "fair"})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		var calls sync.WaitGroup
		defer func() { cancel(); calls.Wait(); _ = fair.Close() }()
		wait := func(note string) {
			calls.Go(func() { _, _ = fair.Lock(ctx, "hot", rowlock.Note(note)) })
			b.stream("page=key&k=hot").until("view", note)
		}
		wait("came first")
		wait("came second")
		page := b.wants("key?k=hot", "in the queue")
		if strings.Index(page, "came first") > strings.Index(page, "came second") {
			b.Error("the queue is out of order")
		}
		b.wants("waits", "hot", `<span class="n">2</span>`, "web-1/4711/orders")
		b.wants("", `<span class="n">2</span>`)
		process := b.another("web-2")
		calls.Go(func() { _, _ = process.Lock(ctx, "hot") })
		b.stream("page=key&k=hot").until("view", `>web-2</a></th>`)
	})
}

// What a process holds meanwhile stands in another table than that it waits.
func TestAProcessThatWaitsIsShownOnce(t *testing.T) {
	each(t, func(b *bed) {
		b.lock("hot")
		held := b.lock("meanwhile")
		table, err := rowlock.OpenTable(b.Pool(b), b.Dialect, nil)
		wantNil(b, err)
		defer func() { _ = table.Close() }()
		process := b.another("web-2")
		ctx, cancel := context.WithCancel(b.Context())
		var calls sync.WaitGroup
		defer func() { cancel(); calls.Wait() }()
		calls.Go(func() { _, _ = process.Lock(ctx, "hot") })
		b.stream("page=key&k=hot").until("view", "heartbeat due in")
		graph := graphOf(b, table)
		for i, by := range []lease.Party{{Identity: "web-2"}, {Identity: "web-2", Process: true}} {
			chain := lease.Caller{
				ID: lease.NewOwner(), Wants: []string{"hot"}, Waited: time.Duration(40+30*i) * time.Second,
				Holds: []lease.Lease{{Key: "meanwhile", Token: held.Token()}, {Key: "hot", Token: 1 << 40}},
			}
			wantNil(b, graph.Record(b.Context(), by, []lease.Caller{chain}, time.Minute))
		}
		b.becomes("key?k=hot", ">1 m 1")
		page := b.wants("key?k=hot", "process, in no order", `k=meanwhile"><code>`)
		if strings.Count(page, `>web-2</a></th>`) != 1 || strings.Contains(page, `k=hot"><code>`) {
			b.Errorf("not one row with the one key that is held: %s", page)
		}
	})
}

func TestACycleIsShown(t *testing.T) {
	each(t, func(b *bed) {
		x, y := b.lock("x"), b.lock("y")
		d := b.Dialect
		table, err := rowlock.OpenTable(b.Pool(b), d, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = table.Close() }()
		graph := graphOf(b, table)
		chains := []lease.Caller{
			{ID: lease.NewOwner(), Holds: []lease.Lease{{Key: "x", Token: x.Token()}}, Wants: []string{"y"}},
			{ID: lease.NewOwner(), Holds: []lease.Lease{{Key: "y", Token: y.Token()}}, Wants: []string{"x"}},
		}
		b.wants("cycles", "No callers wait for one another.")
		if err := graph.Record(b.Context(), lease.Party{Identity: "web-2"}, chains, time.Minute); err != nil {
			b.Fatal(err)
		}
		b.stream("page=cycles").until("view", "Cycle of 2")
		b.wants("cycles", "Cycle of 2", "web-2", "key?k=x", "key?k=y")
		wantNil(b, graph.Erase(b.Context(), chains))

		for i := range chains { // by processes: a suspicion, and no cycle
			chains[i].ID = lease.NewOwner()
		}
		own := lease.Caller{ID: lease.NewOwner(), Holds: chains[0].Holds, Wants: []string{"x"}}
		by := lease.Party{Identity: "web-3", Process: true}
		wantNil(b, graph.Record(b.Context(), by, []lease.Caller{own}, time.Minute))
		b.becomes("cycles", "No callers wait for one another.")
		wantNil(b, graph.Erase(b.Context(), []lease.Caller{own}))
		wantNil(b, graph.Record(b.Context(), by, chains, time.Minute))
		b.becomes("cycles", "Suspicion among 2 processes")
		if page := b.wants("cycles", "web-3"); strings.Contains(page, "Cycle of") {
			b.Error("a suspicion is shown as a cycle")
		}
	})
}

func wantNil(b *bed, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func graphOf(b *bed, table rowlock.Table) lease.Graph {
	b.Helper()
	for s := lease.Store(table); ; {
		if g, ok := s.(lease.Graph); ok {
			return g
		}
		w, ok := s.(interface{ Unwrap() lease.Store })
		if !ok {
			b.Fatal("the table records no chains")
		}
		s = w.Unwrap()
	}
}

func TestANamespaceShowsItsKeysAlone(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	b := newBed(t, e, nil)
	b.lock("other")
	space, err := b.client.Namespace("billing", rowlock.Quota{})
	if err != nil {
		t.Fatal(err)
	}
	mine, err := space.Lock(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	b.keep(mine)
	b.serve(space, nil)
	for _, path := range []string{"", "?sort=age", "?sort=expiry", "waits", "records"} {
		page := b.wants(path)
		if strings.Contains(page, ">other<") || strings.Contains(page, "<code>billing/mine") {
			t.Errorf("%q shows keys of others, or a full name", path)
		}
	}
	b.wants("", "<code>mine</code>")
	b.wants("key?k=mine", "held")
	b.wants("key?k=other", "no row")
}

func TestAStoreThatIsNoDatabaseIsShown(t *testing.T) {
	client, err := rowlock.New(memstore.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	b := &bed{TB: t, client: client, Env: &testdb.Env{}}
	b.serve(client, func(o *console.Options) { o.DB, o.Dialect = nil, nil })
	b.lock("in memory")
	b.wants("", "in memory")
	b.wants("key?k=in%20memory", "held")
	b.wants("waits", "No key is waited for.")
	b.wants("cycles")
	b.wants("records")
}

func TestChangesArriveInAStream(t *testing.T) {
	each(t, func(b *bed) {
		s := b.stream("page=held")
		s.until("view", "No key is held")
		l := b.lock("live", rowlock.Note("seen"))
		s.until("view", "seen")
		if err := l.Unlock(b.Context()); err != nil {
			b.Fatal(err)
		}
		s.until("view", "No key is held")
	})
}

func TestHostileTextIsEscaped(t *testing.T) {
	each(t, func(b *bed) {
		key := "<script>alert(1)</script>\x1b\xff\u202e\n\ndata: x"
		note := "\"><img src=x onerror=alert(1)>\r\nevent: view\u2028"
		b.lock(key, rowlock.Note(note))
		shown := html.EscapeString(keytext.Show(key))
		for _, path := range []string{"", "key?" + url.Values{"k": {keytext.Show(key)}}.Encode()} {
			page := b.wants(path, shown)
			for _, bad := range []string{"<script>alert", "<img", "\x1b", "\u202e", "\u2028", "\r"} {
				if strings.Contains(page, bad) {
					b.Errorf("%s has %q in it", path, bad)
				}
			}
		}
		data := b.stream("page=held").until("view", shown)
		if strings.Contains(data, "<script>alert") || !strings.Contains(data, "</table>") {
			b.Errorf("the stream has %q", data)
		}
	})
}
