package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/internal/keytext"
)

// Load reads a snapshot of the keys with a prefix.
type Load func(ctx context.Context, prefix string) (Snapshot, error)

// timeout bounds a load, so that a database that hangs is told.
const timeout = 5 * time.Second

// Run shows the screen until its user leaves or ctx ends. name is that of the database.
func Run(ctx context.Context, name, prefix string, every time.Duration, load Load) error {
	m := &model{ctx: ctx, name: name, prefix: prefix, every: every, load: load}
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithOutput(os.Stdout)).Run()
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// model is the state of the screen. bubbletea has it on one goroutine.
type model struct {
	ctx    context.Context
	name   string
	every  time.Duration
	load   Load
	prefix string // as text

	answers
	width, height int
	by            order
	first         int // row
	typing        bool
	typed         string
}

// answers is what the database has said: the screen goes on showing it while no answer comes.
type answers struct {
	snapshot Snapshot
	at       time.Time                // of the snapshot
	full     map[string]time.Duration // longest time to expiry seen, by key and token
	gone     error
	since    time.Time // gone
}

type (
	loaded struct {
		Snapshot
		err    error
		prefix string
	}
	due struct{}
)

// Init begins to read.
func (m *model) Init() tea.Cmd { return m.read }

func (m *model) read() tea.Msg {
	ctx, cancel := context.WithTimeout(m.ctx, timeout)
	defer cancel()
	text := m.prefix
	prefix, err := keytext.Prefix(text)
	if err != nil {
		return loaded{err: err, prefix: text}
	}
	s, err := m.load(ctx, prefix)
	return loaded{s, err, text}
}

// Update takes an event.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case due:
		return m, m.read
	case loaded:
		m.take(msg)
		return m, tea.Tick(m.every, func(time.Time) tea.Msg { return due{} })
	case tea.PasteMsg:
		if m.typing {
			m.typed += listing.Plain(strings.TrimSpace(msg.Content))
		}
	case tea.KeyPressMsg:
		if m.typing {
			m.edit(msg)
			return m, nil
		}
		return m, m.press(msg.String())
	}
	return m, nil
}

func (a *answers) take(l loaded) {
	switch {
	case l.err != nil && a.gone == nil:
		a.gone, a.since = l.err, time.Now()
	case l.err != nil:
		a.gone = l.err
	default:
		a.gone, a.at, a.snapshot = nil, time.Now(), l.Snapshot
		a.remember()
	}
}

func (a *answers) remember() {
	full := make(map[string]time.Duration, len(a.snapshot.Held))
	for _, r := range a.snapshot.Held {
		id := fmt.Sprint(r.Token, r.Key)
		full[id] = max(a.full[id], r.Remaining)
	}
	a.full = full
}

func (m *model) press(key string) tea.Cmd {
	page := max(1, m.height-4)
	switch key {
	case "q", "ctrl+c", "esc":
		return tea.Quit
	case "s":
		m.by = (m.by + 1) % orders
	case "/":
		m.typing, m.typed = true, m.prefix
	case "down", "j":
		m.first++
	case "up", "k":
		m.first--
	case "pgdown", "space":
		m.first += page
	case "pgup":
		m.first -= page
	case "home", "g":
		m.first = 0
	case "end", "G":
		m.first = len(m.snapshot.Held)
	}
	m.first = max(0, min(m.first, len(m.snapshot.Held)-page))
	return nil
}

func (m *model) edit(k tea.KeyPressMsg) {
	switch key := k.String(); key {
	case "enter":
		m.typing, m.prefix, m.first = false, m.typed, 0
	case "esc", "ctrl+c":
		m.typing = false
	case "backspace":
		if r := []rune(m.typed); len(r) > 0 {
			m.typed = string(r[:len(r)-1])
		}
	default:
		m.typed += k.Text
	}
}

var (
	title = lipgloss.NewStyle().Bold(true)
	alarm = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red)
	faint = lipgloss.NewStyle().Faint(true)
)

// View is the screen.
func (m *model) View() tea.View {
	view := tea.NewView(m.screen())
	view.AltScreen = true
	view.WindowTitle = "rowlock top " + m.name
	return view
}

func (m *model) screen() string {
	if m.width == 0 {
		return ""
	}
	all := entries(m.snapshot, m.by)
	page := max(1, m.height-4)
	m.first = max(0, min(m.first, len(all)-page))
	shown := all[m.first:min(len(all), m.first+page)]
	rows := make([][]string, len(shown))
	for i, e := range shown {
		rows[i] = row(e, m.full[fmt.Sprint(e.Token, e.Key)])
	}
	body := strings.TrimRight(listing.Render(columns, rows, m.width, true), "\n")
	lines := append([]string{m.header(len(all)), m.state()}, strings.Split(body, "\n")...)
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, m.footer())
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.width, "…")
	}
	return strings.Join(lines, "\n")
}

func (m *model) header(held int) string {
	waited := listing.Count(len(m.snapshot.Waited)) + " waited for"
	count := listing.Count(held) + " held, " + waited
	if m.snapshot.More {
		count = "the first " + count + ": narrow with /"
	}
	return title.Render("rowlock top") + "  " + count + "  by " + m.by.String() + "  " + m.name
}

// state says how old the rows are.
func (m *model) state() string {
	switch {
	case m.gone != nil && m.at.IsZero():
		return alarm.Render("no answer: trying again: " + m.why())
	case m.gone != nil:
		return alarm.Render(fmt.Sprintf("gone for %s: these rows are %s old: trying again: %s",
			listing.Span(time.Since(m.since)), listing.Span(time.Since(m.at)), m.why()))
	case m.at.IsZero():
		return faint.Render("reading …")
	case m.prefix != "":
		return faint.Render(m.at.Format(time.TimeOnly) + "  keys that begin with " + m.prefix)
	}
	return faint.Render(m.at.Format(time.TimeOnly))
}

// why may have what a program has stored.
func (a *answers) why() string {
	return listing.Plain(strings.TrimPrefix(keytext.Error(a.gone), "rowlock: "))
}

func (m *model) footer() string {
	if m.typing {
		return "prefix: " + m.typed + "█  enter: show  esc: leave it"
	}
	return faint.Render("q quit  s sort  / prefix  ↑↓ page up, down")
}
