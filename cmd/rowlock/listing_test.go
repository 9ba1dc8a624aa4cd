package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/internal/wire"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestHelpFitsAScreen(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	got := b.wants(0, "", "help")
	if wire.Updates() {
		if err := os.WriteFile("testdata/help.golden", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/help.golden")
	if err != nil || got != string(want) {
		t.Errorf("help is not testdata/help.golden (go test -run Help -update): %v\n%s", err, got)
	}
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) > 23 { // a line is left for the prompt
		t.Errorf("help has %d lines, want at most 23", len(lines))
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
}

// holds has a client of the test's hold keys.
func (b *bed) holds(keys ...string) *rowlock.Client {
	b.Helper()
	c, err := rowlock.Open(b.Pool(b.T), b.Dialect, &rowlock.Config{Identity: "web-1/4711/orders"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	for _, key := range keys {
		l, err := c.Lock(b.Context(), key, rowlock.Note("nightly import"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.Unlock(context.WithoutCancel(b.Context())) })
	}
	return c
}

func TestAnyKeyIsShownAndAccepted(t *testing.T) {
	each(t, func(b *bed) {
		for _, key := range []string{"\xff\x00\x1b[2J", `a\b`, "ünï", "'; --"} {
			b.holds(key)
			text := keytext.Show(key)
			for _, args := range [][]string{{"ls"}, {"show", text}, {"ls", text}} {
				if out := b.wants(0, "", args...); !strings.Contains(out, text) ||
					!strings.Contains(out, "web-1/4711/orders") || strings.Contains(out, "\x1b") {
					b.Errorf("rowlock %q prints %q, want %s in it and no escape sequence", args, out, text)
				}
			}
			b.wants(120, "is held by", "run", text, "--wait", "0", "--", "true")
		}
		b.wants(0, "", "run", `\xfe`, "--", "sh", "-c", `test "$ROWLOCK_KEY" = '\xfe'`)
	})
}

func TestAListingHasPages(t *testing.T) {
	each(t, func(b *bed) {
		keys := []string{"a", "b", "c", "d", "e"}
		b.holds(keys...)
		var found []string
		after := ""
		for range keys {
			out := b.wants(0, "", "ls", "-n", "2", "--after", after, "-o", "json")
			var page struct {
				Keys []struct {
					Key, Holder, Note, Owner string
					Held                     bool
					Remaining                float64 `json:"remaining_seconds"`
				}
				Next string
			}
			if err := json.Unmarshal([]byte(out), &page); err != nil {
				b.Fatal(err)
			}
			for _, k := range page.Keys {
				found = append(found, k.Key)
				if !k.Held || k.Holder != "web-1/4711/orders" || k.Note != "nightly import" || k.Remaining <= 0 {
					b.Errorf("listed as %+v", k)
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
		if fmt.Sprint(found) != fmt.Sprint(keys) {
			b.Errorf("pages have %q, want %q", found, keys)
		}
		if out := b.wants(0, "", "ls", "-n", "0", "-o", "json"); strings.Count(out, "\n") != len(keys) {
			b.Errorf("-n 0 prints %q, want a line for each key", out)
		}
	})
}

func TestWaitersAreListed(t *testing.T) {
	each(t, func(b *bed) {
		b.holds("k")
		waiting := b.command("run", "k", "--fair", "--note", "me too", "--identity", "web-2", "--", "true")
		if err := waiting.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = waiting.Process.Kill(); _ = waiting.Wait() }()
		eventually(b.T, "the waiter", func() bool {
			out, _, _ := b.does("waiters", "k")
			return strings.Contains(out, "web-2") && strings.Contains(out, "me too")
		})
		process := b.command("run", "k", "--identity", "web-3", "--", "true")
		if err := process.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = process.Process.Kill(); _ = process.Wait() }()
		eventually(b.T, "the process that waits in no order", func() bool {
			out, _, _ := b.does("waiters", "k", "-o", "json")
			return strings.Contains(out, `"kind":"process","identity":"web-3","processes":1`)
		})
		if out := b.wants(0, "", "waiters"); !strings.Contains(out, "web-1/4711/orders") {
			b.Errorf("waiters prints %q, want the holder in it", out)
		}
		if out := b.wants(0, "", "show", "k", "-o", "json"); !strings.Contains(out, `"position":1`) {
			b.Errorf("show prints %q, want the waiter at position 1", out)
		}
	})
}

// A long listing begins with what an operator looks for.
func TestTheKeyWithTheMostWaitersIsListedFirst(t *testing.T) {
	each(t, func(b *bed) {
		b.holds("a", "b")
		for key, names := range map[string][]string{"a": {"web-1"}, "b": {"web-2", "web-3"}} {
			for _, name := range names {
				c := b.client(name, true)
				ctx, end := context.WithCancel(b.Context())
				b.Cleanup(end)
				go func() { _, _ = c.Lock(ctx, key) }()
			}
		}
		eventually(b.T, "b, which two wait for", func() bool {
			out, _, _ := b.does("waiters", "-n", "1", "-o", "json")
			return strings.Contains(out, `"key":"b","queued":2`) && strings.Contains(out, `"more":true`)
		})
		if out, said, _ := b.does("waiters", "-n", "1"); strings.Contains(out, "a ") || !strings.Contains(said, "--limit") {
			b.Errorf("one key is asked for: %s%s", out, said)
		}
		if out := b.wants(0, "", "waiters", "-o", "json"); !strings.Contains(out, `"key":"a","queued":1`) ||
			strings.Contains(out, "more") {
			b.Errorf("waiters prints %s", out)
		}
	})
}

// watches starts a watch, and returns what it prints.
func (b *bed) watches() (*exec.Cmd, io.Reader) {
	b.Helper()
	cmd := b.command("watch", "--every", "50ms")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	return cmd, out
}

func TestWatchPrintsWhatHappens(t *testing.T) {
	each(t, func(b *bed) {
		b.holds("a")
		cmd, out := b.watches()
		lines := bufio.NewScanner(out)
		wants := func(want string) {
			b.Helper()
			if !lines.Scan() || !strings.Contains(lines.Text(), want) {
				b.Errorf("watch prints %q, want %q", lines.Text(), want)
			}
		}
		wants("granted   a")
		b.wants(0, "", "run", "b", "--min-hold", "1h", "--ttl", "1h", "--", "true")
		wants("granted   b")
		b.Expire(b.T, "b")
		wants("lapsed    b")
		if !strings.Contains(lines.Text(), "its MinHold is over, or") {
			b.Errorf("the normal end of a MinHold reads as a crash: %q", lines.Text())
		}
		b.Expire(b.T, "a")
		wants("expired   a")
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			b.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Errorf("after Ctrl-C: %v", err)
		}
	})
}

// On a SQLite file a writer has all of it: a watch that opened by a write saw nothing meanwhile.
func TestWatchWaitsForNoTransaction(t *testing.T) {
	each(t, func(b *bed) {
		b.holds("a")
		tx, err := b.DB.BeginTx(b.Context(), nil)
		if err == nil {
			defer func() { _ = tx.Rollback() }()
			_, err = tx.Exec(b.SQL(`UPDATE {rowlock} SET note = 'x' WHERE {key} = ?`), []byte("a"))
		}
		if err != nil {
			b.Fatal(err)
		}
		cmd, out := b.watches()
		if text, err := bufio.NewReader(out).ReadString('\n'); !strings.Contains(text, "granted   a  token") {
			b.Errorf("watch prints %q: %v", text, err)
		}
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			b.Errorf("after Ctrl-C: %v", err)
		}
	})
}

// noTimes write what is no time, and rowlock does not write.
var noTimes = map[string]string{
	"sqlite": `UPDATE {rowlock} SET expires_at = 9223372036854775807 WHERE {key} = ?`,
	"pgx":    `UPDATE {rowlock} SET expires_at = 'infinity' WHERE {key} = ?`,
	"mysql":  `UPDATE IGNORE {rowlock} SET expires_at = '0000-00-00' WHERE {key} = ?`,
}

// A row that cannot be read is told once, and other keys as ever.
func TestWatchPrintsABadRowOnce(t *testing.T) {
	each(t, func(b *bed) {
		b.holds("a", "b")
		b.Exec(b.T, noTimes[b.Driver], []byte("b"))
		cmd, out := b.watches()
		lines, bad := bufio.NewScanner(out), 0
		for n := 'c'; n < 'h' && lines.Scan(); {
			switch text := lines.Text(); {
			case strings.Contains(text, "bad       b  rowlock: "):
				bad++
			case strings.Contains(text, "granted"): // by another listing than the one before
				b.holds(string(n))
				n++
			default:
				b.Errorf("watch prints %q", text)
			}
		}
		if bad != 1 {
			b.Errorf("watch has printed the bad row %d times", bad)
		}
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			b.Errorf("after Ctrl-C: %v", err)
		}
	})
}

func TestAPrefixListsItsKeysAndNoOthers(t *testing.T) {
	each(t, func(b *bed) {
		b.holds("a", "b", "b\x00", "b\xff", "ba", "c", "a\xff\xff")
		for prefix, want := range map[string]int{"b": 4, `b\x00`: 1, `b\xff`: 1, "": 7, "a": 2, "d": 0} {
			out, _, _ := b.does("ls", prefix, "-o", "json")
			if got := strings.Count(out, `"key":`); got != want {
				b.Errorf("ls %s lists %d keys, want %d: %s", prefix, got, want, out)
			}
		}
	})
}

// interruptWhenItSays sends Ctrl-C a little after a line on standard error, and returns all of its
// lines.
func interruptWhenItSays(t *testing.T, cmd *exec.Cmd, what string) (said string) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), what) {
			time.AfterFunc(500*time.Millisecond, func() { _ = cmd.Process.Signal(syscall.SIGINT) })
		}
	}
	_ = cmd.Wait()
	return said
}

