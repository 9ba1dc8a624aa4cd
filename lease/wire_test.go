package lease_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/wire"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/reaper"
)

const wireFile = "../testdata/wire/lease.txt"

// Every database that runs rowlock has these numbers in its rows.
func TestNumbersInRowsAreAsReleased(t *testing.T) {
	f := wire.New("The numbers of package lease that rows are made of.",
		"every table that exists, and processes of the released versions beside this one",
		"bucket of a key, epoch in a token")
	f.Add("MaxKey", "%d", lease.MaxKey)
	f.Add("MaxNote", "%d", lease.MaxNote)
	f.Add("MaxIdentity", "%d", lease.MaxIdentity)
	f.Add("MaxStoredNote", "%d", lease.MaxStoredNote)
	f.Add("identity and note in a row", "%q", lease.StoredNote("web-1/4711/orders", "nightly import"))
	f.Add("identity without a note in a row", "%q", lease.StoredNote("web-1/4711/orders", ""))
	f.Add("Reserved", "%q", lease.Reserved)
	f.Add("key of the reaper's election", "%q", reaper.Key)
	f.Add("EpochShift", "%d", lease.EpochShift)
	f.Add("MaxToken", "%d", lease.MaxToken)
	f.Add("PlacementTable", "%d", lease.PlacementTable)
	f.Add("PlacementTransaction", "%d", lease.PlacementTransaction)
	f.Add("PriorityStep", "%s", lease.PriorityStep)

	f.Section("An owner: 16 bytes in a row, in hexadecimal wherever people read it.")
	f.Add("owner", "%s", lease.Owner{0, 1, 0x7f, 0x80, 0xfe, 0xff, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add("zero owner", "%s", lease.Owner{})

	f.Section("A token: the epoch, shifted, and a counter.")
	for _, epoch := range []int64{0, 1, 2, 255, lease.Epoch(lease.MaxToken)} {
		for _, counter := range []int64{0, 1, 1<<lease.EpochShift - 1} {
			name := fmt.Sprintf("token of epoch %d counter %d", epoch, counter)
			f.Add(name, "%d", lease.EpochStart(epoch)|lease.Token(counter))
		}
	}

	f.Section("The bucket whose floor the tokens of a key begin above, by the key.")
	for _, key := range []string{
		"", "a", "A", "a ", "invoice/42", "á", "\x00", "\xff\xfe", reaper.Key, strings.Repeat("k", lease.MaxKey),
	} {
		f.Add(fmt.Sprintf("bucket of %q", key), "%d", lease.Bucket(key))
	}

	f.Section("How much earlier than it came a ticket is placed, by its priority.")
	for _, p := range []int{1, 2, 10} {
		f.Add(fmt.Sprintf("head start of priority %d", p), "%s", lease.Ticket{Priority: p}.HeadStart())
	}
	f.Match(t, wireFile)
}

// Scripts and other languages compare what they have stored with what is written now.
func TestFormsOfATokenAreAsReleased(t *testing.T) {
	f := wire.New("A token in each form that is written for people and programs.",
		"scripts, and data that have a token beside them", "a token:")
	for _, token := range []lease.Token{0, 9, 10, 104066655287758849, lease.MaxToken, math.MaxInt64} {
		name := fmt.Sprintf(" of %d", int64(token))
		f.Add("String"+name, "%s", token)
		f.Add("Text"+name, "%s", token.Text())
		value, err := token.Value()
		if err != nil {
			t.Fatal(err)
		}
		f.Add("value in a database"+name, "%T %v", value, value)
		text, err := json.Marshal(map[lease.Token]lease.Token{token: token})
		if err != nil {
			t.Fatal(err)
		}
		f.Add("JSON, as a name and a value"+name, "%s", text)
		var line bytes.Buffer
		slog.New(slog.NewJSONHandler(&line, &slog.HandlerOptions{ReplaceAttr: alone})).Info("", "token", token)
		f.Add("slog"+name, "%s", strings.TrimSpace(line.String()))
	}
	f.Match(t, "../testdata/wire/token.txt")
}

// alone leaves the attributes of a line.
func alone(_ []string, a slog.Attr) slog.Attr {
	if a.Key != "token" {
		return slog.Attr{}
	}
	return a
}

func TestTokensInRowsAreRead(t *testing.T) {
	for _, v := range wire.Read(t, wireFile, "token of ") {
		var epoch, counter int64
		var token lease.Token
		_, err := fmt.Sscanf(v.Name+" "+v.Value, "epoch %d counter %d %d", &epoch, &counter, &token)
		if err != nil {
			t.Fatal(err)
		}
		if got := lease.Epoch(token); got != epoch {
			t.Errorf("token %d is of epoch %d, want %d", token, got, epoch)
		}
		if got := int64(token - lease.EpochStart(epoch)); got != counter {
			t.Errorf("token %d has counter %d, want %d", token, got, counter)
		}
	}
	if lease.EpochStart(lease.Epoch(math.MaxInt64)) > lease.MaxToken {
		t.Error("the last epoch begins after the last token")
	}
}
