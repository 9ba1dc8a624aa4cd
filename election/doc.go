// Package election keeps one of several processes at work: the leader.
//
//	err := election.Run(ctx, locks, "scheduler", func(ctx context.Context, l *rowlock.Lock) error {
//		for {
//			// … find what is due, and do it in a transaction that begins with l.Fence …
//			select {
//			case <-tick:
//			case <-ctx.Done(): // led long enough: end what is under way, and return
//				return ctx.Err()
//			}
//		}
//	})
//
// An election is a lock that its candidates want for ever. Leading is holding it, and the term is
// its fencing token. So an election adds no table and no connection, and thousands of them share
// the watchdog and the poller of one client.
//
// # What is guaranteed
//
// Terms strictly increase, and a write that begins with [rowlock.Lock.Fence] is refused if a later
// term has begun: what package rowlock guarantees of tokens and fences, without a clock. A process
// runs its function for an election at most once at a time, because Run campaigns again only after
// that function has returned.
//
// Without a fence, one leader at a time is a soft guarantee, as with any lease. The ctx of lead
// ends before another candidate can lead, as far as the clocks behave that package rowlock names.
// But a function needs time to notice, and a process may be stopped. So fence what must not be done
// twice, or do it with package once.
//
// # When a leader ends
//
//   - Its process dies: another candidate leads when the lease has run out, after one poll at the
//     latest: Config.TTL + Config.PollMax, and what the database takes.
//   - The ctx of Run ends: lead's ctx ends with it, and the lease is renewed until lead has
//     returned or [Drain] has passed. Only then is the leadership released, so that the next leader
//     does not begin while this one finishes. The next one is notified at once.
//   - The lease is lost: lead's ctx ends at once with cause [rowlock.ErrLost]. So it does when
//     MaxHold or MaxIdle ends the lock; see [With]. Another candidate may lead by then.
//   - lead returns: the candidate resigns. It stands again after [Rest].
//   - lead panics or calls runtime.Goexit: the leadership is released, and the panic goes on.
package election
