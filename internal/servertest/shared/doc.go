// Package shared has the tests of keys that readers share, on all databases: processes that are
// killed and stopped, what a thousand readers write, and how fast they are.
package shared
