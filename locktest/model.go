package locktest

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"

	"github.com/rowlockdb/rowlock/lease"
)

// This file is the model of the lock for porcupine: what one key may answer, call after call. A
// history of concurrent calls is right if the model allows some order of them, with each call at a
// moment between its sending and its answer.

type verb uint8

const (
	acquire verb = iota
	renew
	release
	expire
)

func (v verb) String() string { return [...]string{"acquire", "renew", "release", "expire"}[v] }

// call is one request of a history.
type call struct {
	verb verb
	lease.Lease
}

// reply is its answer.
type reply struct {
	// unknown: an error that wraps lease.ErrUnknown. The call may take effect at any later time, or
	// never.
	unknown bool
	// yes: granted, extended, or released rather than gone.
	yes bool
	// token is the one granted.
	token lease.Token
	// vague: not granted although the holder's time was unknown, or a busy renewal. It says less
	// than a refusal.
	vague bool
}

// keyState is the state of one key.
type keyState struct {
	owner lease.Owner
	token lease.Token
	// live: there is an owner and its lease has not ended.
	live bool
	// guess: the token was granted in an answer that was lost. It is token or more.
	guess bool
}

// mine reports whether the row may be of l's term.
func (k keyState) mine(l lease.Lease) bool {
	return !l.Owner.IsZero() && k.owner == l.Owner && (k.token == l.Token || k.guess && l.Token > k.token)
}

func (k keyState) freed() keyState {
	return keyState{token: k.token, guess: k.guess}
}

func (k keyState) after(c call, r reply) []keyState {
	switch c.verb {
	case acquire:
		return k.acquired(c, r)
	case renew:
		return k.renewed(c, r)
	case release:
		return k.released(c, r)
	default:
		k.live = false
		return []keyState{k}
	}
}

func (k keyState) acquired(c call, r reply) []keyState {
	own := k.live && k.owner == c.Owner
	granted := keyState{owner: c.Owner, token: r.token, live: true}
	switch {
	case r.unknown && !k.live:
		granted.token, granted.guess = k.token+1, true
		return []keyState{k, granted}
	case r.unknown, !r.yes && k.live && !own, r.vague && !own:
		return []keyState{k}
	case r.yes && own && (r.token == k.token || k.guess && r.token > k.token):
		return []keyState{granted}
	case r.yes && !k.live && r.token > k.token:
		return []keyState{granted}
	}
	return nil
}

func (k keyState) renewed(c call, r reply) []keyState {
	extended := k
	if k.mine(c.Lease) {
		extended.token, extended.guess = c.Token, false
	}
	switch {
	case r.unknown:
		return []keyState{k}
	case r.vague && k.mine(c.Lease):
		return []keyState{extended}
	case r.vague:
		return nil
	case r.yes && k.live && k.mine(c.Lease):
		return []keyState{extended}
	case !r.yes && (!k.live || !k.mine(c.Lease) || k.guess):
		return []keyState{k}
	}
	return nil
}

func (k keyState) released(c call, r reply) []keyState {
	if c.Token == 0 && k.owner == c.Owner {
		c.Token = k.token
	}
	mine := k.mine(c.Lease)
	switch {
	case r.unknown && mine, !r.yes && mine && (!k.live || k.guess):
		return []keyState{k, k.freed()}
	case r.unknown, !r.yes && !mine:
		return []keyState{k}
	case r.yes && mine:
		return []keyState{k.freed()}
	}
	return nil
}

func lockModel() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init:  func() []any { return []any{keyState{}} },
		Equal: func(a, b any) bool { return a == b },
		Step: func(state, in, out any) (next []any) {
			for _, k := range state.(keyState).after(in.(call), out.(reply)) {
				next = append(next, k)
			}
			return next
		},
	}).ToModel()
}

// never is when a call returns whose outcome is unknown.
const never = math.MaxInt64

func describe(op porcupine.Operation) string {
	c, r := op.Input.(call), op.Output.(reply)
	answer := map[bool]string{true: "yes", false: "no"}[r.yes]
	switch {
	case r.unknown:
		answer = "unknown"
	case r.vague:
		answer = "vague"
	case r.yes && c.verb == acquire:
		answer = fmt.Sprint("token ", r.token)
	}
	return fmt.Sprintf("%d–%d client %d: %v, owner %x, token %d: %s",
		op.Call, op.Return, op.ClientId, c.verb, c.Owner[:2], c.Token, answer)
}
