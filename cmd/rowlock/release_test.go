package main

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// An operator is told which session keeps a key that its holder has fenced, and ends it on request.
// A file has no sessions to end.
func TestReleaseNamesTheSessionOfAFenceAndEvictEndsIt(t *testing.T) {
	each(t, func(b *bed) {
		if b.Dialect.Name() == "sqlite" {
			b.Skip("a file has one writer and no sessions")
		}
		c, err := rowlock.Open(b.Pool(b.T), b.Dialect, &rowlock.Config{TTL: time.Minute, EvictAfter: -1})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		l, err := c.Lock(b.Context(), "fenced")
		if err != nil {
			b.Fatal(err)
		}
		defer runtime.KeepAlive(l) // a forgotten one is released
		tx, err := b.DB.BeginTx(context.Background(), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer tx.Rollback()
		if err := l.Fence(b.Context(), tx); err != nil {
			b.Fatal(err)
		}
		b.wants(3, "session ", "release", "fenced", "--force", "--reason", "stuck")
		out := b.wants(0, "", "release", "fenced", "--force", "--reason", "stuck", "--evict")
		if !strings.Contains(out, "is free") {
			b.Errorf("release prints %q", out)
		}
		if tx.Commit() == nil {
			b.Error("the fenced transaction was committed, and its session was to be ended")
		}
	})
}

func TestReleaseDeposesALiveHolderAndLeavesARecord(t *testing.T) {
	each(t, func(b *bed) {
		c, err := rowlock.Open(b.Pool(b.T), b.Dialect, &rowlock.Config{
			Identity: "web-1/4711/orders", TTL: time.Minute, RenewEvery: 200 * time.Millisecond,
		})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		l, err := c.Lock(b.Context(), `a\b`, rowlock.Note("nightly import"))
		if err != nil {
			b.Fatal(err)
		}
		next := make(chan error, 1)
		go func() {
			n, err := c.Lock(b.Context(), `a\b`)
			if err == nil {
				err = n.Unlock(context.Background())
			}
			next <- err
		}()
		b.wants(1, "its token is", "release", `a\\b`, "--force", "--reason", "stuck", "--token", "99")
		out := b.wants(0, "", "release", `a\\b`, "--force", "--reason", "stuck since Friday", "--by", "ada",
			"--token", itoa(int(l.Token())))
		if !strings.Contains(out, "is free") || !strings.Contains(out, "nightly import") {
			b.Errorf("release prints %q", out)
		}
		if err := <-next; err != nil {
			b.Errorf("the next waiter: %v", err)
		}
		tx, err := b.DB.BeginTx(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Fence(b.Context(), tx); err == nil {
			b.Error("the deposed holder's fence passes")
		}
		_ = tx.Rollback()
		<-l.Context().Done() // within one renewal
		if cause := context.Cause(l.Context()); cause != rowlock.ErrLost {
			b.Errorf("the deposed holder's lock ended with %v", cause)
		}
		b.wants(1, "is free", "release", `a\\b`, "--force", "--reason", "again")
		b.wants(1, "is free", "release", "never", "--force", "--reason", "again")

		out = b.wants(0, "", "history", `a\\b`)
		for _, want := range []string{`a\\b`, "ada", "stuck since Friday", "web-1/4711/orders"} {
			if !strings.Contains(out, want) {
				b.Errorf("history prints %q, want %s in it", out, want)
			}
		}
		var records []struct {
			By, Reason, Note string
			Token            rowlock.Token
			Raised           rowlock.Token `json:"raised_to"`
			Event            string
		}
		if err := json.Unmarshal([]byte(b.wants(0, "", "history", "-o", "json")), &records); err != nil {
			b.Fatal(err)
		}
		if len(records) != 1 || records[0].By != "ada" || records[0].Token != l.Token() ||
			records[0].Raised <= l.Token() || // and above the era of the command
			records[0].Event != "forced" {
			b.Errorf("the records are %+v", records)
		}
		b.wants(0, "no such records", "history", "--begins", "b")
	})
}

func TestHistoryListsTheTraceOfAKey(t *testing.T) {
	each(t, func(b *bed) {
		c, err := rowlock.Open(b.Pool(b.T), b.Dialect, &rowlock.Config{
			Identity: "web-1/4711/orders", Trace: rowlock.TraceConfig{On: true},
		})
		if err != nil {
			b.Fatal(err)
		}
		key := "a\x00\xff"
		for _, k := range []string{key, key, "other"} {
			l, err := c.Lock(b.Context(), k, rowlock.Note("nightly import"))
			if err != nil {
				b.Fatal(err)
			}
			if err := l.Unlock(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		if err := c.Close(); err != nil { // which writes the trace
			b.Fatal(err)
		}
		out := b.wants(0, "", "history", `a\x00\xff`)
		if strings.Count(out, "granted") != 2 || !strings.Contains(out, "web-1/4711/orders (nightly import)") {
			b.Errorf("history prints %q", out)
		}
		var events []struct {
			Event, Key, Holder string
			Token              rowlock.Token
		}
		if err := json.Unmarshal([]byte(b.wants(0, "", "history", "-o", "json", "-n", "2")), &events); err != nil {
			b.Fatal(err)
		}
		if len(events) != 2 || events[0].Key != "other" || events[1].Key != `a\x00\xff` || events[1].Event != "granted" ||
			events[1].Token < 2 {
			b.Errorf("the events are %+v", events)
		}
		if out := b.wants(0, "", "history", "--begins", "o"); strings.Count(out, "granted") != 1 {
			b.Errorf("history of a prefix prints %q", out)
		}
	})
}

func TestReleaseNeedsForceAndAReason(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	b.holds("k")
	b.wants(2, "add --force", "release", "k")
	b.wants(2, "--reason", "release", "k", "--force")
	b.wants(2, "tokens begin at 1", "release", "k", "--force", "--reason", "x", "--token", "0")
	b.wants(2, "at least 1", "history", "--limit", "0")
	if out := b.wants(0, "", "show", "k"); !strings.Contains(out, "held") {
		b.Errorf("after refused releases the key is %q", out)
	}
}
