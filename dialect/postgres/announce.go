package postgres

import (
	"context"
	"encoding/hex"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Announce notifies the channel of each key, in one statement. A payload is text and a key is
// bytes, so it is sent in hexadecimal: at most 510 bytes of the 8000 that fit.
func (d *database) Announce(ctx context.Context, s *conn.Session, channel string, keys []string) error {
	var payloads array
	for _, k := range keys {
		payloads.text(payloadOf(k))
	}
	_, err := s.Exec(ctx, d.Text("announce"), channel, &payloads)
	return err
}

// Wake sends a message for each key on the channel of one process.
func (d *database) Wake(
	ctx context.Context, s *conn.Session, channel string, process lease.Owner, keys []string,
) error {
	_, err := s.Exec(ctx, d.Text("wake"), channel, d.List(keys), conn.Bytes(process))
	return err
}

func payloadOf(key string) string { return hex.EncodeToString([]byte(key)) }

// keyOf returns the key of a message, or "" for any key. Every user may send messages, so an
// unreadable one is no error.
func keyOf(payload string) string {
	key, err := hex.DecodeString(payload)
	if err != nil || len(key) > lease.MaxKey {
		return ""
	}
	return string(key)
}

// ownChannel is the channel of one process. 8 bytes of its owner keep the name within the 63 bytes
// of an identifier. The section wake makes the same name.
func ownChannel(channel string, process lease.Owner) string {
	return channel + "_" + hex.EncodeToString(process[:8])
}
