// Package model is the protocol of the bridge as data and functions, and a search through all that can come of it. It is the protocol's
// specification: package paxosbridge and the stores do what is written here, and nothing imports it but its tests.
//
// # State
//
// The database has the key's row, which says where the key's home is and what the last token was, and a floor, which outlives the row. The
// cluster has a record: none, open in an epoch, or sealed in one; records are never removed. A token is an epoch and a count; even epochs
// are the table's, odd ones the cluster's. Everything else is belief: what a process takes for the key's home is asked anew at every step,
// and can only be refused.
//
// # Steps
//
//	out   1. Depart   the holder, at the table: the row goes to the cluster, in the next epoch
//	      2. Open     anybody who has read that in the row: the record is opened in the row's epoch
//	back  3. Seal     the holder, at the cluster: the record's epoch is over for good
//	      4. Return   anybody who has seen that: the row comes home, in the epoch after
//
// Between 1 and 2, and between 3 and 4, nobody is granted the key, until somebody takes the second step: whoever is refused does.
//
// # Why it is safe
//
// A record is open in an epoch only after the row has gone to the cluster in it, since only who has read that opens it. The row comes back
// from that epoch only after it was sealed, and what is sealed is opened in a later epoch only. So never do both sides grant. Whoever
// departs or seals is the holder at that moment, so that nobody else is. Tokens grow within an epoch because each is counted from the last
// in the same statement, and across epochs because each switch begins one. A process that stops before a switch has changed nothing;
// after it, anybody can go on. A request that is late, or comes twice, names an epoch or a token that is past.
//
// # What each guard is for
//
// The tests take each one away, and find the shortest way to what it prevents: `go test -v -run Guard` tells these.
//
//	statement            guard                          mutant
//	table: acquire       home                           nohomeguard
//	       new row       above the floor                nofloor
//	       reaper        home                           reapmoved
//	Depart               token                          departtoken; with the owner, flipunfenced
//	                     owner, home                    follow from the token: departowner, departhome survive
//	                     the next epoch                 noepochbump
//	                     before Open                    openfirst
//	Return               epoch                          retnoepoch
//	                     home                           follows from the epoch, which is odd: returnhome survives
//	                     after Seal                     retbeforeseal
//	Recall               a lower epoch                  recalllower
//	                     a lower floor, for no row      recallfloor
//	cluster: acquire     open                           acquiresealed
//	                     epoch                          acquireepoch
//	Open                 strictly newer epoch           reopensealed, openolder
//	Seal                 holder                         sealunfenced
//	                     epoch                          sealepoch
//	                     open                           follows from the holder, whom a sealed record has not: sealopen survives
//	records              are kept                       dropsealed
//	whoever is refused   opens, returns                 nohelpopen, nohelpreturn: nobody is granted the key ever again
//	forced return        the wait                       nowait
//	                     epochs                         noforcedepoch, onebump
//	                     Supersede                      nosupersede
//	                     clients look at the row        novalidate
//
// What follows from other guards is asked all the same: after a failover tokens repeat, and owners do not.
//
// # A database that forgets
//
// With synchronous replication a failover forgets nothing. Otherwise, and however the key is audited after:
//
//	forgotten   what breaks                                            what still holds
//	a Return    nothing: it is done again
//	a Depart    until the audit both sides grant, to two who work,     each home's tokens grow; fenced writes are in order;
//	            and the table's tokens are below the cluster's         nobody is stuck
//	a grant     two work at once, and with the same token, which       never do both sides grant; fenced writes are in order;
//	            no audit can see                                       nobody is stuck
//
// An audit that comes before the table grants anything closes that window for Departs whose record it finds, open or sealed, and not for
// one whose Open is still on its way. One that also seals the next epoch at the cluster, for every key that the row has at the table,
// closes it altogether: the late Open is refused. See docs/decisions/0016.
//
// # Taken back by force
//
// For a cluster that is lost. The row goes to nobody, two epochs on; after as long as a look at the row counts, to the table, one more on.
// Who works under a lease of the cluster must have looked at the row within that time. The cluster may go on granting meanwhile to whom
// it reaches, below the table's tokens; nobody believes that, and no fence lets it through. When it is back, its record is superseded
// in the row's epoch before anything else. It is for this that there are two epochs: a cluster that is back during the wait is sealed
// above all that it granted.
//
// # What is left out
//
// One key, two requests on their way, one failover, one forced return. Time is left out: a lease may run out at any step, and a server's
// never before its holder's own deadline. So is who waits, and in which order.
package model
