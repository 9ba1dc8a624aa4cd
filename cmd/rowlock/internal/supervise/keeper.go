//go:build unix

package supervise

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Command is a command under a warden.
type Command struct {
	warden *exec.Cmd
	orders *os.File
	asks   chan struct{}
	ended  chan struct{}

	mu    sync.Mutex
	until time.Time
	group int
	end   End
	err   error
}

// ErrWarden says that the warden was ended before the command. The command was killed.
var ErrWarden = errors.New("rowlock: run: the supervising process has ended: the command was killed")

// Start starts a command with an environment. It ends at until at the latest, unless Extend is
// called. SIGTERM is sent grace before.
func Start(command, env []string, until time.Time, grace time.Duration) (*Command, error) {
	program, err := os.Executable()
	orders, give, first := os.Pipe()
	words, say, second := os.Pipe()
	if err := errors.Join(err, first, second); err != nil {
		return nil, fmt.Errorf("rowlock: run: %w", err)
	}
	c := &Command{orders: give, asks: make(chan struct{}, 1), ended: make(chan struct{}), until: until}
	c.warden = exec.Command(program, arguments(grace, command)...)
	c.warden.Stdin, c.warden.Stdout, c.warden.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.warden.Env = env
	c.warden.ExtraFiles = []*os.File{orders, say}
	// Out of reach of a terminal's signals, and of those to the keeper's group.
	c.warden.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.warden.Start(); err != nil {
		return nil, fmt.Errorf("rowlock: run: %w", err)
	}
	_, _ = orders.Close(), say.Close()
	c.order(c.deadline())
	go c.follow(words)
	return c, nil
}

// order does not wait for a warden that is stopped: once the pipe is full, orders are lost, and the
// command ends at the last deadline that the warden has. Without a warden, follow sees it.
func (c *Command) order(o order) {
	_ = c.orders.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_ = send(c.orders, o)
}

// deadline reads the machine's clock before the process's own, so that a pause between the two
// makes it earlier.
func (c *Command) deadline() order {
	at := now()
	return order{Until: max(1, at+time.Until(c.until))}
}

// Extend sets a later deadline. An earlier one is taken too.
func (c *Command) Extend(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !until.Equal(c.until) {
		c.until = until
		c.order(c.deadline())
	}
}

// Signal passes a signal on to the command's process group.
func (c *Command) Signal(s os.Signal) {
	if number, ok := s.(syscall.Signal); ok {
		c.order(order{Signal: int(number)})
	}
}

// Stop ends the command now, and does not wait for it. If the warden cannot, the group is killed at
// the deadline from here.
func (c *Command) Stop() {
	c.order(order{End: true})
	c.mu.Lock()
	defer c.mu.Unlock()
	time.AfterFunc(max(0, time.Until(c.until)), c.kill)
}

func (c *Command) kill() {
	select {
	case <-c.ended: // the number of the group may be another's by now
		return
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.group > 0 {
		_ = syscall.Kill(-c.group, syscall.SIGKILL)
	}
}

// Asks tells that the command was stopped because it uses the terminal from the background. It goes
// on when the keeper is in the foreground.
func (c *Command) Asks() <-chan struct{} { return c.asks }

// Ended is closed when the command and its group have ended.
func (c *Command) Ended() <-chan struct{} { return c.ended }

// Result is how it ended, after Ended. The error is ErrWarden.
func (c *Command) Result() (End, error) { return c.end, c.err }

func (c *Command) follow(words io.ReadCloser) {
	defer close(c.ended)
	said := false
	for lines := bufio.NewScanner(words); lines.Scan(); {
		var w word
		if json.Unmarshal(lines.Bytes(), &w) != nil {
			break
		}
		c.mu.Lock()
		if w.Group > 0 {
			c.group = w.Group
		}
		if w.End != nil {
			c.end, said = *w.End, true
		}
		c.mu.Unlock()
		if w.Asks && len(c.asks) == 0 {
			c.asks <- struct{}{}
		}
	}
	if !said {
		c.kill()
		c.err = ErrWarden
	}
	_ = c.warden.Wait()
	_, _ = words.Close(), c.orders.Close()
}
