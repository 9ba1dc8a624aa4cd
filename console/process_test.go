package console_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/memstore"
)

// A process is what calls itself so: neither one whose name begins so, nor one with other letters.
func TestAProcessIsShownWithWhatItHoldsAndWaitsFor(t *testing.T) {
	each(t, func(b *bed) {
		b.lock("held/1", rowlock.Note("nightly import"))
		b.lock("held/2", rowlock.MinHold(time.Minute))
		for _, other := range []string{"web-1/4711/orders2", "WEB-1/4711/orders", "batch", "nightly"} {
			l, err := b.another(other).Lock(b.Context(), "of "+other)
			if err != nil {
				b.Fatal(err)
			}
			b.keep(l)
		}
		waits := func(c *rowlock.Client, key string, opts ...rowlock.Option) {
			ctx, end := context.WithCancel(b.Context())
			b.Cleanup(end)
			go func() { _, _ = c.Lock(ctx, key, opts...) }()
		}
		fair, err := rowlock.Open(b.Pool(b), b.Dialect, &rowlock.Config{Identity: "web-1/4711/orders", Fair: true})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = fair.Close() })
		waits(fair, "of nightly", rowlock.MinHold(time.Minute))
		waits(b.client, "of batch")
		waits(b.another("web-1/4711/orders2"), "held/2")
		const page = "process?k=web-1/4711/orders"
		b.becomes("process?k=web-1/4711/orders2", ">held/2<")
		b.becomes(page, "in no order")
		text := b.wants(page, "Holds: 2 keys", "held/1", "nightly import", "held/2", ">of batch<", ">batch<", ">of nightly<")
		if strings.Contains(text, "of web-1/4711/orders2") || strings.Contains(text, "of WEB") ||
			strings.Count(text, ">held/2<") != 1 {
			b.Errorf("it has what others hold or wait for: %s", text)
		}
		b.wants("process?k=nobody", "Holds no key.", "Waits for no key.")
		b.wants("", `href="process?k=web-1%2F4711%2Forders"`)
		b.stream("page=process&k=web-1/4711/orders").until("view", "held/1")
		for _, bad := range []string{"%5Cxff", "%5Cx00", strings.Repeat("w", 129)} {
			if code, text := b.get("process?k=" + bad); code != http.StatusBadRequest {
				b.Errorf("%s is answered with %d: %s", bad, code, text)
			}
		}
	})
}

func TestAStoreThatIsNoDatabaseSaysNothingOfAProcess(t *testing.T) {
	client, err := rowlock.New(memstore.New(), &rowlock.Config{Identity: "web-1"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{TB: t, Env: &testdb.Env{}}
	t.Cleanup(func() { _ = client.Close() })
	b.serve(client, func(o *console.Options) { o.DB, o.Dialect = nil, nil })
	l, err := client.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	b.keep(l)
	if page := b.wants("process?k=web-1", "This store does not say"); strings.Contains(page, "no key") {
		t.Errorf("it says %s", page)
	}
}
