// Package failover tests what clients do when their primary is lost, replaced or turns read-only.
// The servers are real, with real replication, and belong to the tests alone.
package failover
