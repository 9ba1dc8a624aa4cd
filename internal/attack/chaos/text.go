//go:build linux

package main

const reportHead = `# What rowlock survives, in figures

You get: what was broken under rowlock, how often, and what happened. A run of ` + "`make chaos`" + ` writes
this page, and [reliability.json](reliability.json) with each fault on each database and each
statement that was cut. The page of [make chaos](contributing/chaos.md) says [what each fault
breaks](contributing/chaos.md#what-it-does), and which [missing
guards](contributing/chaos.md#controls-what-must-be-found) it has found.
`

const faultsHead = `
## What was broken

In a round, workers lock and write, one fault strikes for some seconds, and the workers must go on
when it is over. "Mixed" has several at once. "Struck" counts processes killed, statements cut,
settings changed.

| fault | on | rounds | struck | grants | fenced writes | violations |
|---|---|---|---|---|---|---|
`

const failoversHead = `
## Failovers

"Lost commits" are failovers that have undone what was acknowledged. A fenced write of a holder from
before the failover is committed if the lock's row has survived, and otherwise refused.

| database | failovers | lost commits | tokens repeated, fallen | longest time to the next grant | writes of holders from before: committed, refused |
|---|---|---|---|---|---|
`

const worstHead = `
## The worst times

The longest of each, and the fault under which it was. In an overlap two processes both believed
that they held a key, because one was stopped or a clock was set. The fence refuses the writes of
the first. A lock that had expired when it was granted has a Context that is done from the start.

| database | next grant after a fault | loss told after its deadline | overlaps: number; longest | expired when granted |
|---|---|---|---|---|
`

const checked = `
## What is checked in each round

- A token of a key has one owner, and a grant that was asked for after another has a higher token.
- No write under a lower token is committed, and no Unlock of a false holder succeeds.
- Each fenced counter is the number of acknowledged increments, and of those with an unknown outcome
  that the data contain.
- Each effect of once is there if a caller was told so, and at most once.
- A reader's token is not a writer's, and no writer comes between the reader's two reads.
- No lock is lost in the first two thirds of its TTL.
- A loss is told at its deadline, within 0.5 s and the times in which the process stood still.
- No key stays held for more than a lease after the last worker has ended.
- Locks are granted again when the fault is over.
- No connection and no goroutine is left behind.

Where a server's clock is set, leases may end early or late; tokens and fenced data must hold.
`
