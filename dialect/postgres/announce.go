package postgres

import (
	"context"
	"encoding/hex"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Announce notifies the channel of each key, in one statement. A payload is text and a key is bytes: it is sent in hexadecimal,
// at most 510 of the 8000 bytes there is room for.
func (d *database) Announce(ctx context.Context, s *sqlstore.Session, channel string, keys []string) error {
	_, err := s.Exec(ctx, d.Text("announce"), channel, hexArray(keys))
	return err
}

// Wake sends a message for each key, but on the channel of one process that it is for.
func (d *database) Wake(ctx context.Context, s *sqlstore.Session, channel string, process lease.Owner, keys []string) error {
	_, err := s.Exec(ctx, d.Text("wake"), channel, byteaArray(keys), sqlstore.Bytes(process))
	return err
}

func hexArray(keys []string) string {
	var a array
	for _, k := range keys {
		a.hex(k)
	}
	return a.close()
}

// keyOf is the key a message is about, or "" for any: everybody may send messages, so what cannot be read is no error.
func keyOf(payload string) string {
	key, err := hex.DecodeString(payload)
	if err != nil || len(key) > lease.MaxKey {
		return ""
	}
	return string(key)
}

// ownChannel is that of one process. 8 bytes of its owner leave the name within the 63 bytes of an identifier; wake makes it too.
func ownChannel(channel string, process lease.Owner) string {
	return channel + "_" + hex.EncodeToString(process[:8])
}
