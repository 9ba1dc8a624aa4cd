// Package memstore keeps the rows of leases in memory: the reference of what a [lease.Store] does, and the store of tests
// that want virtual time.
//
// One mutex makes every call atomic, and the clock is time.Now, so that in a testing/synctest bubble a lease expires
// when the bubble's clock says so. Nothing here is durable and nothing is shared between processes: it serves tests.
package memstore
