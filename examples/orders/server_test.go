package main

import (
	"errors"
	"net/http"
	"sync"

	"github.com/rowlockdb/rowlock/examples/internal/program"
)

// killer is a client's way to the server. At every so manieth order that is answered it kills the
// server, while those of the other clients are somewhere in their work, some of them between commit
// and reply. Every other time the client does not get the answer that has just come. What the
// server was killed for saying must be true all the same, so it is kept.
//
// It is not requests that are counted: on a slow machine the server would be killed again before it
// has answered any.
type killer struct {
	server *program.Server
	every  int

	mu            sync.Mutex
	answered      int
	during, after int
	heard         map[string]reply // by key
	first         map[string]bool  // keys whose first answer a client has heard
}

var errKilled = errors.New("the server was killed before its reply came")

func (k *killer) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusCreated {
		return res, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answered++
	kill := k.answered%k.every == 0
	if kill {
		k.server.Kill() // at once: an answer that was sent before its commit would be a lie now
	}
	key := req.Header.Get("Idempotency-Key")
	if kill && k.after < k.during {
		r, err := read(res)
		if err != nil {
			return nil, err
		}
		k.after, k.heard[key] = k.after+1, r
		return nil, errKilled
	}
	if kill {
		k.during++
	}
	if res.Header.Get("Idempotent-Replayed") == "" {
		k.first[key] = true
	}
	return res, nil
}
