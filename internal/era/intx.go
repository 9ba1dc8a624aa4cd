package era

import "github.com/rowlockdb/rowlock/lease"

// InTx is the start of the newest era, and its text for a statement in a transaction of the
// application's own. The text fails on another server than the one that has told of the era, and is
// "" if no such transaction may grant now.
func (e *Eras) InTx() (start lease.Token, text string) {
	h := e.learned.Load()
	if e.d.EraInTx == nil || h == nil || h.Newest < e.Newest() || int64(h.Newest) > e.bounds.Last.Load() {
		return unlearned, ""
	}
	return h.Newest, e.d.EraInTx(*h)
}

// Strayed is for a transaction of the application's in which the text has failed. The others would
// fail, too, until a session learns of the history again.
func (e *Eras) Strayed() { e.learned.Store(nil) }
