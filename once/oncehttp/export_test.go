package oncehttp

import "net/http"

// ParseKey is parseKey.
var ParseKey = parseKey

// Stored is stored.
type Stored = stored

// Decode is decode.
var Decode = decode

// Encode is encode.
func Encode(status int, header http.Header, body []byte) ([]byte, error) {
	return stored{Status: status, Header: keep(header), Body: body}.encode()
}

// FingerprintOf is fingerprint.
var FingerprintOf = fingerprint
