// Package upgrade has no code but its tests: they write tables as this version writes them, and
// open the tables that released versions have written.
//
// testdata/schema/v3 has a database of each kind as schema version 3 leaves it, filled by the code
// of that version: leases that are held, free and expired, a key that has moved, one without tokens
// left, tickets, registered waiters, token floors, results of package once.
// docs/contributing/schema-changes.md says how the next version adds its own.
package upgrade
