// Package servertest is the rig for tests on real databases: a Scene is one database in one test,
// with clients, transactions and child processes on it. The tests are in the packages below it.
package servertest
