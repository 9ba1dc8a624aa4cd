// Package proxy stands between clients and a database server. It cuts, stalls and delays what
// passes in either direction, and it understands the protocols of PostgreSQL and MySQL well enough
// to cut between the execution of a statement and its reply, for each kind of statement.
package proxy
