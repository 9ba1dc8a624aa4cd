// Package refusal tests what Open and the calls of a client refuse: missing tables, privileges and
// durability, read-only databases, and transactions of another database.
package refusal
