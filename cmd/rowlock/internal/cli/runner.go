package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/supervise"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
)

// runner is one call of run.
type runner struct {
	program *program
	flags   runFlags
	key     string
	command []string

	target  *target.Target
	token   lease.Token
	outcome string // see report
}

// report is what --report writes.
type report struct {
	// Outcome is "exited" (the command has, with Code), "not-started", "held", "skipped", "lost",
	// "max-hold", "killed" (the supervising process was), or "failed" (before anything was run).
	Outcome string      `json:"outcome"`
	Key     string      `json:"key"`
	Token   lease.Token `json:"token,omitempty"`
	Code    int         `json:"exit_code"`
}

func (r *runner) writeReport(end error) error {
	code := 0
	if end != nil {
		code = exitCode(end)
	}
	text, err := json.Marshal(report{cmp.Or(r.outcome, "failed"), keytext.Show(r.key), r.token, code})
	if err == nil {
		err = os.WriteFile(r.flags.report, append(text, '\n'), 0o600)
	}
	return err
}

func (r *runner) run(ctx context.Context) error {
	client, end, err := r.open(ctx)
	if err != nil {
		return runError(err)
	}
	defer end()
	lock, err := r.lock(ctx, client)
	if err != nil {
		return r.notRun(ctx, err)
	}
	r.token = lock.Token()
	// To the end: no signal may end this process before the key is free and the report written.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, r.program.heeded...)
	command, err := r.start(ctx, client, lock)
	if err != nil {
		_ = lock.UnlockNow(context.WithoutCancel(ctx)) // its error says nothing more to the user than err
		return r.notRun(ctx, err)
	}
	cause := r.follow(signals, command, lock)
	result, err := command.Result()
	if err != nil {
		r.outcome = "killed"
		err = &exitError{exitWarden, err}
		r.unlock(lock, true)
		return err
	}
	return r.judge(lock, result, cause)
}

func (r *runner) open(ctx context.Context) (*rowlock.Client, func(), error) {
	t, client, end, err := r.program.client(ctx, func(cfg *rowlock.Config) {
		cfg.TTL, cfg.Identity, cfg.Fair = r.flags.ttl, r.flags.identity, r.flags.fair
	})
	r.target = t
	return client, end, err
}

func (r *runner) lock(ctx context.Context, client *rowlock.Client) (*rowlock.Lock, error) {
	opts := []rowlock.Option{rowlock.Note(r.flags.note)}
	if r.flags.least > 0 {
		opts = append(opts, rowlock.MinHold(r.flags.least))
	}
	if r.flags.limit > 0 {
		// The command has its grace within the limit.
		opts = append(opts, rowlock.MaxHold(r.flags.limit-r.flags.grace))
	}
	if r.flags.skip || r.flags.wait == 0 {
		return client.TryLock(ctx, r.key, opts...)
	}
	if r.flags.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.flags.wait)
		defer cancel()
	}
	said := false
	return client.Lock(ctx, r.key, append(opts, rowlock.OnWait(func(w rowlock.Waiting) {
		if !said {
			said = true
			r.say("waiting for %s, held by %s", keytext.Show(r.key), listing.Plain(lease.Describe(w.Identity, w.Holder)))
		}
	}))...)
}

func (r *runner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.program.stderr, "rowlock: "+format+"\n", args...)
}

// notRun is the end of a run whose command was not started: mostly because the key was not granted.
func (r *runner) notRun(ctx context.Context, err error) error {
	switch held := errors.Is(err, lease.ErrHeld); {
	case ctx.Err() != nil: // by a signal
		return &exitError{interrupted(ctx), errors.New("interrupted before the command began: nothing was run")}
	case held && r.flags.skip:
		r.outcome = "skipped"
		r.say("skipped: %s", strings.TrimPrefix(keytext.Error(err), "rowlock: "))
		return nil
	case held:
		r.outcome = "held"
		return &exitError{exitHeld, err}
	}
	return runError(err)
}

