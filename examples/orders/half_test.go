package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Clients that send half a body and then nothing are dropped when the time to read is over.
func TestHalfSentBodiesAreDropped(t *testing.T) {
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	}))
	if server.ReadTimeout <= 0 || server.WriteTimeout <= 0 || server.IdleTimeout <= 0 || server.ReadHeaderTimeout <= 0 {
		t.Errorf("a part of an exchange has no bound: %+v", server)
	}
	server.ReadTimeout /= 50 // and 0 stays 0
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() { _ = server.Serve(l) }()
	var all sync.WaitGroup
	for range 300 {
		all.Go(func() { sendHalf(t, l.Addr().String()) })
	}
	all.Wait()
}

// sendHalf returns when the server has dropped the connection.
func sendHalf(t *testing.T, addr string) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	_, err = fmt.Fprintf(c, "POST /orders HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n{\"half\":", addr)
	if err == nil {
		err = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	}
	if err == nil {
		_, err = io.Copy(io.Discard, c) // to the end: the server has closed it
	}
	if e, ok := err.(net.Error); ok && e.Timeout() {
		t.Error("a connection with half a body is still open after 20 s")
	}
}
