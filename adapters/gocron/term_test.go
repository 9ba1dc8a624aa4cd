package gocronrowlock

import (
	"context"
	"reflect"
	"testing"
	"unsafe"

	"github.com/go-co-op/gocron/v2"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/memstore"
)

// A run that was told of as done must have been one, however terms begin and end meanwhile.
func TestATaskWithoutAnErrorHasCalledItsFunction(t *testing.T) {
	t.Parallel()
	locks, err := rowlock.New(memstore.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	l, err := locks.Lock(t.Context(), "jobs")
	if err != nil {
		t.Fatal(err)
	}
	e, called := NewElector(locks, "jobs"), false
	run := function(e.Task(func(context.Context) error {
		called = true
		return nil
	}))
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case <-over:
				return
			default:
				e.set(l, t.Context())
				e.set(nil, nil)
			}
		}
	}()
	for range 50_000 {
		called = false
		if err := run(t.Context()); err == nil && !called {
			t.Fatal("no error, and no call")
		}
	}
}

// function is what gocron calls: it keeps that to itself.
func function(t gocron.Task) func(context.Context) error {
	task := reflect.New(reflect.TypeOf(t()))
	task.Elem().Set(reflect.ValueOf(t()))
	f := task.Elem().FieldByName("function")
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Interface().(func(context.Context) error)
}
