package queue

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// InTx is a hand-over to the next waiter of this process by the COMMIT of the holder's transaction.
// The waiter has left its queue. An acknowledged COMMIT ends it with Made, all else with TakeBack.
type InTx struct {
	returns *Releaser
	queue   *Attempts
	next    *waiter
	pass    adapter.PassInTx
	grants  Grants // none before Send
}

// InTx takes the waiter that gets l out of its queue. It returns nil if the transaction must
// release l: no such waiter is next, or other processes are.
func (r *Releaser) InTx(l lease.Lease) *InTx {
	q, competes := r.Queue.(*Attempts)
	if !competes || q.keys.len(l.Key) == 0 {
		return nil
	}
	if pass := r.Store.PassesInTx(l); pass != nil {
		if w := q.keys.claimInTx(l.Key, !q.notify.wakes.Load()); w != nil {
			return &InTx{returns: r, queue: q, next: w, pass: pass}
		}
	}
	return nil
}

// Send hands l over in tx, under a fresh owner. What is sent with the COMMIT counts from now, too.
func (p *InTx) Send(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	to := p.next.call.Want.Request(p.next.key)
	p.grants = Grants{Sent: time.Now(), HandedOver: true, Each: []Grant{{Req: to}}}
	token, err := p.pass(ctx, tx, lease.HandOver{From: l, To: to})
	p.grants.Each[0].Answer = lease.Acquired{Granted: true, Token: token}
	return err
}

// Made tells the waiter of its lease: the COMMIT was acknowledged. A waiter that has left has no
// use for it, and one whose lease the COMMIT has taken half of asks anew.
func (p *InTx) Made(ctx context.Context) {
	if time.Since(p.grants.Sent) >= p.next.call.Want.TTL/2 {
		p.queue.keys.giveBack(p.next)
	} else if p.queue.keys.give(p.next, p.grants) {
		return
	}
	p.returns.Leases(ctx, p.grants.Leases())
}

// TakeBack puts the waiter back, which asks under another owner. The COMMIT may be done all the
// same, now or later, and a function that ends its transaction by itself commits the hand-over
// without one. So the next owner's lease is cleaned up. The holder releases its own.
func (p *InTx) TakeBack() {
	p.returns.Orphans.AddLeases(p.grants.Leases()...)
	p.queue.keys.giveBack(p.next)
}

// Strayed is called before TakeBack if the transaction was at another server than the store's.
func (p *InTx) Strayed() { p.returns.Store.TxPasser.Strayed() }
