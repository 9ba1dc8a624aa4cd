package far

import (
	"encoding/json"
	"io"
	"net"
	"runtime"
)

// sleepers is how many threads may sleep at once and still leave one to the network's poller.
const sleepers = 64

// Serve is the process's life: it answers with the addresses of the places, and returns when its
// parent has closed in.
func Serve(places []Place, in io.Reader, out io.Writer) error {
	runtime.GOMAXPROCS(sleepers)
	all, at, err := listen(places)
	for i, l := range all {
		defer l.Close()
		go accept(l, places[i])
	}
	if err == nil {
		err = json.NewEncoder(out).Encode(at)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	return err
}

func accept(l net.Listener, p Place) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.Address)
		if err != nil {
			_ = client.Close()
			continue
		}
		go carry(server, client, p.Delay)
		go carry(client, server, p.Delay)
	}
}
