// Package fault tests a client whose connections fail: no lease is left behind, no call outlasts
// its bound, and the pool stays usable.
package fault
