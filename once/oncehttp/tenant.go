package oncehttp

import (
	"net/http"

	"github.com/rowlockdb/rowlock/lease"
)

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