// interrupted is the exit code for the signal that has ended ctx.
func interrupted(ctx context.Context) int {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		if strings.HasPrefix(context.Cause(ctx).Error(), s.String()) {
			return 128 + int(s)
		}
	}
	return 128 + int(syscall.SIGTERM)
}

// start starts the command with the lock in its environment.
func (r *runner) start(
	ctx context.Context, client *rowlock.Client, lock *rowlock.Lock,
) (*supervise.Command, error) {
	found, err := client.Inspect(ctx, lease.Filter{Keys: []string{r.key}})
	if err != nil {
		return nil, err
	}
	if len(found) != 1 || found[0].Token != lock.Token() || found[0].Owner.IsZero() {
		return nil, fmt.Errorf("%w: %s, before the command was started", lease.ErrLost, keytext.Show(r.key))
	}
	env := append(r.environment(), "ROWLOCK_KEY="+keytext.Show(r.key),
		"ROWLOCK_TOKEN="+lock.Token().String(), "ROWLOCK_OWNER="+found[0].Owner.String(),
		"ROWLOCK_TTL="+r.flags.ttl.String(), "ROWLOCK_DIALECT="+r.target.Kind,
		"ROWLOCK_PREFIX="+r.target.Settings.Prefix, "ROWLOCK_SCHEMA="+r.target.Schema())
	return supervise.Start(r.command, env, lock.Deadline(), r.flags.grace)
}

// environment is what the command gets of this process's: not the DSN, which has a password that
// the command, its logs and its children would have too.
func (r *runner) environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return !r.flags.keepDSN && strings.HasPrefix(v, "ROWLOCK_DSN=")
	})
}

// follow tells the supervising process each new deadline, and returns when the command has ended:
// with the cause of the lock's end, if that came first.
func (r *runner) follow(signals <-chan os.Signal, command *supervise.Command, lock *rowlock.Lock) (cause error) {
	renewed := time.NewTicker(max(10*time.Millisecond, r.flags.ttl/60))
	defer renewed.Stop()
	over := lock.Context().Done()
	for {
		select {
		case <-command.Ended():
			return cause
		case s := <-signals:
			command.Signal(s)
		case <-command.Asks():
			r.say("run: the command waits for the terminal, in the background: bring it to the foreground (fg)")
		case <-renewed.C:
			if cause == nil {
				command.Extend(lock.Deadline())
			}
		case <-over:
			over = nil
			cause = context.Cause(lock.Context())
			command.Stop()
		}
	}
}

// judge returns what run ends with, after the command has.
func (r *runner) judge(lock *rowlock.Lock, result supervise.End, cause error) error {
	left := r.unlock(lock, result.Code != 0 || result.Ended)
	switch {
	case result.Failed != "":
		r.outcome = "not-started"
		return &exitError{result.Code, fmt.Errorf("run: %s", result.Failed)}
	case errors.Is(cause, lease.ErrMaxHold):
		r.outcome = "max-hold"
		return &exitError{exitMaxHold, fmt.Errorf("run: %s was held for --max-hold %s: the command was ended",
			keytext.Show(r.key), r.flags.limit)}
	case result.Ended || cause != nil || errors.Is(left, lease.ErrLost):
		r.outcome = "lost"
		return &exitError{exitLost, fmt.Errorf("run: the lease of %s (token %d) could not be proved any more: "+
			"the command was ended", keytext.Show(r.key), r.token)}
	}
	if result.Left {
		r.say("run: the command has left processes behind: they were ended before the key was released")
	}
	r.outcome = "exited"
	if result.Code == 0 {
		return nil
	}
	return &exitError{code: result.Code}
}

// unlock releases the key; after work that has failed also one that --min-hold would keep.
func (r *runner) unlock(lock *rowlock.Lock, failed bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	unlock := lock.Unlock
	if failed {
		unlock = lock.UnlockNow
	}
	err := unlock(ctx)
	if err != nil && !errors.Is(err, lease.ErrLost) && !errors.Is(err, lease.ErrMaxHold) {
		r.say("run: %s is not released: %s: it is free within %s", keytext.Show(r.key),
			strings.TrimPrefix(keytext.Error(err), "rowlock: "), r.flags.ttl)
	}
	return err
}
