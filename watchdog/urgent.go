package watchdog

import (
	"container/heap"
	"slices"
	"time"
)

// urgent is a heap of leases that are due, by their deadlines. In the order in which they came due,
// a short lease would end behind many long ones that have time.
type urgent []due

// due is a lease with its deadline when it came due: in a heap, a lease must not change its place.
type due struct {
	h  *Held
	by time.Time
}

// reorder orders the heap anew after deadlines have changed.
func (u urgent) reorder() {
	for i := range u {
		u[i].by = u[i].h.deadline
	}
	heap.Init(&u)
}

// remove removes a lease that may be in the heap.
func (u *urgent) remove(h *Held) {
	*u = slices.DeleteFunc(*u, func(d due) bool { return d.h == h })
	heap.Init(u)
}

func (u urgent) Len() int           { return len(u) }
func (u urgent) Less(i, j int) bool { return u[i].by.Before(u[j].by) }
func (u urgent) Swap(i, j int)      { u[i], u[j] = u[j], u[i] }
func (u *urgent) Push(x any)        { *u = append(*u, x.(due)) }

func (u *urgent) Pop() any {
	last := len(*u) - 1
	x := (*u)[last]
	(*u)[last] = due{}
	*u = (*u)[:last]
	return x
}
