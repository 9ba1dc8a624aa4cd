// Package pair tests what a lock and its release cost the process that asks, on real databases.
package pair
