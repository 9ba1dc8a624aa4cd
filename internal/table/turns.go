package table

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// turnsIdle is how long the session stays open after its last turn. The server ends a session that
// is silent for 2 s, because its client may have been stopped within its turn.
const turnsIdle = 1500 * time.Millisecond

// turnBound bounds a wait for a turn, and the end of one. The server bounds the wait before, but
// its answer may be lost with the connection.
const turnBound = 6 * time.Second

// Turns waits for this process's turn of key and calls turn, again and again until turn returns
// false, ctx ends or the turn gets stuck. A turn is a hint: it says that this process may bid now,
// and that the others that have asked for turns do not.
//
// All turns share one session, so that there are turns for one key at a time.
func (s *Store) Turns(ctx context.Context, key string, turn func() (again bool)) error {
	if s.d.Turner == nil || !s.hints.turns {
		return fmt.Errorf("%w: turns: no connection can be spared, or there is no such server",
			lease.ErrUnsupported)
	}
	within, end, ok := s.hints.begin(ctx)
	if !ok {
		return fmt.Errorf("%w: turns", lease.ErrClosed)
	}
	defer end()
	return s.hints.turner.try(within,
		func(ctx context.Context, session *sqlstore.Session) error {
			return s.takeTurns(ctx, session, key, turn)
		})
}

func (s *Store) takeTurns(
	ctx context.Context, session *sqlstore.Session, key string, turn func() (again bool),
) error {
	for again := false; ; again = true {
		if err := s.awaitTurn(ctx, session, key, again); err != nil {
			return err
		}
		if !turn() {
			ctx, cancel := context.WithTimeout(ctx, turnBound)
			defer cancel()
			return s.d.Turner.EndTurn(ctx, session, s.channel, key)
		}
	}
}

func (s *Store) awaitTurn(
	ctx context.Context, session *sqlstore.Session, key string, again bool,
) error {
	ctx, cancel := context.WithTimeout(ctx, turnBound)
	defer cancel()
	return s.d.Turner.AwaitTurn(ctx, session, s.channel, key, again)
}

// prepareTurns is the set-up of the session.
func (s *Store) prepareTurns(ctx context.Context, session *sqlstore.Session) error {
	return s.d.Turner.PrepareTurns(ctx, session)
}

// Defers notes for which key this process bids only in its turn; "" is none. Its registration says
// so, and no process wakes it for that key.
func (s *Store) Defers(key string) {
	s.hints.mu.Lock()
	defer s.hints.mu.Unlock()
	s.hints.turnsOf = key
}

// apart splits keys into the one for which this process bids only in its turn, and the others: the
// process can be woken for those.
func (h *hints) apart(keys []string) (turn, others []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range keys {
		if key == h.turnsOf && key != "" {
			turn = append(turn, key)
		} else {
			others = append(others, key)
		}
	}
	return turn, others
}
