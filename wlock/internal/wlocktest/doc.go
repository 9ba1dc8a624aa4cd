// Package wlocktest is a registry and lock servers of WLock in one process, with the faults of the
// real ones: a node that acts on an old copy, RENEW that revives what was released, reads of the
// past, answers that are lost, late or mangled, masters that die, group lists that shrink.
//
// All nodes share one log per group, as replicas do. A node that was paused and is behind judges by
// its copy of the moment it was paused, while what it proposes is applied to the log: that alone
// makes the faults, and none is written down as one.
package wlocktest
