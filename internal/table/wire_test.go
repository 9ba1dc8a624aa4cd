package table_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/internal/wire"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

const notifyFile = "../../testdata/wire/notify.txt"

// The processes that announce and listen.
var (
	announcer = lease.Owner{0x01}
	listener  = lease.Owner{0x02, 0xff, 3, 4, 5, 6, 7, 8, 9}
)

// wireStore is a store on tables of PostgreSQL whose instance is always the same, and so its
// channels.
func wireStore(t *testing.T) (*table.Store, *pgx.Conn) {
	t.Helper()
	kind := testdb.Kinds[slices.IndexFunc(testdb.Kinds, func(k testdb.Kind) bool { return k.Name == "postgres" })]
	e := &testdb.Env{Kind: kind, Dialect: kind.New(), Source: kind.Fresh(t)}
	e.DB = e.Pool(t)
	if err := schema.Migrate(t.Context(), e.DB, e.Dialect); err != nil {
		t.Fatal(err)
	}
	e.Exec(t, `UPDATE {rowlock_meta} SET value = '00000000-0000-4000-8000-000000000001' WHERE name = 'instance'`)
	s, _, err := table.Open(t.Context(), e.DB, e.Dialect, table.Options{Connections: 2, Timeout: 5 * time.Second, Hints: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	conn, err := pgx.Connect(t.Context(), e.Source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return s, conn
}

// wireKeys are the keys that messages are about.
var wireKeys = []string{"a", "invoice/42", "\x00\xff", strings.Repeat("k", lease.MaxKey)}

// listenFor begins to listen as process and returns once a first call has said that it does.
func listenFor(t *testing.T, s *table.Store, heard func(key string, chosen bool)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	began, ended := make(chan bool, 1), make(chan error)
	go func() {
		ended <- s.ListenAs(ctx, listener, func(key string, chosen bool) {
			select {
			case began <- true:
			default:
			}
			heard(key, chosen)
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	select {
	case <-began:
	case <-time.After(patience):
		t.Fatal("the store does not listen")
	}
}

// A process of another version listens on the same channels, and hears only what is sent on them.
func TestMessagesAreSentAsReleased(t *testing.T) {
	s, conn := wireStore(t)
	listenFor(t, s, func(string, bool) {})
	channels := make([]string, 0, 2)
	for _, v := range wire.Read(t, notifyFile, "channel of ") {
		channels = append(channels, v.Value)
	}
	for _, channel := range channels {
		if _, err := conn.Exec(t.Context(), "LISTEN "+channel); err != nil {
			t.Fatal(err)
		}
	}
	f := wire.New("The messages (NOTIFY) of PostgreSQL: channel and payload.",
		"nothing but the latency of waiters of other versions: they hear no message, and poll",
		"notification channels and messages")
	f.Section("Of the tables with this instance in rowlock_meta and no prefix, and of one process.")
	f.Add("instance", "00000000-0000-4000-8000-000000000001")
	f.Add("process", "%s", listener)
	f.Add("channel of all", "%s", channels[0])
	f.Add("channel of the process", "%s", channels[1])
	f.Section("Announce, to all listeners.")
	mustSend(t, s.Announce(t.Context(), wireKeys))
	hear(t, f, conn)
	f.Section("Wake where no process has registered, to all listeners.")
	mustSend(t, s.Wake(t.Context(), announcer, wireKeys))
	hear(t, f, conn)
	f.Section("Wake where the process has registered, to it alone.")
	mustSend(t, s.Register(t.Context(), listener, "", wireKeys, time.Minute))
	mustSend(t, s.Wake(t.Context(), announcer, wireKeys))
	hear(t, f, conn)
	f.Match(t, notifyFile)
}

func mustSend(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hear adds a message for each key.
func hear(t *testing.T, f *wire.File, conn *pgx.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, key := range wireKeys {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			t.Fatalf("no message of %q on these channels: %v", key, err)
		}
		f.Add(fmt.Sprintf("message of %q", key), "%s %s", n.Channel, n.Payload)
	}
}

func TestSentMessagesAreHeard(t *testing.T) {
	s, conn := wireStore(t)
	type message struct {
		key    string
		chosen bool
	}
	heard := make(chan message, 1)
	listenFor(t, s, func(key string, chosen bool) {
		if key != "" {
			heard <- message{key, chosen}
		}
	})
	for _, v := range wire.Read(t, notifyFile, "message of ") {
		channel, payload, _ := strings.Cut(v.Value, " ")
		if _, err := conn.Exec(t.Context(), "SELECT pg_notify($1, $2)", channel, payload); err != nil {
			t.Fatal(err)
		}
		key, err := hex.DecodeString(payload)
		if err != nil {
			t.Fatal(err)
		}
		want := message{string(key), strings.HasSuffix(channel, "_"+hex.EncodeToString(listener[:8]))}
		select {
		case got := <-heard:
			if got != want {
				t.Errorf("%s is heard as %+v, want %+v", v.Value, got, want)
			}
		case <-time.After(patience):
			t.Fatalf("%s is not heard", v.Value)
		}
	}
}
