package table

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

// Listen hears of keys that were released or expired: from a server's messages, or else from the
// fact that the database has changed.
func (s *Store) Listen(ctx context.Context, heard func(key string)) error {
	return s.listen(ctx, lease.Owner{}, func(key string, _ lease.Owner) { heard(key) })
}

// ListenAs is Listen for one process. It does not hear of keys for which another process was
// chosen.
func (s *Store) ListenAs(
	ctx context.Context, process lease.Owner, heard func(key string, chosen bool),
) error {
	if process.IsZero() {
		return fmt.Errorf("%w: listen: the zero owner is no process; use lease.NewOwner",
			lease.ErrConfig)
	}
	defer s.hints.reached.Delete(process)
	search, end := s.searches(process, heard)
	defer end()
	return s.listen(ctx, process, func(key string, chosen lease.Owner) {
		s.hints.reached.LoadOrStore(process, true)
		if key == "" && !chosen.IsZero() {
			search()
			return
		}
		heard(key, !chosen.IsZero())
	})
}

func (s *Store) listen(
	ctx context.Context, process lease.Owner, heard func(key string, chosen lease.Owner),
) error {
	within, end, ok := s.hints.begin(ctx)
	if !ok {
		return fmt.Errorf("%w: listen", lease.ErrClosed)
	}
	defer end()
	var err error
	switch {
	case s.d.Listener != nil:
		err = s.keepListening(within, process, heard)
	case s.d.Version != nil:
		err = s.watch(within, heard)
	default:
		return fmt.Errorf("%w: %s has no messages; there is only the poll", lease.ErrUnsupported,
			s.d.Name())
	}
	if ctx.Err() == nil && within.Err() != nil {
		err = fmt.Errorf("%w: listen", lease.ErrClosed)
	}
	return err
}

// keepListening reconnects whenever the connection is lost, until ctx ends. Clients that lost a
// server at the same moment reconnect at different ones.
func (s *Store) keepListening(
	ctx context.Context, process lease.Owner, heard func(key string, chosen lease.Owner),
) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.RandomizationFactor = 50*time.Millisecond,
		5*time.Second, 0.5
	for {
		connected := false
		err := s.d.Listener.Listen(ctx, s.hints.pool, s.channel, process,
			func(key string, chosen lease.Owner) {
				if !connected {
					connected = true
					s.hints.sources.Add(1)
				}
				pauses.Reset()
				heard(key, chosen)
			})
		if connected {
			s.hints.sources.Add(-1)
		}
		s.hints.reached.Clear() // until there is another connection
		if errors.Is(err, lease.ErrUnsupported) || errors.Is(err, lease.ErrConfig) {
			return err
		}
		if !retry.Sleep(ctx, pauses.NextBackOff()) {
			return ctx.Err()
		}
	}
}

// channelOf names this instance of the tables alone, because databases, schemas and prefixes share
// one server. The name is an identifier that needs no quotes.
func channelOf(instance, prefix string) string {
	sum := sha256.Sum256([]byte(instance + "\x00" + prefix))
	return "rowlock_" + hex.EncodeToString(sum[:16])
}

// restless is how much less often a database that changes all the time is read: the fact that it
// has changed then says next to nothing.
const restless = 5

// watch calls heard whenever another connection has changed the database.
func (s *Store) watch(ctx context.Context, heard func(key string, chosen lease.Owner)) error {
	s.hints.sources.Add(1)
	defer s.hints.sources.Add(-1)
	tick := time.NewTicker(s.hints.every)
	defer tick.Stop()
	changes := 0
	for seen := (version{}); ; {
		now, err := s.version(ctx)
		switch {
		case err != nil:
		case now != seen:
			seen = now
			heard("", lease.Owner{})
			changes = min(changes+1, restless)
			tick.Reset(s.hints.every * time.Duration(changes))
		case changes > 0:
			changes = 0
			tick.Reset(s.hints.every)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// version is what a session has seen of the database.
type version struct {
	session *conn.Session
	n       int64
}

// version goes before everything that is pending, because it takes microseconds and waits for no
// row. An error says nothing, because the next tick asks again.
func (s *Store) version(ctx context.Context) (version, error) {
	var now version
	err := s.once(ctx, s.newOp(conn.Renew,
		task{other: func(ctx context.Context, session *conn.Session) (err error) {
			now.session = session
			now.n, err = s.d.Version(ctx, session)
			return err
		}}))
	if err != nil {
		return version{}, err // now may still be written to
	}
	return now, nil
}

// Announce notifies all listeners, once: polling guarantees progress, and a notification only
// reduces latency.
func (s *Store) Announce(ctx context.Context, keys []string) error {
	return s.send(ctx, "announce", keys, func(ctx context.Context, session *conn.Session) error {
		return s.d.Listener.Announce(ctx, session, s.channel, keys)
	})
}

// Wakes reports whether the server delivers messages.
func (s *Store) Wakes() bool { return s.d.Listener != nil }

// Wake notifies one process that listens and waits, once, as Announce does.
func (s *Store) Wake(ctx context.Context, process lease.Owner, keys []string) error {
	return s.send(ctx, "wake", keys, func(ctx context.Context, session *conn.Session) error {
		return s.d.Listener.Wake(ctx, session, s.channel, process, keys)
	})
}
