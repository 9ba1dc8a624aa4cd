package oncehttp_test

import (
	"fmt"
	"net/http"
	"testing"
)

// A handler that was told that its response fits must not get a 500 that every repeat gets too.
func TestAResponseIsTooLargeIfAndOnlyIfTheHandlerWasToldSo(t *testing.T) {
	for _, kind := range []string{"", "application/json"} {
		s := onSQLite(t, nil)
		kept, refused := 0, 0
		for size := 7_380; size <= 7_500; size += 3 {
			var told error
			s.answer = func(w http.ResponseWriter, _ *http.Request) {
				if kind != "" {
					w.Header().Set("Content-Type", kind)
				}
				_, told = w.Write(make([]byte, size))
			}
			switch got := s.post(fmt.Sprint("key", size), "").StatusCode; {
			case told == nil && got == 200:
				kept++
			case told != nil && got == 500:
				refused++
			default:
				t.Errorf("%d bytes: the handler was told %v, and the client %d", size, told, got)
			}
		}
		if kept == 0 || refused == 0 {
			t.Errorf("%d kept and %d refused: this is not the edge", kept, refused)
		}
	}
}
