package frame

import (
	"bytes"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"
)

const (
	tenant = "D484FEEF4F6E564920FABD0DE3C58D77"
	key    = tenant + "_my_test_lock"
	token  = 844424930132969
	stamp  = 1700000000123
)

var owner = Owner{10, 1, 2, 3, 42, 0, 0, 0, 0, 0, 0, 0, 0xe1, 0x10}

func request(of Type, session int64, what Lock) *Request {
	return &Request{Type: of, Session: session, Tenant: tenant, Key: key, Owner: owner, Stamp: stamp, Lock: what}
}

func response(of Type, session int64, s Status) *Response {
	return &Response{Type: of, Session: session, Status: s, Key: key}
}

func granted(of Type, session int64) *Response {
	r := response(of, session, Success)
	r.Token, r.Owner = token, owner
	return r
}

func redirect(to string) *Response {
	r := response(Acquire, 7, Redirect)
	r.Properties = "PROPERTY_MASTER!" + to + "^"
	return r
}

func event(session int64, what Lock) *Request {
	r := request(Event, session, what)
	r.Tenant = ""
	clear(r.Owner[12:]) // events lose the process
	return r
}

// vectors are in the order of testdata/vectors.txt.
var vectors = []message{
	&Request{Type: Heartbeat, Session: 1},
	&Response{Type: Heartbeat, Session: 1},
	request(Acquire, 7, Lock{Expire: 30000, Blocked: 1, Timeout: 10000, Weight: 1, WatchID: 0x1122334455667788}),
	granted(Acquire, 7),
	response(Acquire, 7, Wait),
	redirect("10.9.8.7:41000"),
	event(19, Lock{Token: token, WatchID: 0x1122334455667788, Event: Acquired}),
	event(20, Lock{Token: -1, WatchID: -1, Event: 3}),
	request(Renew, 8, Lock{Token: token, Expire: 30000}),
	response(Renew, 8, Success),
	request(Release, 9, Lock{Token: token}),
	&Request{Type: Get, Session: 10, Tenant: tenant, Key: key, Stamp: stamp},
	granted(Get, 10),
	request(Watch, 11, Lock{
		Token: token, Watch: 2, WatchID: 5, Timeout: 60000, Expire: 30000, Weight: 1, WaitAcquire: 1,
	}),
	&Request{Type: Reboot},
	&Control{
		Op: Config, Kind: All, Session: 1,
		Payload: []byte(`{"autoRenew":false,"hashCode":0,"key":"` + tenant + `","version":0}`),
	},
	&Control{Op: Beat, Kind: Sent, Session: 2},
	&Control{Op: Beat, Kind: Ack, Session: 2, Payload: []byte{0, 0}},
	response(Release, 9, Success),
	response(Renew, 8, TokenError),
	response(Get, 10, Deleted),
	response(Watch, 11, Success),
	redirect("127.0.0.2:41001"),
}

func frames(tb testing.TB) (list [][]byte) {
	tb.Helper()
	text, err := os.ReadFile("testdata/vectors.txt")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			b, err := hex.DecodeString(line)
			if err != nil {
				tb.Fatal(err)
			}
			list = append(list, b)
		}
	}
	return list
}

func TestEveryVectorIsWrittenAndReadByteForByte(t *testing.T) {
	list := frames(t)
	if len(list) != len(vectors) {
		t.Fatalf("%d frames, %d messages", len(list), len(vectors))
	}
	for i, want := range list {
		m := vectors[i]
		if got := Append(nil, m); !bytes.Equal(got, want) {
			t.Errorf("%d: %+v is written as\n%x, want\n%x", i, m, got, want)
		}
		body, err := Read(bytes.NewReader(want), nil, MaxBody)
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		got := empty(m)
		if err := Decode(body, got); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%d: read %+v, %v, want %+v", i, got, err, m)
		}
	}
}

func empty(like message) message {
	return reflect.New(reflect.TypeOf(like).Elem()).Interface().(message)
}

func TestAMasterIsFoundAmongProperties(t *testing.T) {
	for text, want := range map[string]string{
		"PROPERTY_MASTER!1.2.3.4:5^": "1.2.3.4:5", "": "", "a!b^PROPERTY_MASTER!x:1^": "x:1", "PROPERTY_MASTER^": "",
	} {
		if got := Master(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
