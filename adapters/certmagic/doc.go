// Package certrowlock has the processes of a cluster obtain and renew each certificate once, with
// certmagic 0.25 (github.com/caddyserver/certmagic), under the locks of rowlock.
//
//	storage, err := certrowlock.New(&certmagic.FileStorage{Path: "/shared"}, locks)
//	…
//	certmagic.Default.Storage = storage
//
// The storage that it wraps keeps the certificates, wherever that is. Its own locks are not used:
// those of a file system judge by files' times, and outlive a killed process.
//
// # What is guaranteed
//
// One process holds a name at a time: by the key's row, whose lease the client renews for as long as
// its process lives. RenewLockLease asks for nothing. It returns rowlock.ErrLost if the lock is lost,
// so that certmagic stops to retry under it. After kill -9 another process has the name within
// Config.TTL.
//
// certmagic gives no ctx to what runs under a lock, so that none is ended when the lock is lost: a
// process that was stopped for longer than Config.TTL goes on beside another, and may write a
// certificate more. That costs an order at the authority, and no more. Unlock then returns
// rowlock.ErrLost, which certmagic logs. Held returns the lock, for the Token and the Context of what
// you run under a name yourself.
//
// certmagic gives Unlock a name and nothing else: that of a goroutine whose lock was lost frees the
// newer lock of the same process on that name.
package certrowlock
