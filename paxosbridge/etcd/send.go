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

	"github.com/rowlockdb/rowlock/internal/late"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

// share is the part of the timeout that a try has. The first shares are short, so that a call soon
// leaves a member that hangs. Later ones are longer, so that a slow cluster gets time rather than
// more requests. All shares together are below the timeout.
func share(timeout time.Duration, try int) time.Duration {
	return max(timeout>>max(3-try, 1), time.Millisecond)
}

// wire is etcd's service as gRPC knows it. It notes whether a request may have been sent. etcd's
// own client does not tell an error before that from an error after it.
type wire struct{ pb.KVClient }

// left is the key of that note in a context.
type left struct{}

// Txn sends a transaction. A stream with a peer was begun on a connection; one without never was.
func (w wire) Txn(
	ctx context.Context, in *pb.TxnRequest, opts ...grpc.CallOption,
) (*pb.TxnResponse, error) {
	var p peer.Peer
	resp, err := w.KVClient.Txn(ctx, in, append(opts, grpc.Peer(&p))...)
	if note, ok := ctx.Value(left{}).(*bool); ok && (err == nil || p.Addr != nil) {
		*note = true
	}
	return resp, err
}

// class is what an error says about the request.
type class int

const (
	refused        class = iota // not applied, and will not be
	passing                     // not applied; a repetition may be
	unknownOutcome              // applied or not, now or later
)

// judge classifies a failed try. One that was not sent may have failed to get an etcd lease.
func judge(err error, left bool) class {
	var server rpctypes.EtcdError
	if errors.As(err, &server) {
		if oneline.Is(err, rpctypes.ErrNoLeader, rpctypes.ErrTooManyRequests, rpctypes.ErrLeaseNotFound,
			rpctypes.ErrAuthOldRevision, rpctypes.ErrInvalidAuthToken) {
			return passing // refused before the proposal, or as a whole when it was applied
		}
		switch server.Code() {
		case codes.InvalidArgument,
			codes.FailedPrecondition,
			codes.PermissionDenied,
			codes.Unauthenticated,
			codes.NotFound,
			codes.OutOfRange,
			codes.ResourceExhausted,
			codes.DataLoss,
			codes.Unimplemented:
			return refused
		}
	}
	if !left {
		return passing
	}
	// Or an error of the connection, the context, or gRPC, for example for an answer that is too
	// long. The request may have been applied.
	return unknownOutcome
}

// write tries until the outcome is known. It may repeat the request, because every request is
// idempotent: a repeated acquire finds its own lease. uncertain says that an earlier try had an
// unknown outcome.
func (c *Cluster) write(
	ctx context.Context, verb, key string, try func(ctx context.Context) error,
) (uncertain bool, err error) {
	return c.send(ctx, verb, key, false, try)
}

// read is write for a request that changes nothing, and so has no unknown outcome.
func (c *Cluster) read(
	ctx context.Context, verb, key string, try func(ctx context.Context) error,
) error {
	_, err := c.send(ctx, verb, key, true, try)
	return err
}

func (c *Cluster) send(
	ctx context.Context, verb, key string, reads bool, try func(ctx context.Context) error,
) (uncertain bool, err error) {
	if c.ctx.Err() != nil {
		return false, fmt.Errorf("%w: %s %q", lease.ErrClosed, verb, key)
	}
	if ctx.Err() != nil {
		return false, fmt.Errorf("rowlock: %s %q: %w", verb, key, ctx.Err())
	}
	bound, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	var last tried
	tries := 0
	_, err = backoff.Retry(bound, func() (struct{}, error) {
		last = c.once(bound, tries, try)
		if tries++; last.err == nil {
			return struct{}{}, nil
		}
		if last.is == unknownOutcome && reads {
			last.is = passing
		}
		// etcd also carries a request out and then answers ErrNoSpace to it.
		uncertain = uncertain || last.is == unknownOutcome || last.sent && errors.Is(last.err, rpctypes.ErrNoSpace)
		if last.is == refused {
			return struct{}{}, backoff.Permanent(last.err)
		}
		return struct{}{}, last.err
	}, backoff.WithBackOff(pauses()), backoff.WithMaxElapsedTime(0))
	if err == nil {
		return uncertain, nil
	}
	return uncertain, late.Told(ctx, c.explain(ctx, verb, key, last, uncertain), nil)
}

// tried is how a try has ended.
type tried struct {
	err  error
	is   class // of err
	sent bool  // and not only a request for an etcd lease
}

// once tries with a part of the time.
func (c *Cluster) once(ctx context.Context, n int, try func(ctx context.Context) error) tried {
	var sent bool
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, left{}, &sent), share(c.timeout, n))
	defer cancel()
	err := try(ctx)
	return tried{err, judge(err, sent), sent}
}

// explain is the error after the last try.
func (c *Cluster) explain(ctx context.Context, verb, key string, last tried, uncertain bool) error {
	err := last.err
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = oneline.Join(err, ctx.Err())
	}
	switch {
	case uncertain:
		err = fmt.Errorf("%w: %s %q: %w", lease.ErrUnknown, verb, key, err)
	case ctx.Err() == nil && c.ctx.Err() == nil && last.is == passing:
		err = fmt.Errorf(
			"%w: %s %q: etcd did not accept the request within %s: %w", lease.ErrBusy, verb, key,
			c.timeout, err,
		)
	default:
		err = fmt.Errorf("rowlock: %s %q: %w", verb, key, err)
	}
	if c.ctx.Err() != nil {
		err = oneline.Join(lease.ErrClosed, err)
	}
	return err
}

func pauses() *backoff.ExponentialBackOff {
	return retry.Growing(5*time.Millisecond, 200*time.Millisecond, 0.5)
}
