// Command mutants breaks one guard of rowlock's SQL at a time, and fails unless the tests notice.
//
// A guard is a condition, a lock or a bound of a statement without which the statement grants,
// keeps or passes on what it must not: owner = $2, expires_at > now, FOR UPDATE, token + 1. The
// program finds the guards in dialect/*/*.sql itself, so that a new statement has its mutants
// without a list of them. It names each by database, file, statement and guard.
//
// It changes no file. The tests are built once, with go build's -overlay, and read a statement's
// mutated text while they run: see hook.go. The few guards that stand in Go are built one by one.
//
// A mutant is killed by the first test that fails. The tests that are most likely to fail run
// first. The listing in dialect/testdata would kill every mutant and shows nothing, so it never
// runs. A mutant that survives every test is an error unless explained.txt says why it may.
//
//	go run ./internal/mutants -db sqlite
//	scripts/with-servers --no-sync postgres mariadb mysql -- go run ./internal/mutants
package main
