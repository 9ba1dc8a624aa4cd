package conn

// NotSent marks an error that came before the statement itself was sent: it has certainly not been
// applied.
type NotSent struct{ Err error }

func (e NotSent) Error() string { return e.Err.Error() }
func (e NotSent) Unwrap() error { return e.Err }

// Unsettled marks an error of a transaction that could not be rolled back either: the connection
// must be discarded. If the COMMIT was sent, the outcome is unknown; otherwise nothing can have
// been applied.
type Unsettled struct {
	Err        error
	Committing bool
}

func (e Unsettled) Error() string { return e.Err.Error() }
func (e Unsettled) Unwrap() error { return e.Err }
