// Package clienttest tests the client where no database is needed: on a store in memory that
// fails and stalls as a test tells it to, in virtual time. Its ordinary files are the rig, which
// the tests of package rowlock use too.
package clienttest
