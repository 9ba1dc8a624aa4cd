package oncehttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

var (
	errNoKey = errors.New("the header Idempotency-Key is missing: send a key of your own with each request, " +
		"and the same with its repeats")
	errBadKey = errors.New("the header Idempotency-Key is malformed")
)

// parseKey reads the header's fields: one structured-field string ("…", RFC 9651) as the draft has
// it, or the bare word that most clients send. Both spell the same key. Parameters after the string
// are ignored.
func parseKey(fields []string) (string, error) {
	switch len(fields) {
	case 0:
		return "", errNoKey
	case 1:
	default:
		return "", fmt.Errorf("%w: it is there %d times", errBadKey, len(fields))
	}
	key, err := parseField(strings.Trim(fields[0], " \t"))
	if err != nil {
		return "", err
	}
	if err := lease.CheckKey(key); err != nil {
		return "", fmt.Errorf("%w: a key has 1 to %d bytes, this has %d", errBadKey, lease.MaxKey, len(key))
	}
	return key, nil
}

func parseField(field string) (string, error) {
	if !strings.HasPrefix(field, `"`) {
		return bare(field)
	}
	key, rest, err := quoted(field[1:])
	if err == nil && rest != "" && rest[0] != ';' {
		err = fmt.Errorf("%w: something follows the string", errBadKey)
	}
	return key, err
}

// quoted reads an sf-string up to its closing quote.
func quoted(s string) (key, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"':
			return b.String(), s[i+1:], nil
		case c == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", "", fmt.Errorf(`%w: in a string, a backslash stands before " or \`, errBadKey)
			}
			c = s[i]
		case c < ' ' || c > '~':
			return "", "", fmt.Errorf("%w: byte %#x in a string, which is of printable ASCII", errBadKey, c)
		}
		b.WriteByte(c)
	}
	return "", "", fmt.Errorf("%w: the string has no closing quote", errBadKey)
}

// bare reads a key without quotes. A comma would be a list, which a proxy makes of two headers.
func bare(s string) (string, error) {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || strings.IndexByte(`",;\`, c) >= 0 {
			return "", fmt.Errorf("%w: byte %#x in a key without quotes", errBadKey, c)
		}
	}
	return s, nil
}

// shared is what SharedKeys returns. It is no account's name, because rowlock reserves its prefix.
const shared = lease.Reserved + "shared"

// SharedKeys is the Config.Tenant of an API without accounts: all clients share their keys. A
// client that knows or guesses another's key and request is answered with the other's stored
// response. Let clients send random keys of 128 bits, and store nothing in a response that only one
// client may read.
//
// A Tenant that has accounts and also serves guests can return SharedKeys(r) for a guest.
func SharedKeys(*http.Request) string { return shared }

// ownerOf returns the tenant of a request's row. It reports false for a request without an account,
// whose keys would otherwise be shared by mistake.
func ownerOf(tenant string) (string, bool) {
	switch tenant {
	case "":
		return "", false
	case shared:
		return "", true
	}
	return tenant, true
}
