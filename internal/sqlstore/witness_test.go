package sqlstore_test

import (
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// holder is what a row says: its owner, and the token that it was granted with.
type holder struct {
	owner lease.Owner
	token lease.Token
}

func (h holder) String() string {
	if h.owner.IsZero() {
		return fmt.Sprintf("free at %d", h.token)
	}
	return fmt.Sprintf("%x… at %d", h.owner[:2], h.token)
}

// deed is a change of a row that a player's statement has made: it was seen right after that
// statement.
type deed struct {
	player   int
	turn     int // the player's
	key      string
	from, to holder
}

func (d deed) String() string {
	if d == (deed{}) {
		return "nothing"
	}
	return fmt.Sprintf("%d: %s: %v → %v", d.player, d.key[strings.LastIndexByte(d.key, '/')+1:], d.from, d.to)
}

// anyone stands for the players of a lease that several have.
const anyone = -1

// witness reads the rows after each statement, and so knows who did what. What a player is told is
// held against it.
type witness struct {
	bench
	prefix string
	rows   map[string]holder
	live   map[string]holder // the leases that have not expired
	of     map[string]int    // the players that have them
	deeds  []deed
	told   map[string]map[lease.Token]bool // grants, by key and token
	wrong  []string
}

func newWitness(b bench, prefix string) *witness {
	return &witness{
		bench: b, prefix: prefix,
		live: make(map[string]holder), of: make(map[string]int), told: make(map[string]map[lease.Token]bool),
	}
}

func (w *witness) read() map[string]holder {
	rows := make(map[string]holder)
	found, err := w.DB.QueryContext(w.Context(), w.SQL(`SELECT {key}, owner, token FROM {rowlock} WHERE {key} >= ? AND {key} < ?`),
		[]byte(w.prefix), []byte(w.prefix+"~"))
	if err != nil {
		w.Error(err)
		return rows
	}
	defer found.Close()
	for found.Next() {
		var key, owner []byte
		var h holder
		if err := found.Scan(&key, &owner, &h.token); err != nil {
			w.Error(err)
		}
		copy(h.owner[:], owner)
		rows[string(key)] = h
	}
	return rows
}

// see notes what has changed, which is the work of the player whose statement has run. It reports
// whether anything has.
func (w *witness) see(player, turn int) bool {
	rows, before := w.read(), len(w.deeds)
	for key, to := range rows {
		from, there := w.rows[key]
		if there && from == to {
			continue
		}
		d := deed{player, turn, key, from, to}
		w.deeds = append(w.deeds, d)
		w.judge(d, there)
		w.live[key], w.of[key] = to, player // what is granted in a play is live to its end
		if to.owner.IsZero() {
			delete(w.live, key)
		}
	}
	w.rows = rows
	return len(w.deeds) > before
}

// judge holds a change against the rules of a row: tokens rise by one with a grant, and only its
// holder ends a live lease.
func (w *witness) judge(d deed, there bool) {
	grants := !d.to.owner.IsZero()
	switch {
	case d.from == w.live[d.key] && there && w.of[d.key] != d.player && w.of[d.key] != anyone:
		w.accuse("a live lease ends by another's hand: %v", d)
	case there && grants && d.to.token != d.from.token+1:
		w.accuse("a grant whose token is not the next: %v", d)
	case there && !grants && d.to.token != d.from.token:
		w.accuse("a release that changes the token: %v", d)
	}
}

func (w *witness) accuse(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// by is what a player has done to a key in a turn; the zero deed if nothing.
func (w *witness) by(player, turn int, key string) (found deed) {
	for _, d := range w.deeds {
		if d.player != player || d.turn != turn || d.key != key {
			continue
		}
		if found != (deed{}) {
			w.accuse("one change was made twice: %v and %v", found, d)
		}
		found = d
	}
	return found
}

// granted is told to a player. It must have been granted, by its own statement, and to no other
// player.
func (w *witness) granted(player, turn int, key string, to holder) {
	if d := w.by(player, turn, key); d.to != to {
		w.accuse("%d was told %v of %q, and did %v", player, to, key, d)
	}
	if w.told[key] == nil {
		w.told[key] = make(map[lease.Token]bool)
	}
	if w.told[key][to.token] {
		w.accuse("token %d of %q was told twice", to.token, key)
	}
	w.told[key][to.token] = true
}

// released is told to a player, whose lease it must have been.
func (w *witness) released(player, turn int, key string, from holder) {
	if d := w.by(player, turn, key); d.from != from || !d.to.owner.IsZero() {
		w.accuse("%d was told that %v of %q is released, and did %v", player, from, key, d)
	}
}

// gone is told to a player whose lease ended before, and not by its own statement.
func (w *witness) gone(player, turn int, key string, from holder) {
	w.undone(player, turn, key)
	if w.rows[key] == from {
		w.accuse("%d was told that %v of %q is gone, and the row names it", player, from, key)
	}
}

// undone is what a player must have done if it is told neither of success nor that it is unknown.
func (w *witness) undone(player, turn int, key string) {
	if d := w.by(player, turn, key); d != (deed{}) {
		w.accuse("%d was told of nothing, and did %v", player, d)
	}
}
