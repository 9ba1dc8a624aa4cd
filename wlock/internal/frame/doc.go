// Package frame is the wire format of WLock: frames, the messages of lock servers, and those of the
// registry. Each layout is written once, and read and written by the same lines.
//
// A decoder takes bytes of a peer that may be broken or hostile: it never panics, keeps nothing of
// its input, and allocates for what has arrived and not for what a length claims.
package frame
