// Package measure is what the modules otelrowlock and promrowlock share: the metrics of a client
// with their names, classes of keys, and hand-overs inside a process.
package measure
