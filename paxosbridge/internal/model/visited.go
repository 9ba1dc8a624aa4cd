package model

import (
	"math/bits"
	"sync"
)

// visited are the states found so far, each with the one it was first found from. A state's id is
// its place in a shard and the shard.
type visited struct{ shards [1 << shardBits]shard }

const (
	shardBits = 8
	shardMask = 1<<shardBits - 1
	noID      = ^uint32(0)
)

// shard is an open hash table of places in states, plus 1.
type shard struct {
	mu     sync.Mutex
	slots  []uint32
	states []packed
	from   []uint32
}

// hash spreads k: one multiplication for each word, folded.
func (k packed) hash() uint64 {
	a, b := bits.Mul64(k[0]^0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9)
	c, d := bits.Mul64(k[1]^a^b, 0x94d049bb133111eb)
	return c ^ d
}

// add reports whether k is new.
func (v *visited) add(k packed, from uint32) (id uint32, fresh bool) {
	h := k.hash()
	n := uint32(h & shardMask)
	sh := &v.shards[n]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if 4*len(sh.states) >= 3*len(sh.slots) {
		sh.grow()
	}
	mask := uint64(len(sh.slots) - 1)
	at := h >> shardBits & mask
	for ; sh.slots[at] != 0; at = (at + 1) & mask {
		if i := sh.slots[at] - 1; sh.states[i] == k {
			return i<<shardBits | n, false
		}
	}
	i := uint32(len(sh.states))
	sh.states, sh.from = append(sh.states, k), append(sh.from, from)
	sh.slots[at] = i + 1
	return i<<shardBits | n, true
}

func (sh *shard) grow() {
	sh.slots = make([]uint32, max(64, 2*len(sh.slots)))
	mask := uint64(len(sh.slots) - 1)
	for i, k := range sh.states {
		at := k.hash() >> shardBits & mask
		for sh.slots[at] != 0 {
			at = (at + 1) & mask
		}
		sh.slots[at] = uint32(i) + 1
	}
}

// state and parent must not run beside add.
func (v *visited) state(id uint32) packed  { return v.shards[id&shardMask].states[id>>shardBits] }
func (v *visited) parent(id uint32) uint32 { return v.shards[id&shardMask].from[id>>shardBits] }

func (v *visited) len() (n int) {
	for i := range v.shards {
		n += len(v.shards[i].states)
	}
	return n
}
