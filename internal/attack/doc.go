//go:build linux

// Attack makes several processes of many goroutines fight over few keys on real servers whose threads
// it slows and stops at random, and checks what each process was told. See docs/attack.md.
//
//	go run ./internal/attack -db mariadb -for 60s
//
// It uses rowlock's public API alone, so that a copy of this folder runs in an older checkout, without
// its go.mod and go.sum if that checkout is a single module.
// The servers are those of scripts/with-servers: ROWLOCK_TEST_X and ROWLOCK_TEST_X_PID.
package main
