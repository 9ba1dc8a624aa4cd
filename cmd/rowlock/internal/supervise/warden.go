//go:build unix

package supervise

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Argument makes a program of this package's user the warden: see Warden.
const Argument = "__warden"

// Files of the warden that the keeper has the other ends of.
const (
	ordersFile = 3
	wordsFile  = 4
)

// tick bounds how late the warden sees that the machine has slept.
const tick = time.Second

// warden is the state of a warden process. One goroutine has it.
type warden struct {
	words  *os.File
	grace  time.Duration
	until  time.Duration // on the clock of now
	kill   time.Duration // when SIGKILL follows SIGTERM; 0: no SIGTERM was sent
	group  int
	exited bool // the command itself has
	asked  bool // the command is stopped until it has the terminal
	end    End
	corpse corpses
}

// Warden is the warden process: args are the grace and the command. It returns the exit code of the
// process.
func Warden(args []string) int {
	// The kernel ties the command to the thread that starts it: it must not end before.
	runtime.LockOSThread()
	if len(args) < 2 {
		return 2
	}
	grace, err := time.ParseDuration(args[0])
	if err != nil {
		return 2
	}
	syscall.CloseOnExec(ordersFile)
	syscall.CloseOnExec(wordsFile)
	// Notify, and not Ignore, which the command would inherit. It keeps what was ignored before.
	signal.Notify(make(chan os.Signal, 1), Heeded(deaf...)...)
	adopt()
	w := &warden{words: os.NewFile(wordsFile, "words"), grace: grace}
	orders := read(os.NewFile(ordersFile, "orders"))
	first, ok := <-orders
	if !ok {
		return 1 // the keeper is gone, and nothing has begun
	}
	w.until = first.Until
	if w.left() <= grace {
		return 1 // the lease is as good as over
	}
	w.run(exec.Command(args[1], args[2:]...), orders)
	_ = send(w.words, word{End: &w.end})
	return 0
}

// deaf are signals that end the command by way of the keeper, or not at all.
var deaf = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU,
}

// read returns a channel of the orders, which is closed when the keeper is gone.
func read(from io.Reader) <-chan order {
	orders := make(chan order)
	go func() {
		defer close(orders)
		for lines := bufio.NewScanner(from); lines.Scan(); {
			var o order
			if json.Unmarshal(lines.Bytes(), &o) != nil {
				return
			}
			orders <- o
		}
	}()
	return orders
}

func (w *warden) run(cmd *exec.Cmd, orders <-chan order) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = child()
	terminal := openTerminal(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		w.end = notStarted(err)
		return
	}
	w.group = cmd.Process.Pid
	_ = send(w.words, word{Group: w.group})
	exited, asked := make(chan int, 1), make(chan struct{}, 1)
	go wait(w.group, exited, asked)
	for !w.over() {
		select {
		case o, ok := <-orders:
			w.obey(o, ok)
			if !ok {
				orders = nil
			}
		case w.end.Code = <-exited:
			w.exited = true
			terminal.takeBack()
		case <-asked:
			w.asked = true
			_ = send(w.words, word{Asks: true})
		case <-time.After(w.pause()):
		}
		if w.asked && terminal.handOver(w.group) {
			w.asked = false
			w.signal(syscall.SIGCONT)
		}
		w.act()
	}
}

func (w *warden) obey(o order, there bool) {
	switch {
	case !there, o.End: // without a keeper the lease will not be renewed
		w.finish()
	case o.Signal > 0:
		w.signal(syscall.Signal(o.Signal))
	}
	if o.Until > 0 {
		w.until = o.Until
	}
}

func (w *warden) left() time.Duration { return w.until - now() }

// act does what is due.
func (w *warden) act() {
	switch {
	case w.exited && w.kill == 0 && w.alive():
		w.end.Left = true
		w.finish()
	case w.kill == 0 && w.left() <= w.grace:
		w.finish()
	}
	if w.kill > 0 && now() >= w.killAt() {
		w.signal(syscall.SIGKILL)
	}
}

// finish sends SIGTERM; SIGKILL follows after the grace.
func (w *warden) finish() {
	if w.kill > 0 {
		return
	}
	w.end.Ended = !w.exited
	w.kill = now() + w.grace
	w.signal(syscall.SIGTERM)
	w.signal(syscall.SIGCONT) // a stopped process takes no SIGTERM
}

func (w *warden) killAt() time.Duration { return min(w.kill, w.until) }

func (w *warden) pause() time.Duration {
	due := w.left() - w.grace
	if w.kill > 0 {
		due = w.killAt() - now()
	}
	if w.exited || w.kill > 0 {
		due = min(due, 10*time.Millisecond) // no event tells that a group is empty
	}
	return max(time.Millisecond, min(due, tick))
}

func (w *warden) signal(s syscall.Signal) { _ = syscall.Kill(-w.group, s) }

// alive reports whether the group has processes that run. The kernel counts a zombie as one until
// its parent has asked for it, and a parent that has left the group may never do so.
func (w *warden) alive() bool {
	return !errors.Is(syscall.Kill(-w.group, 0), syscall.ESRCH) && !w.corpse.only(w.group)
}

func (w *warden) over() bool { return w.exited && !w.alive() }

// wait tells the exit code of the command as a shell has it, and asks for all other processes that
// the warden inherits: they would stay zombies of the group. A command that its terminal stops
// (Ctrl-Z) goes on, because no shell knows of it that could continue it, and the lock would be held
// meanwhile. One that is stopped because it is in the background cannot go on before it has the
// terminal.
func wait(command int, exited chan<- int, asked chan<- struct{}) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return // no descendants are left
		case pid != command:
		case status.Exited():
			exited <- status.ExitStatus()
		case status.Signaled():
			exited <- 128 + int(status.Signal())
		case status.StopSignal() == syscall.SIGTSTP:
			_ = syscall.Kill(-pid, syscall.SIGCONT)
		case status.StopSignal() == syscall.SIGTTIN, status.StopSignal() == syscall.SIGTTOU:
			select {
			case asked <- struct{}{}:
			default:
			}
		}
	}
}

func notStarted(err error) End {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return End{Code: 127, Failed: err.Error()}
	}
	return End{Code: 126, Failed: err.Error()}
}

// arguments is the warden's command line for a grace and a command.
func arguments(grace time.Duration, command []string) []string {
	return append([]string{Argument, strconv.FormatInt(int64(grace), 10) + "ns"}, command...)
}
