package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"

	"github.com/rowlockdb/rowlock/lease"
)

// share is the part of the timeout that a try has, from the first: a member that hangs is soon left for another, and a cluster that is
// slow is soon given time rather than more to do. Together they leave some.
func share(timeout time.Duration, try int) time.Duration {
	return max(timeout>>max(4-try, 1), time.Millisecond)
}

// wire is etcd's service as gRPC knows it. It notes whether a request has left at all: etcd's own client does not tell an error of before
// from one of after.
type wire struct{ pb.KVClient }

// left is the note, in a context. It is true once a request may have left.
type left struct{}

// Txn sends a transaction. A stream that has a peer was begun on a connection; one that has none has never been.
func (w wire) Txn(ctx context.Context, in *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	var p peer.Peer
	resp, err := w.KVClient.Txn(ctx, in, append(opts, grpc.Peer(&p))...)
	if note, ok := ctx.Value(left{}).(*bool); ok && (err == nil || p.Addr != nil) {
		*note = true
	}
	return resp, err
}

// class is what an error says of the request.
type class int

const (
	refused class = iota // not applied, and will not be
	passing              // not applied, and may be soon
	unknown              // applied, or not, or later
)

// judge says what became of a try that failed. One that had not left may have failed for want of an etcd lease.
func judge(err error, left bool) class {
	var server rpctypes.EtcdError
	if !errors.As(err, &server) {
		if !left {
			return passing
		}
		return unknown // the connection's, the context's, or gRPC's: an answer that is too long comes from what was applied
	}
	switch {
	case errors.Is(err, rpctypes.ErrNoLeader), errors.Is(err, rpctypes.ErrTooManyRequests), errors.Is(err, rpctypes.ErrLeaseNotFound),
		errors.Is(err, rpctypes.ErrAuthOldRevision), errors.Is(err, rpctypes.ErrInvalidAuthToken):
		return passing // refused before it was proposed, or as a whole when it was to be applied
	}
	switch server.Code() {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.PermissionDenied, codes.Unauthenticated, codes.NotFound,
		codes.OutOfRange, codes.ResourceExhausted, codes.DataLoss, codes.Unimplemented:
		return refused
	}
	if !left {
		return passing
	}
	return unknown
}

// write tries until the outcome is known, which may be repeated because all that is sent is idempotent: a repeated acquire finds its own
// lease. doubtful says that an earlier try had an unknown outcome.
func (c *Cluster) write(ctx context.Context, verb, key string, try func(ctx context.Context) error) (doubtful bool, err error) {
	return c.send(ctx, verb, key, false, try)
}

// read is write for what changes nothing: no outcome of it is in doubt.
func (c *Cluster) read(ctx context.Context, verb, key string, try func(ctx context.Context) error) error {
	_, err := c.send(ctx, verb, key, true, try)
	return err
}

func (c *Cluster) send(ctx context.Context, verb, key string, reads bool, try func(ctx context.Context) error) (doubtful bool, err error) {
	if c.ctx.Err() != nil {
		return false, fmt.Errorf("%w: %s %q", lease.ErrClosed, verb, key)
	}
	if ctx.Err() != nil {
		return false, fmt.Errorf("rowlock: %s %q: %w", verb, key, ctx.Err())
	}
	bound, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	var is class
	var last error
	tries := 0
	_, err = backoff.Retry(bound, func() (struct{}, error) {
		last, is = c.once(bound, tries, try)
		if tries++; last == nil {
			return struct{}{}, nil
		}
		if is == unknown && reads {
			is = passing
		}
		doubtful = doubtful || is == unknown
		if is == refused {
			return struct{}{}, backoff.Permanent(last)
		}
		return struct{}{}, last
	}, backoff.WithBackOff(pauses()), backoff.WithMaxElapsedTime(0))
	if err == nil {
		return doubtful, nil
	}
	return doubtful, c.explain(ctx, verb, key, last, is, doubtful)
}

// once tries with a part of the time.
func (c *Cluster) once(ctx context.Context, n int, try func(ctx context.Context) error) (error, class) {
	var sent bool
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, left{}, &sent), share(c.timeout, n))
	defer cancel()
	err := try(ctx)
	return err, judge(err, sent)
}

// explain says what is known after the last try.
func (c *Cluster) explain(ctx context.Context, verb, key string, err error, is class, doubtful bool) error {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = errors.Join(err, ctx.Err())
	}
	switch {
	case doubtful:
		err = fmt.Errorf("%w: %s %q: %w", lease.ErrUnknown, verb, key, err)
	case ctx.Err() == nil && c.ctx.Err() == nil && is == passing:
		err = fmt.Errorf("%w: %s %q: etcd could not be asked within %s: %w", lease.ErrBusy, verb, key, c.timeout, err)
	default:
		err = fmt.Errorf("rowlock: %s %q: %w", verb, key, err)
	}
	if c.ctx.Err() != nil {
		err = errors.Join(lease.ErrClosed, err)
	}
	return err
}

func pauses() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = 5*time.Millisecond, 200*time.Millisecond, 2, 0.5
	return b
}
