package table_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

// piped returns what was sent as plain statements, and how many of them went together.
func piped(ops []faultdb.Op) (sent []int) {
	for _, op := range ops {
		if n := strings.Count(op.Query, "-piped */"); n > 0 && op.Executes() {
			sent = append(sent, n)
		}
	}
	return sent
}

func TestFewCallsAreSentTogetherAsPlainStatements(t *testing.T) {
	r := newRig(t, on(t, "postgres"), adapter.Update, 1)
	names := numbered("key", 5)
	tokens := r.keys(t, names...)
	held := hold(t, r.clean, "held")
	c := r.gather(t)
	for _, name := range names {
		c.add(t.Context(), func(ctx context.Context) { r.wantGranted(ctx, t, name, tokens[name]) })
	}
	c.add(t.Context(), func(ctx context.Context) { r.wantReleased(ctx, t, held) })
	if sent := piped(c.run(nil)); len(sent) != 1 || sent[0] != len(names)+1 {
		t.Errorf("%v plain statements went together, want %d", sent, len(names)+1)
	}
}

// Plain statements say nothing of keys that are held: where they were in vain, the next batches
// have none.
func TestPlainStatementsThatWereInVainAreNotTriedAgainAtOnce(t *testing.T) {
	r := newRig(t, on(t, "postgres"), adapter.Update, 1)
	names := numbered("held", 5)
	for _, name := range names {
		hold(t, r.clean, name)
	}
	for round, want := range []int{1, 0, 0} {
		c := r.gather(t)
		for _, name := range names {
			c.add(t.Context(), func(ctx context.Context) {
				a, err := ask(ctx, r.store, request(name))
				if err != nil || a.Granted || a.Holder == (lease.Holder{}) {
					t.Errorf("a held key: %+v, %v", a, err)
				}
			})
		}
		if sent := piped(c.run(nil)); len(sent) != want {
			t.Errorf("batch %d: %v plain statements", round+1, sent)
		}
	}
}

// A row that the statement has returned is not told before its commit: here the answer to that
// never comes, and the rows did.
func TestAGrantWhoseCommitIsNotAcknowledgedIsResolved(t *testing.T) {
	r := newRig(t, on(t, "postgres"), adapter.Update, 1)
	names := numbered("key", 5)
	tokens := r.keys(t, names...)
	c := r.gather(t)
	for _, name := range names {
		c.add(t.Context(), func(ctx context.Context) { r.wantGranted(ctx, t, name, tokens[name]) })
	}
	ops := c.run(faultdb.OnMatch("acquire-piped", faultdb.Nth(1, faultdb.LoseReply())))
	confirmed := 0
	for _, op := range ops {
		if op.Executes() {
			confirmed += strings.Count(op.Query, "rowlock confirm */")
		}
	}
	if confirmed != len(names) {
		t.Errorf("%d of %d grants were confirmed", confirmed, len(names))
	}
}

// Only a pipeline that grants nothing is relaxed.
func TestOnlyAPipelineOfReleasesIsRelaxed(t *testing.T) {
	r := newRig(t, on(t, "postgres"), adapter.Update, 1)
	r.store = r.open(t, r.pool, table.Options{Strategy: adapter.Update, Connections: 1, Timeout: 5 * time.Second, Relax: true})
	for _, grants := range []bool{false, true} {
		tokens := r.keys(t, "key")
		c := r.gather(t)
		for _, name := range numbered("held", 3) {
			l := hold(t, r.clean, name)
			c.add(t.Context(), func(ctx context.Context) { r.wantReleased(ctx, t, l) })
		}
		if grants {
			c.add(t.Context(), func(ctx context.Context) { r.wantGranted(ctx, t, "key", tokens["key"]) })
		}
		relaxed, durable := 0, 0
		for _, op := range c.run(nil) {
			if op.Executes() {
				relaxed += strings.Count(op.Query, "release-piped-relaxed */")
				durable += strings.Count(op.Query, "release-piped */")
			}
		}
		if want := map[bool][2]int{false: {3, 0}, true: {0, 3}}[grants]; want != [2]int{relaxed, durable} {
			t.Errorf("grants: %t: %d relaxed and %d durable releases", grants, relaxed, durable)
		}
	}
}
