package lease

// SyncRequirer is a Store that can refuse to grant where a commit is acknowledged before another
// server has it. rowlock.New with Config.RequireSync refuses a store that does not report true with
// ErrUnsupported, because a client cannot see how a store keeps what it grants.
type SyncRequirer interface {
	Store
	// RequiresSync reports whether what the store acknowledges outlives the loss of any one server.
	RequiresSync() bool
}
