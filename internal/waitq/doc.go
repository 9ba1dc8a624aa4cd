// Package waitq is who waits in this process: a line for each key, of which only the head ever asks the database, the runs in
// which a process keeps a key among its own, and the one poller that looks at all waited-for keys in a single statement.
//
// Nothing here talks to a store, and nothing here decides who owns a key.
package waitq
