package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redis/rueidis"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

const namePipelined = "rueidis, pipelined"

// unlockScript deletes a key that is still its owner's, as redislock and redsync do.
const unlockScript = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`

// pipelined locks with two commands of rueidis, which sends what its callers want at the same time
// at once: the least that a lock in Redis needs, and the client that sends it fastest.
type pipelined struct {
	client rueidis.Client
	unlock *rueidis.Lua
}

func (o *others) addPipelined(source string) error {
	options, err := rueidis.ParseURL(source)
	if err != nil {
		return err
	}
	wire := new(rig.Wire)
	options.DisableCache = true // of reads, which would need the server to track keys
	options.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return wire.DialWith(ctx, d, "tcp", address)
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		return err
	}
	o.closers = append(o.closers, closer(client.Close))
	p := &pipelined{client, rueidis.NewLuaScript(unlockScript)}
	o.contenders = append(o.contenders, &contender{
		name: namePipelined, system: "redis", pool: "at most 4", key: recurring('z'),
		levels: []int{1, 16, 64, 256, 1024}, pair: p.pair, contend: p.pair,
		meter: &rig.Meter{PID: rig.ServerPID("redis"), Wire: wire},
	})
	return nil
}

type closer func()

func (c closer) Close() error { c(); return nil }

// pair retries with about the pauses of redislock's contender.
func (p *pipelined) pair(ctx context.Context, worker int, key string, inside func() error) error {
	owner := fmt.Sprintf("%d/%016x", worker, rand.Uint64())
	if err := p.lock(ctx, key, owner); err != nil {
		return err
	}
	err := call(inside)
	n, failed := p.unlock.Exec(ctx, p.client, []string{key}, []string{owner}).AsInt64()
	if failed == nil && n != 1 {
		failed = fmt.Errorf("unlock %q: it was another's", key)
	}
	return errors.Join(err, failed)
}

func (p *pipelined) lock(ctx context.Context, key, owner string) error {
	for pause := 16 * time.Millisecond; ; pause = min(2*pause, 128*time.Millisecond) {
		set := p.client.B().Set().Key(key).Value(owner).Nx().Px(ttl).Build()
		err := p.client.Do(ctx, set).Error()
		if !rueidis.IsRedisNil(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)): // all woke at once otherwise, and one got the key
		}
	}
}