func TestTheLargestLimitListsAll(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	c := b.holds("k")
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() {
		_, err := b.holds().Lock(ctx, "k")
		waits <- err
	}()
	defer func() { cancel(); <-waits; _ = c }()
	most := itoa(math.MaxInt)
	if got := b.wants(0, "", "ls", "--limit", most); !strings.Contains(got, "k ") {
		t.Errorf("ls: %s", got)
	}
	for got := ""; !strings.Contains(got, "k "); {
		got, _, _ = b.does("waiters")
	}
	if got := b.wants(0, "", "waiters", "--limit", most); !strings.Contains(got, "k ") {
		t.Errorf("waiters: %s", got)
	}
}

// What an application has set for its own statements cuts no listing short, and stops no clock.
func TestSettingsOfASessionDoNotChangeWhoWaits(t *testing.T) {
	for _, kind := range testdb.Kinds {
		if kind.Name != "mysql" && kind.Name != "mariadb" {
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			b := newBed(t, kind.Open(t))
			b.holds("a", "b")
			for _, key := range []string{"a", "b"} {
				t.Cleanup(b.waiter(key))
			}
			for _, setting := range []string{
				"sql_select_limit=0", "sql_select_limit=1", "timestamp=1",
			} {
				var keys struct{ Keys []waitedKey }
				fromJSON(t, b.wants(0, "", "waiters", "-o", "json", "--dsn", b.dsn+"?"+setting), &keys)
				if len(keys.Keys) != 2 || keys.Keys[0].Age == 0 {
					t.Errorf("with %s are waited for %+v", setting, keys.Keys)
				}
				var of struct {
					Waiters []struct {
						Alive float64 `json:"alive_seconds"`
					}
				}
				fromJSON(t, b.wants(0, "", "waiters", "a", "-o", "json", "--dsn", b.dsn+"?"+setting), &of)
				if len(of.Waiters) != 1 || of.Waiters[0].Alive > 3600 {
					t.Errorf("with %s wait %+v", setting, of.Waiters)
				}
			}
		})
	}
}

type waitedKey struct {
	Key string
	Age float64 `json:"age_seconds"`
}

func fromJSON(t *testing.T, text string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		t.Fatal(err)
	}
}
