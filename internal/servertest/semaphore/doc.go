// Package semaphore has the tests of semaphores on all databases with processes that are killed.
package semaphore
