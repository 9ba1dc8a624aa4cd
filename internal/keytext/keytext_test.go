package keytext_test

import (
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
)

func TestKeysAreShownAndReadBack(t *testing.T) {
	for key, want := range map[string]string{
		"nightly":           "nightly",
		"a b/ü/日":           "a b/ü/日",
		" a ":               `\x20a\x20`,
		`a\b`:               `a\\b`,
		"\xff\x00":          `\xff\x00`,
		"\x1b[2J":           `\x1b[2J`,
		"\u202eevil":        `\xe2\x80\xaeevil`,
		"\ufffd":            "\ufffd",
		"\x00rowlock\x00me": `\x00rowlock\x00me`,
	} {
		if got := keytext.Show(key); got != want {
			t.Errorf("%q is shown as %s, want %s", key, got, want)
		}
		if got, err := keytext.Read(want); err != nil || got != key {
			t.Errorf("%s is read as %q (%v), want %q", want, got, err, key)
		}
	}
}

func TestABackslashThatBeginsNothingIsRefused(t *testing.T) {
	for _, text := range []string{`a\b`, `\`, `\x1`, `\xzz`, "", `\n`} {
		if key, err := keytext.Read(text); !errors.Is(err, lease.ErrInvalidKey) {
			t.Errorf("%q is read as %q (%v), want ErrInvalidKey", text, key, err)
		}
	}
}

func FuzzWhatIsShownIsReadBack(f *testing.F) {
	f.Add("a\\x00\xff ")
	f.Fuzz(func(t *testing.T, key string) {
		if got, err := keytext.Prefix(keytext.Show(key)); err != nil || got != key {
			t.Errorf("%q is read back as %q (%v)", key, got, err)
		}
	})
}

// As pgx tells of an address that it has tried with TLS and then without.
func TestAnErrorIsOneLineThatSaysNothingTwice(t *testing.T) {
	err := errors.New("failed to connect:\n\t10.0.0.7:5432 (db): dial error\n\t10.0.0.7:5432 (db): dial error\n\t10.0.0.8:5432 (db): dial error")
	if got, want := keytext.Error(err), "failed to connect: 10.0.0.7:5432 (db): dial error 10.0.0.8:5432 (db): dial error"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
