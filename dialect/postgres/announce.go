package postgres

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// Announce notifies the channel of each key, in one statement. A payload is text and a key is bytes: it is sent in hexadecimal,
// at most 510 of the 8000 bytes there is room for.
func (d *Dialect) Announce(ctx context.Context, s *dialect.Session, channel string, keys []string) error {
	_, err := s.Exec(ctx, d.Text("announce"), channel, hexArray(keys))
	return err
}

// Wake notifies the channel of each key, with the one process that it is for.
func (d *Dialect) Wake(ctx context.Context, s *dialect.Session, channel string, process lease.Owner, keys []string) error {
	_, err := s.Exec(ctx, d.Text("wake"), channel, byteaArray(keys), dialect.Bytes(process))
	return err
}

func hexArray(keys []string) string {
	var a array
	for _, k := range keys {
		a.hex(k)
	}
	return a.close()
}

// newsOf is the key a message is about, or "" for any, and the process that it is for, or zero for all: everybody may send messages,
// so what cannot be read is no error. A version that knows no processes takes a message for one to be about any key, and looks.
func newsOf(payload string) (key string, chosen lease.Owner) {
	name, process, named := strings.Cut(payload, "/")
	raw, err := hex.DecodeString(name)
	if err != nil || len(raw) > lease.MaxKey {
		return "", lease.Owner{}
	}
	if named {
		if b, err := hex.DecodeString(process); err == nil && len(b) == len(chosen) {
			copy(chosen[:], b)
		}
	}
	return string(raw), chosen
}
