package history

import (
	"os"
	"path/filepath"
	"testing"
)

// A process may be killed within a line: what it had written before is read, and what is added to
// the line later is read then.
func TestATornLineIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	r, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tail, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	want := func(keys ...string) {
		t.Helper()
		events, err := tail.Read()
		if err != nil || len(events) != len(keys) {
			t.Fatalf("%v %v, want %q", events, err, keys)
		}
		for i, e := range events {
			if e.Key != keys[i] {
				t.Errorf("%q, want %q", e.Key, keys[i])
			}
		}
	}
	want()
	r.Add(Event{Kind: Grant, Key: "a"}, Event{Kind: Grant, Key: "b"})
	want("a", "b")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"k":"grant",`); err != nil {
		t.Fatal(err)
	}
	want()
	if _, err := f.WriteString(`"y":"c"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	want("c")
}

// A record that exists is another life's.
func TestARecordIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	r, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if again, err := Create(path); err == nil {
		_ = again.Close()
		t.Error("it was made again")
	}
}
