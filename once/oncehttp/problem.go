package oncehttp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// problem sends an error in the form of RFC 9457.
func problem(w http.ResponseWriter, status int, detail string) {
	text, _ := json.Marshal(struct { // of strings and an integer: cannot fail
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, detail})
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// retry sends a problem that passes, and when to ask again, in whole seconds and at least one.
func retry(w http.ResponseWriter, status int, after time.Duration, detail string) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int((after+time.Second-1)/time.Second))))
	problem(w, status, detail)
}
