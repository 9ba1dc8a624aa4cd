// Package model is the protocol of the bridge as data and functions, and a search through all of
// its states. It is the protocol's specification: package paxosbridge and the stores implement it,
// and only its tests import it.
//
// # State
//
// The database has the key's row, which says where the key's placement is and what the last token
// was, and a floor, which outlives the row. The cluster has a record: none, open in an epoch, or
// sealed in one. Records are never removed. A token is an epoch and a count; even epochs are the
// table's, odd ones the cluster's. All else is belief: a process reads a key's placement anew at
// every step, and a store refuses a wrong one.
//
// # Steps
//
//	out   1. Depart   the holder, at the table: the row goes to the cluster, in the next epoch
//	      2. Open     any process that has read that in the row: opens the record in the row's epoch
//	back  3. Seal     the holder, at the cluster: the record's epoch is over for good
//	      4. Return   any process that has seen that: the row comes home, in the epoch after
//
// Between 1 and 2, and between 3 and 4, the key is not granted. A process that is refused then
// makes the second step.
//
// # Why it is safe
//
// A record is open in an epoch only after the row has gone to the cluster in it, because only a
// process that has read that opens it. The row comes back from that epoch only after it was sealed,
// and a sealed record is opened in a later epoch only. So the two sides never both grant. The
// process that departs or seals is the holder at that moment, so that there is no other.
//
// Tokens grow within an epoch because each is counted from the last in the same statement. They
// grow across epochs because each switch begins one. A process that stops before a switch has
// changed nothing; after it, any process can continue. A request that is late, or arrives twice,
// names an epoch or a token that is past.
//
// # What each guard is for
//
// The tests remove each one, and find the shortest trace to what it prevents:
// `go test -v -run Guard` prints these.
//
//	statement        guard                     mutant
//	table: acquire   placement                 nohomeguard
//	  new row        above the floor           nofloor
//	  reaper         placement                 reapmoved
//	Depart           token                     departtoken; with the owner, flipunfenced
//	                 owner, placement          follow from the token: departowner, departhome survive
//	                 the next epoch            noepochbump
//	                 before Open               openfirst
//	Return           epoch                     retnoepoch
//	                 placement                 follows from the odd epoch: returnhome survives
//	                 after Seal                retbeforeseal
//	Recall           a lower epoch             recalllower
//	                 a lower floor, for no row recallfloor
//	cluster: acquire open                      acquiresealed
//	                 epoch                     acquireepoch
//	Open             strictly newer epoch      reopensealed, openolder
//	Seal             holder                    sealunfenced
//	                 epoch                     sealepoch
//	                 open                      a sealed record has no holder: sealopen survives
//	records          are kept                  dropsealed
//	refused process  opens, returns            nohelpopen, nohelpreturn: the key is stuck
//	forced return    the wait                  nowait
//	                 epochs                    noforcedepoch, onebump
//	                 Supersede                 nosupersede
//	                 clients read the row      novalidate
//
// The code checks what follows from other guards all the same, because after a failover tokens
// repeat and owners do not.
//
// # A database that forgets
//
// With synchronous replication a failover forgets nothing. Otherwise, and however the key is
// audited after, in a table without eras, because the model has no clock:
//
//	forgotten  what breaks                             what still holds
//	a Return   nothing: it is repeated
//	a Depart   until the audit both sides grant, two   each placement's tokens grow; fenced writes
//	           holders work, and the table's tokens    are in order; no key is stuck
//	           are below the cluster's
//	a grant    two holders work at once with the       the sides never both grant; fenced
//	           same token; no audit can see that       writes are in order; no key is stuck
//
// An audit before the table's first grant closes that window for a Depart whose record it finds,
// open or sealed, but not for one whose Open is still in flight. An audit that also seals the next
// epoch at the cluster, for every key that the row has at the table, closes it altogether: the late
// Open is refused. See docs/decisions/0016.
//
// A table with eras has the audit before its first grant (AuditBefore). There a grant that was
// forgotten is followed by a higher token, and what the table grants after a forgotten Depart is
// above the cluster's tokens. The cluster's look at no era: a late Open, or a forced return that is
// forgotten, has it grant below the table's. See docs/decisions/0056.
//
// # Taken back by force
//
// This is for a cluster that is lost. The row goes to no placement, two epochs on. After as long as
// a read of the row counts, it goes to the table, one more epoch on. A holder of a lease of the
// cluster must have read the row within that time. The cluster may go on granting to processes that
// reach it, below the table's tokens: no process believes such a grant, and no fence accepts it.
// When the cluster is back, its record is superseded in the row's epoch before any other request.
// Two epochs are needed for that: a cluster that is back during the wait is sealed above all that
// it granted.
//
// # What is left out
//
// The model has one key, two requests in flight, one failover and one forced return. It has no
// time: a lease may expire at any step, and a server's never before its holder's own deadline. It
// has no waiters and no order among them.
package model
