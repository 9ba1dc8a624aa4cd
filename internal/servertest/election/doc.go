// Package election has the tests of elections between processes, on all databases: leaders that are
// killed, stopped, and asked to end.
package election
