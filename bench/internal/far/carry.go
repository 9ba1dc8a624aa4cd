package far

import (
	"io"
	"time"
)

// parcel is what was read at once, and when it is due at the other end.
type parcel struct {
	bytes []byte
	due   time.Time
}

// underway is how many parcels may be on their way at once.
const underway = 1 << 10

// carry passes bytes on after delay. It reads on meanwhile: what is sent before an answer comes is
// underway together, as in a network, and not one after the other.
func carry(to io.WriteCloser, from io.Reader, delay time.Duration) {
	parcels := make(chan parcel, underway)
	go func() {
		defer close(parcels)
		for {
			b := make([]byte, 1<<14)
			n, err := from.Read(b)
			if n > 0 {
				parcels <- parcel{b[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	defer to.Close()
	broken := false // then the rest is read and dropped, until the reader ends
	for p := range parcels {
		sleep(time.Until(p.due))
		if !broken {
			_, err := to.Write(p.bytes)
			broken = err != nil
		}
	}
}
