package oncehttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/wire"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

const wireFile = "../../testdata/wire/oncehttp.txt"

// responses are what a handler may have answered, by name, as Decode returns it.
var responses = []struct {
	name string
	is   oncehttp.Stored
}{
	{"status alone", oncehttp.Stored{Status: 204, Header: http.Header{}}},
	{"JSON", oncehttp.Stored{
		Status: 201, Body: []byte(`{"order":"42 <&>"}`),
		Header: http.Header{"Content-Type": {"application/json"}, "Location": {"/orders/42"}},
	}},
	{"header of bytes", oncehttp.Stored{
		Status: 200, Body: []byte{0x00, 0xff, 0x80},
		Header: http.Header{"X-Name": {"caf\xe9 \xff", "ü"}, "X-Two": {"1", "2"}},
	}},
}

func TestResponsesAreKeptAsReleased(t *testing.T) {
	f := wire.New("What oncehttp keeps: responses as strings of Go, and the fingerprints of requests.",
		"repeats at a process of another version: it finds a response or fingerprint that it cannot read",
		"what is stored for later")
	f.Section("A response: the format, 1, and JSON. A header has a character for each byte.")
	for _, r := range responses {
		text, err := oncehttp.Encode(r.is.Status, r.is.Header, r.is.Body)
		if err != nil {
			t.Fatal(err)
		}
		f.Add("response "+r.name, "%q", text)
	}
	f.Section("A header that is not kept leaves nothing: Set-Cookie, Date, what Connection names.")
	text, err := oncehttp.Encode(200, http.Header{
		"Set-Cookie": {"session=1"}, "Date": {"now"}, "Connection": {"X-Hop"}, "X-Hop": {"1"}, "X-Kept": {"2"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Add("fleeting", "%q", text)
	f.Section("The fingerprint of a request.")
	for _, r := range []*http.Request{
		request("POST", "/orders?a=1", "application/json", `{"id":7}`),
		request("PUT", "/orders?a=1", "application/json", `{"id":7}`),
		request("POST", "/orders", "", ""),
	} {
		body := r.Header.Get("X-Body")
		f.Add(fmt.Sprintf("fingerprint of %s %s %s %s", r.Method, r.URL, r.Header.Get("Content-Type"), body), "%x",
			oncehttp.FingerprintOf(r, []byte(body)))
	}
	f.Match(t, wireFile)
}

func request(method, target, contentType, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("X-Body", body)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

func TestKeptResponsesAreRead(t *testing.T) {
	kept := wire.Read(t, wireFile, "response ")
	for i, v := range kept {
		text, err := strconv.Unquote(v.Value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := oncehttp.Decode([]byte(text))
		if want := responses[i]; err != nil || v.Name != want.name || !reflect.DeepEqual(got, want.is) {
			t.Errorf("%s is read as %+v, %v, want %+v", v.Name, got, err, want.is)
		}
	}
}
