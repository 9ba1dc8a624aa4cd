//go:build linux

package main

import (
	"context"
	"math/rand/v2"

	"github.com/rowlockdb/rowlock/internal/attack/proxy"
)

var replyFaults = []*fault{
	{
		name: "reply", what: "each kind of statement, COMMIT too, cut before it is sent, in the middle, after its execution and before its reply, and within that",
		strike: fated(proxy.Unsent, proxy.Half, proxy.ReplyLost, proxy.ReplyLost, proxy.ReplyHalf),
	},
	{
		name: "late", what: "each kind of statement, COMMIT too, given up by its client and delivered two TTLs later",
		strike: fated(proxy.Late),
	},
}

func fated(list ...proxy.Fate) func(context.Context, *round, *rand.Rand) error {
	return func(ctx context.Context, r *round, _ *rand.Rand) error {
		r.fates.allow(list...)
		<-ctx.Done()
		return nil
	}
}
