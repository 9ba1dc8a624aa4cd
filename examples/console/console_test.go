package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTheShopHasWhatAConsoleShows(t *testing.T) {
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", write) }()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, _, _ := strings.Cut(line, " ")
	for _, page := range []struct{ path, text string }{
		{"", "order/1042"},
		{"", "newsletter"},
		{"waits", "import/prices"},
		{"key?k=import/prices", "cart/77"}, // what its waiter holds meanwhile
		{"cycles", "Cycle of 2"},
	} {
		for text := ""; !strings.Contains(text, page.text); time.Sleep(100 * time.Millisecond) {
			if text = get(ctx, t, address+page.path); ctx.Err() != nil {
				t.Fatalf("%q never has %q: %s", page.path, page.text, text)
			}
		}
	}
	end()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

func get(ctx context.Context, t *testing.T, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
