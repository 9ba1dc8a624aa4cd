//go:build linux

package main

const reportHead = `# What rowlock survives, in figures

You get: which faults rowlock was tested under, what was checked, and what was found. A run of
` + "`make chaos`" + ` writes this page: it starts servers and worker processes of its own, breaks them, and
checks what each worker was told and what the data say. [chaos.md](chaos.md) says how, and what
[each fault](chaos.md#what-it-does) breaks. [Controls](chaos.md#controls-what-must-be-found) show
that it finds a guard that is missing.

A round is one plan, drawn from a seed: workers begin in peace, one fault strikes for some seconds,
and the workers must go on when it is over. "mixed" has several faults at once.

Checked in every round:

- a token of a key has one owner, and a grant that was asked for after another has a higher token;
- no write under a lower token is committed, and no Unlock of a false holder succeeds;
- each fenced counter is the number of acknowledged increments, and of those with an unknown outcome
  that the data contain;
- each effect of once is there if a caller was told so, and at most once;
- a reader's token is not a writer's, and no writer comes between the reader's two reads;
- no lock is lost in the first two thirds of its TTL;
- a loss is told at its deadline, within 0.5 s and the times in which the process stood still;
- no key stays held for more than a lease after the last worker has ended;
- locks are granted again when the fault is over;
- no connection and no goroutine is left behind.

Where a server's clock is set, leases may end early or late; tokens and fenced data must hold.
`

const resultsHead = `"Times struck" counts what the fault did: processes killed, statements cut, settings changed.
"ErrLost" counts the calls of Unlock, UnlockTx and Fence that returned it.

`

const timesHead = `- "Longest wait" is that of a call that was granted its lock. Callers give up after 2 s.
- "Next grant" is the time from the end of the fault to the first grant.
- "Overlaps" are times in which two processes both believed that they held a key. Stopped processes
  and clocks that are set cause them. The fence refuses the writes of the first.
- "Expired when granted" are locks whose lease had ended when the call returned. Their Context is
  done from the start.
- "Rows left" are those of free keys, of results that once keeps, and of killed processes: no client
  is left at the end to clean up.

`

const failoversHead = `- "Lossy" failovers have undone commits that were acknowledged.
- "Repeated" tokens were granted to two holders; "fallen" ones were granted after a higher one.
- "Next grant" is the time from when the new primary took writes to the first lock that it granted:
  the median, and the longest.
- "Writes of holders from before" are the fenced transactions that a holder of a lock from before
  the failover began after it: how many were committed, because the lock's row had survived, and
  how many were refused.

| database | fault | failovers | lossy | repeated | fallen | next grant | writes of holders from before |
|---|---|---|---|---|---|---|---|
`

const cutHead = `Each cell has three numbers: connections cut before the statement was executed, connections cut
after its execution and before the end of its reply, and statements delivered two TTLs after the
client had given them up. A statement that is rarely sent is rarely cut. Where a cell is empty, the
statement was never cut on that database.

`
