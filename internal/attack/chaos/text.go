//go:build linux

package main

const reportHead = `# What rowlock survives, in figures

This page is written by ` + "`make chaos`" + `. It starts servers and worker processes of its own,
breaks them, and checks what each worker was told and what the data say.
[chaos.md](chaos.md) says how it works.

Each schedule is one plan, drawn from a seed: workers begin in peace, one fault strikes for some
seconds, and the workers must go on when it is over. "mixed" has several faults at once.

Checked in every schedule:

- a token of a key has one owner, and a grant that was asked for after another has a higher token;
- no write under a lower token is committed, and no Unlock of a false holder succeeds;
- each fenced counter is the number of acknowledged increments, and of those with an unknown outcome
  that the data contain;
- each effect of once is there if a caller was told so, and at most once;
- a reader has no writer's token, and no writer comes between its two reads;
- no lock is lost in the first two thirds of its TTL;
- a loss is told at its deadline, within 0.5 s and the times in which the process stood still;
- no key stays held for more than a lease after the last worker has ended;
- locks are granted again when the fault is over;
- no connection and no goroutine is left behind.

Where a server's clock is set, leases may end early or late; tokens and fenced data must hold.
`

const timesHead = `"Next grant" is the time from the end of the fault to the first grant. Overlaps are times in which
two processes both believed that they held a key: stopped processes and clocks that are set cause
them, and the fence refuses the writes of the first. "Over when granted" are locks whose lease had
ended when the call returned; their Context is done from the start. Rows of killed processes are
left for the cleaners of other clients, of which there are none at the end; once keeps its results.

`

const cutHead = `"Reply lost" and "half a reply" are cut after execution. "Late" is executed two TTLs after its
client has given it up. Statements with few cuts are rare ones.

`
